"""Pieces of a graph: put together again they are the graph."""

import jax
import numpy as np
import pytest
import scipy.sparse
from support.random_graphs import random_edges

from oodgat_jax import graphs
from oodgat_jax.datasets import streaming
from oodgat_jax.sharding import layout, shards
from oodgat_jax.types import Dataset

NODES, BLOCKS = 23, 4


def make_dataset(directed=False, stored=0.5):
    senders, receivers = random_edges(NODES, 60, 1, directed)
    features = scipy.sparse.random_array((NODES, 40), density=0.1, rng=2)
    features = features.tocsr() if stored < 0.2 else features.toarray()
    labels = np.zeros(NODES, np.int32)
    return Dataset("tiny", features, senders, receivers, labels, (0,), 1)


def cut(dataset, order, use_sparse=True):
    to = layout.even(NODES, BLOCKS, order)
    read = streaming.of_dataset(dataset, order)
    found = [read(*to.starts[b : b + 2]) for b in range(BLOCKS)]
    needs = [shards.sizes(to, b, part) for b, part in enumerate(found)]
    fit = shards.Sizes(*np.max(needs, axis=0))
    total = sum(len(part.senders) for part in found)
    return to, [
        shards.piece(to, b, part, fit, total, 0, use_sparse)
        for b, part in enumerate(found)
    ]


def names(to, piece, made):
    """Numbers in the whole graph of the positions that a piece's senders index."""
    halo = [made[p].globals.ids[ask] for p, ask in enumerate(piece.globals.send)]
    return np.concatenate([piece.globals.ids, *halo])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_edges_and_their_numbers_are_those_of_the_graph(directed, shuffled):
    order = np.random.default_rng(3).permutation(NODES) if shuffled else None
    dataset = make_dataset(directed)
    whole = graphs.build(dataset, "segment")
    to, made = cut(dataset, order)
    found = {}
    for piece in made:
        senders = names(to, piece, made)[piece.senders]
        receivers = piece.globals.ids[piece.receivers]
        real = receivers < NODES
        assert np.all(senders[~real] == receivers[~real])
        assert np.all(np.diff(piece.receivers) >= 0)
        ends = zip(senders[real].tolist(), receivers[real].tolist(), strict=True)
        found |= dict(zip(piece.globals.edges[real].tolist(), ends, strict=True))
    expected = zip(whole.senders.tolist(), whole.receivers.tolist(), strict=True)
    assert found == dict(enumerate(expected))


def test_every_node_of_a_piece_has_a_loop_and_padding_is_marked():
    _, made = cut(make_dataset(), None)
    for piece in made:
        loops = piece.receivers[piece.senders == piece.receivers]
        assert set(loops.tolist()) == set(range(len(piece.globals.ids)))
        np.testing.assert_array_equal(piece.globals.real, piece.globals.ids < NODES)
        assert not piece.globals.real[-1]


def test_sparse_features_keep_their_numbers():
    dataset = make_dataset(stored=0.1)
    order = np.random.default_rng(3).permutation(NODES)
    _, made = cut(dataset, order)
    whole = graphs.build(dataset, "segment").nodes
    for piece in made:
        real = piece.nodes.values != 0
        numbers = piece.globals.entries[real]
        np.testing.assert_array_equal(piece.nodes.values[real], whole.values[numbers])
        rows = piece.globals.ids[piece.nodes.pattern.rows[real]]
        np.testing.assert_array_equal(rows, whole.pattern.rows[numbers])


def test_shapes_are_those_of_pieces():
    dataset = make_dataset()._replace(features=np.ones((NODES, 3), np.float32))
    for use_sparse in (False, True):
        to, made = cut(dataset, None, use_sparse)
        fit = shards.Sizes(len(made[0].senders), made[0].globals.send.shape[1], 0)
        shapes = shards.shapes(to, fit, 3, use_sparse)
        for piece in made:
            found = jax.tree.map(lambda a: (a.shape, a.dtype), piece)
            assert found == jax.tree.map(lambda a: (a.shape, a.dtype), shapes)
