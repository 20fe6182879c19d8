"""Bytes in the text of compiled programs."""

import pytest

from oodgat_jax.sharding import cost

TEXT = """
  %a = f32[4,10,3]{2,1,0} all-to-all(%x), channel_id=1, replica_groups={{0,1,2,3}}
  %b = (f32[5]{0}, s32[5]{0}) all-to-all(%y, %z), replica_groups={{0,1,2,3}}
  %c = f32[8]{0} all-reduce(%p), to_apply=%add
  ROOT %d = pred[16]{0} all-gather-start(%q), dimensions={0}
  %e = bf16[2]{0} reduce-scatter(%r), dimensions={0}
  %f = f32[100]{0} add(%all-reduce.1, %c)
"""


def test_collectives_are_counted_and_nothing_else():
    share = 3 / 4
    assert cost.sent(TEXT, 4) == {
        "all-to-all": share * (480 + 40),
        "all-reduce": 2 * share * 32,
        "all-gather": share * 16,
        "reduce-scatter": 3 * 4,
    }


def test_one_device_sends_nothing():
    assert set(cost.sent(TEXT, 1).values()) == {0}


def test_totals():
    found = cost.Cost(1, 20, 300, {"all-reduce": 4, "all-to-all": 5})
    assert (found.memory, found.moved) == (321, 9)
    assert cost.sent("", 2) == {}


@pytest.mark.parametrize(("kind", "size"), [("f64", 16), ("pred", 2), ("u32", 8)])
def test_sizes_of_types(kind, size):
    text = f"%a = {kind}[2]{{0}} all-gather(%x)"
    assert cost.sent(text, 2) == {"all-gather": size / 2}
