"""Where nodes go: shards, padding, locality orders."""

import numpy as np
import pytest

from oodgat_jax.sharding import layout
from oodgat_jax.types import InputError, Split


def ring(nodes, seed=0):
    """Senders and receivers of a ring whose nodes are numbered at random."""
    names = np.random.default_rng(seed).permutation(nodes)
    one, next_ = names, np.roll(names, 1)
    return np.concatenate([one, next_]), np.concatenate([next_, one])


def test_shards_are_even_and_have_padding():
    found = layout.even(10, 4)
    assert found.starts.tolist() == [0, 2, 5, 7, 10]
    assert found.size == 4
    assert found.places().tolist() == [0, 1, 4, 5, 6, 8, 9, 12, 13, 14]


@pytest.mark.parametrize("shuffled", [False, True])
def test_ids_are_all_numbers_once_and_say_what_is_where(shuffled):
    given = np.random.default_rng(0).permutation(11) if shuffled else None
    found = layout.even(11, 3, given)
    ids = np.concatenate([found.ids(shard) for shard in range(3)])
    assert sorted(ids.tolist()) == list(range(3 * found.size))
    np.testing.assert_array_equal(ids[found.places()], np.arange(11))


def test_values_come_back_and_padding_is_nobody():
    found = layout.even(7, 2, np.array([3, 1, 0, 6, 5, 2, 4]))
    values = np.arange(14).reshape(2, 7)
    np.testing.assert_array_equal(found.from_shards(found.to_shards(values)), values)
    mask = np.ones((1, 7), bool)
    split = Split(np.zeros((1, 7), np.int32), mask, mask, mask, mask)
    spread = found.split_to_shards(split)
    assert spread.labels.shape == (1, 10)
    assert (spread.labels == -1).sum() == 3
    assert [leaf.sum() for leaf in spread[1:]] == [7] * 4 + [0]


def test_more_blocks_than_nodes_are_refused():
    with pytest.raises(InputError, match="3 nodes cannot be sharded over 4"):
        layout.even(3, 4)


def test_halo_counts_nodes_of_other_blocks_once():
    # Blocks {0, 1} and {2, 3}: node 2 is asked for by two nodes of the first block.
    senders, receivers = np.array([2, 2, 3, 0, 1]), np.array([0, 1, 3, 1, 2])
    found = layout.halo(senders, receivers, layout.even(4, 2))
    assert found.tolist() == [[0, 1], [1, 0]]


def test_a_ring_is_unrolled():
    senders, receivers = ring(400)
    given = layout.halo(senders, receivers, layout.even(400, 4)).max()
    found = layout.locality(senders, receivers, 400, 4)
    best = layout.halo(senders, receivers, layout.even(400, 4, found)).max()
    assert best <= 2 < 30 < given


def test_a_good_order_is_kept():
    senders = np.concatenate([np.arange(99), np.arange(1, 100)])
    receivers = np.concatenate([np.arange(1, 100), np.arange(99)])
    assert layout.locality(senders, receivers, 100, 4) is None
    assert layout.locality(*ring(100), 100, 1) is None
