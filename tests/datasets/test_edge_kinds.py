"""Edges by kind, their removal, and the paper's proposition on homophily."""

import numpy as np
import pytest

from oodgat_jax import datasets
from oodgat_jax.datasets import edge_kinds
from oodgat_jax.types import Dataset, InputError


def small(labels, pairs, id_classes=(0, 1)):
    """An undirected graph."""
    pairs = np.array(pairs, np.int32).reshape(-1, 2)
    return Dataset(
        name="small",
        features=np.zeros((len(labels), 1), np.float32),
        senders=np.concatenate([pairs[:, 0], pairs[:, 1]]),
        receivers=np.concatenate([pairs[:, 1], pairs[:, 0]]),
        labels=np.array(labels, np.int32),
        id_classes=id_classes,
        test_size=1,
    )


def random_dataset(seed):
    rng = np.random.default_rng(seed)
    size, classes = rng.integers(2, 40), rng.integers(2, 6)
    known = tuple(sorted(rng.permutation(classes)[: rng.integers(1, classes)].tolist()))
    pairs = rng.integers(0, size, (rng.integers(0, 4 * size), 2))
    labels = rng.integers(-1, classes, size)
    return small(labels, np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0), known)


SQUARE = small([0, 1, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 0)])


def test_kinds():
    names = [edge_kinds.KINDS[kind] for kind in edge_kinds.kinds(SQUARE)]
    assert names == 2 * ["id-id", "inter", "ood-ood", "inter"]


def test_an_end_without_a_label_has_no_kind():
    dataset = small([0, -1, 2], [(0, 1), (0, 2)])
    assert edge_kinds.kinds(dataset).tolist() == [-1, 1, -1, 1]
    assert edge_kinds.is_ood(dataset).tolist() == [False, False, True]


@pytest.mark.parametrize("kind", edge_kinds.KINDS)
def test_all_of_one_kind_go_and_no_other(kind):
    dataset = datasets.digits()
    left = edge_kinds.without(dataset, kind)
    before = np.bincount(edge_kinds.kinds(dataset), minlength=3)
    after = np.bincount(edge_kinds.kinds(left), minlength=3)
    number = edge_kinds.KINDS.index(kind)
    assert before[number] > 0
    before[number] = 0
    assert after.tolist() == before.tolist()


def test_half_goes_in_pairs_and_the_larger_share_contains_the_smaller():
    dataset = datasets.digits()

    def left(share):
        found = edge_kinds.without(dataset, "inter", share, seed=3)
        return set(zip(found.senders.tolist(), found.receivers.tolist(), strict=True))

    everything, half, most = left(0.0), left(0.5), left(0.8)
    assert len(everything) == len(dataset.senders)
    assert all((b, a) in half for a, b in half)
    assert most < half < everything
    inter = np.sum(edge_kinds.kinds(dataset) == 1)
    assert len(everything) - len(half) == pytest.approx(inter / 2, abs=2)
    other = edge_kinds.without(dataset, "inter", 0.5, seed=4)
    assert set(zip(other.senders, other.receivers, strict=True)) != half


def test_wrong_choices_are_named():
    with pytest.raises(InputError, match="no kind of edges 'outer'"):
        edge_kinds.without(SQUARE, "outer")
    with pytest.raises(InputError, match=r"is 1\.5"):
        edge_kinds.without(SQUARE, "inter", 1.5)


def test_homophily_by_hand():
    # Node 0: neighbors 1 (same), 2 (other); 1: same; 2: other; 3: alone.
    assert edge_kinds.homophily([1, 2, 0, 0], [0, 0, 1, 2], [5, 5, 6, 5]) == 0.5
    assert np.isnan(edge_kinds.homophily([], [], [1, 2]))
    assert edge_kinds.class_homophily(SQUARE) == 0.0
    assert edge_kinds.identity_homophily(SQUARE) == 0.5


@pytest.mark.parametrize("seed", range(200))
def test_identities_are_never_less_homophilic_than_classes(seed):
    dataset = random_dataset(seed)
    classes = edge_kinds.class_homophily(dataset)
    identities = edge_kinds.identity_homophily(dataset)
    assert identities >= classes or np.isnan([classes, identities]).all()
