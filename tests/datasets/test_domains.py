"""Twitch by region and ogbn-arxiv by year, from small files in their formats."""

import gzip

import numpy as np
import pytest

from oodgat_jax import splits
from oodgat_jax.types import InputError

YEARS = [2010, 2015, 2018, 2016, 2014, 2020, 2017, 2019] * 5


def write_region(folder, name, nodes, **changes):
    random = np.random.default_rng(nodes)
    ring = np.arange(nodes)
    pairs = np.stack([ring, (ring + 1) % nodes], 1)
    loops = np.stack([ring, ring], 1)
    arrays = {
        "features": random.normal(size=(nodes, 128)).astype(np.float32),
        "target": ring % 2,
        "edges": np.concatenate([pairs, pairs[:, ::-1], loops]),
    }
    np.savez(folder / f"{name}.npz", **arrays | changes)


@pytest.fixture
def twitch(tmp_path):
    for nodes, name in enumerate(("DE", "EN", "ES", "FR", "RU"), start=40):
        write_region(tmp_path, name, nodes)
    return tmp_path


def test_regions_are_learned_exposed_and_tested(twitch):
    shift = splits.under_twitch(twitch, "FR")
    assert shift.learned.num_nodes == 40
    assert shift.learned.senders.size == 80  # both ways, without loops
    assert (shift.exposed.components, shift.scored.components) == ((40, 41), (40, 43))
    split = shift.draw(shift.scored, 123)
    order = np.random.RandomState(123).permutation(40)
    assert set(np.flatnonzero(split.train)) == set(order[:4])
    assert split.test.sum() == 32 + 43
    exposed = shift.draw(shift.exposed, 123)
    np.testing.assert_array_equal(np.flatnonzero(exposed.exposure), 40 + np.arange(41))
    with np.load(twitch / "DE.npz") as stored:
        x = stored["features"] - stored["features"].min()
    np.testing.assert_allclose(shift.learned.features, x / x.sum(1)[:, None], rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"edges": np.array([[0, 40]])}, "node 40, outside 0..39"),
        ({"edges": np.zeros((2, 3), int)}, "edges of shape"),
        ({"target": np.arange(40)}, "class 2, outside 0..1"),
        ({"features": np.zeros((3, 128))}, "features of shape"),
        ({"features": np.full((40, 128), np.nan)}, "not finite"),
    ],
)
def test_a_damaged_region_is_named(twitch, changes, reason):
    write_region(twitch, "DE", 40, **changes)
    with pytest.raises(InputError, match=rf"DE\.npz holds .*{reason}"):
        splits.under_twitch(twitch, "ES")


def test_other_regions_and_years_are_refused(tmp_path):
    with pytest.raises(InputError, match="take ES or FR or RU"):
        splits.under_twitch(tmp_path, "PT")
    with pytest.raises(InputError, match="take 2018 or 2019 or 2020"):
        splits.under_arxiv(tmp_path, 2015)
    with pytest.raises(InputError, match=r"DE\.npz does not exist"):
        splits.under_twitch(tmp_path, "ES")


def write_lines(folder, name, lines):
    path = folder / "raw" / f"{name}.csv.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


@pytest.fixture
def arxiv(tmp_path):
    folder = tmp_path / "ogbn_arxiv"
    nodes = range(len(YEARS))
    write_lines(folder, "num-node-list", [len(YEARS)])
    write_lines(folder, "num-edge-list", [len(YEARS) - 1])
    write_lines(folder, "edge", [f"{node + 1},{node}" for node in nodes[:-1]])
    write_lines(folder, "node-feat", [f"{node},1" for node in nodes])
    write_lines(folder, "node-label", [node % 2 for node in nodes])
    write_lines(folder, "node_year", YEARS)
    return folder


def test_years_are_known_exposed_and_tested(arxiv):
    years = np.array(YEARS)
    shift = splits.under_arxiv(arxiv, 2019)
    known, later = years <= 2015, years <= 2019
    np.testing.assert_array_equal(shift.learned.features[:, 0], np.flatnonzero(known))
    assert shift.scored.components == (known.sum(), later.sum())
    split = shift.draw(shift.scored, 1)
    second = np.zeros(len(split.test), bool)
    second[known.sum() :] = years[later] == 2019
    np.testing.assert_array_equal(split.is_ood, second)
    assert split.test[second].all()
    assert not (split.train | split.val)[known.sum() :].any()
    exposed = shift.draw(shift.exposed, 1)
    until = years <= 2017
    np.testing.assert_array_equal(exposed.exposure[known.sum() :], years[until] > 2015)
    # Citations go one way, to the earlier number, and only among papers of the graph.
    both = known[1:] & known[:-1]
    names = np.flatnonzero(known)
    pairs = set(
        zip(names[shift.learned.senders], names[shift.learned.receivers], strict=True)
    )
    assert pairs == {(n + 1, n) for n in np.flatnonzero(both)}


def test_years_of_another_number_of_nodes_are_refused(arxiv):
    write_lines(arxiv, "node_year", YEARS[:-1])
    with pytest.raises(InputError, match=r"node_year\.csv\.gz holds 39 nodes where 40"):
        splits.under_arxiv(arxiv, 2018)
