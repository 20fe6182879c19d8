"""Shards of a graph: put together again they are the graph."""

import jax
import numpy as np
import pytest
import scipy.sparse
from support.random_graphs import random_edges

from oodgat_jax import graphs
from oodgat_jax.datasets import streaming
from oodgat_jax.sharding import layout, shards
from oodgat_jax.types import Dataset

NODES, SHARDS = 23, 4


def make_dataset(directed=False, stored=0.5):
    senders, receivers = random_edges(NODES, 60, 1, directed)
    features = scipy.sparse.random_array((NODES, 40), density=0.1, rng=2)
    features = features.tocsr() if stored < 0.2 else features.toarray()
    labels = np.zeros(NODES, np.int32)
    return Dataset("tiny", features, senders, receivers, labels, (0,), 1)


def cut(dataset, order, use_sparse=True):
    to = layout.even(NODES, SHARDS, order)
    read = streaming.of_dataset(dataset, order)
    found = [read(*to.starts[b : b + 2]) for b in range(SHARDS)]
    needs = [shards.sizes(to, b, part) for b, part in enumerate(found)]
    fit = shards.Sizes(*np.max(needs, axis=0))
    total = sum(len(part.senders) for part in found)
    return to, [
        shards.build(to, b, part, fit, total, 0, use_sparse)
        for b, part in enumerate(found)
    ]


def names(to, shard, made):
    """Numbers in the whole graph of the positions that a shard's senders index."""
    halo = [made[p].globals.node_ids[ask] for p, ask in enumerate(shard.globals.send)]
    return np.concatenate([shard.globals.node_ids, *halo])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_edges_and_their_numbers_are_those_of_the_graph(directed, shuffled):
    order = np.random.default_rng(3).permutation(NODES) if shuffled else None
    dataset = make_dataset(directed)
    whole = graphs.build(dataset, "segment")
    to, made = cut(dataset, order)
    found = {}
    for shard in made:
        senders = names(to, shard, made)[shard.senders]
        receivers = shard.globals.node_ids[shard.receivers]
        real = receivers < NODES
        assert np.all(senders[~real] == receivers[~real])
        assert np.all(np.diff(shard.receivers) >= 0)
        ends = zip(senders[real].tolist(), receivers[real].tolist(), strict=True)
        found |= dict(zip(shard.globals.edge_ids[real].tolist(), ends, strict=True))
    expected = zip(whole.senders.tolist(), whole.receivers.tolist(), strict=True)
    assert found == dict(enumerate(expected))


def test_every_node_of_a_piece_has_a_loop_and_padding_is_marked():
    _, made = cut(make_dataset(), None)
    for shard in made:
        loops = shard.receivers[shard.senders == shard.receivers]
        assert set(loops.tolist()) == set(range(len(shard.globals.node_ids)))
        np.testing.assert_array_equal(
            shard.globals.is_real, shard.globals.node_ids < NODES
        )
        assert not shard.globals.is_real[-1]


def test_sparse_features_keep_their_numbers():
    dataset = make_dataset(stored=0.1)
    order = np.random.default_rng(3).permutation(NODES)
    _, made = cut(dataset, order)
    whole = graphs.build(dataset, "segment").nodes
    for shard in made:
        real = shard.nodes.values != 0
        numbers = shard.globals.entry_ids[real]
        np.testing.assert_array_equal(shard.nodes.values[real], whole.values[numbers])
        rows = shard.globals.node_ids[shard.nodes.pattern.rows[real]]
        np.testing.assert_array_equal(rows, whole.pattern.rows[numbers])


def test_shapes_are_those_of_shards():
    dataset = make_dataset()._replace(features=np.ones((NODES, 3), np.float32))
    for use_sparse in (False, True):
        to, made = cut(dataset, None, use_sparse)
        fit = shards.Sizes(len(made[0].senders), made[0].globals.send.shape[1], 0)
        shapes = shards.shapes(to, fit, 3, use_sparse)
        for shard in made:
            found = jax.tree.map(lambda a: (a.shape, a.dtype), shard)
            assert found == jax.tree.map(lambda a: (a.shape, a.dtype), shapes)
