"""Generated graphs that are made part by part."""

import itertools

import numpy as np
import pytest

from oodgat_jax import splits
from oodgat_jax.datasets import streaming
from oodgat_jax.datasets.generated import Communities
from oodgat_jax.types import InputError

SPEC = Communities(1000, 12_000, 6, num_classes=4, num_id=2, size=50)


def edge_set(part):
    return set(zip(part.senders.tolist(), part.receivers.tolist(), strict=True))


def test_parts_make_the_same_whole_however_it_is_cut():
    whole, cuts = SPEC.read(0, 1000), [0, 130, 131, 640, 1000]
    found = [SPEC.read(a, b) for a, b in itertools.pairwise(cuts)]
    for name in ("features", "senders", "receivers"):
        joined = np.concatenate([getattr(part, name) for part in found])
        np.testing.assert_array_equal(joined, getattr(whole, name))
    labels = [SPEC.labels(a, b) for a, b in itertools.pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(labels), SPEC.open().labels)


def test_edges_are_symmetric_local_and_heavy_tailed():
    part = SPEC.read(0, 1000)
    edges = edge_set(part)
    assert all((receiver, sender) in edges for sender, receiver in edges)
    assert {(node, node) for node in range(1000)} <= edges
    other = part.senders != part.receivers
    same = part.senders // 50 == part.receivers // 50
    # Repeats, which are taken out, are more frequent inside of a community.
    assert 0.7 < same[other].mean() < 0.95
    large = SPEC._replace(num_nodes=4000, num_edges=40_000, size=1000)
    degrees = np.bincount(large.read(0, 4000).receivers)
    assert degrees.max() > 4 * degrees.mean()


def test_features_tell_classes_apart_as_much_as_asked():
    def distance(signal):
        part = SPEC._replace(signal=signal).read(0, 1000)
        labels = SPEC.open().labels
        means = [part.features[labels == c].mean(0) for c in range(2)]
        return np.linalg.norm(means[0] - means[1])

    assert distance(0.0) < 0.6 < 2.0 < distance(4.0)


def test_seeds_differ_and_the_graph_can_be_split():
    assert edge_set(SPEC.read(0, 50)) != edge_set(SPEC._replace(seed=1).read(0, 50))
    graph = SPEC.open(test_size=100)
    assert splits.draw(graph, 0).train.sum() == 2 * 20
    whole = streaming.in_memory(graph)
    assert whole.num_nodes == 1000
    assert not np.any(whole.senders == whole.receivers)


def test_impossible_classes_are_refused():
    with pytest.raises(InputError, match="communities"):
        SPEC._replace(num_id=4).open()
