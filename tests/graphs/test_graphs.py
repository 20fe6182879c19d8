"""Building, checking and propagating on graphs, against numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from support.random_graphs import CASES, dense_adjacency, random_edges

from oodgat_jax import graphs
from oodgat_jax.graphs import sparse
from oodgat_jax.types import Dataset, InputError

GRAPHS = {**CASES, "directed": (8, *random_edges(8, 20, 3))}
BOTH_KERNELS = pytest.mark.parametrize("kernel", ["sparse", "segment"])


def build(case, kernel="sparse"):
    nodes, senders, receivers = case
    features = np.arange(2.0 * nodes).reshape(nodes, 2)
    return graphs.from_edges(features, np.int32(senders), np.int32(receivers), kernel)


def dense(graph, weights):
    matrix = np.zeros((graphs.num_nodes(graph),) * 2)
    np.add.at(matrix, (np.asarray(graph.receivers), np.asarray(graph.senders)), weights)
    return matrix


@pytest.mark.parametrize("name", GRAPHS)
def test_each_edge_and_loop_once_in_order(name):
    graph = build(GRAPHS[name])
    receivers, senders = np.nonzero(dense_adjacency(*GRAPHS[name]))
    np.testing.assert_array_equal(graph.receivers, receivers)
    np.testing.assert_array_equal(graph.senders, senders)
    assert graph.n_edge.tolist() == [len(senders)]
    assert graph.n_node.tolist() == [graphs.num_nodes(graph)] == [GRAPHS[name][0]]
    assert int(graphs.is_self_loop(graph).sum()) == GRAPHS[name][0]


@pytest.mark.parametrize("name", GRAPHS)
def test_degree_and_weights(name):
    graph = build(GRAPHS[name])
    looped = dense_adjacency(*GRAPHS[name]).astype(float)
    adjacency = looped - np.eye(len(looped))
    degree = adjacency.sum(1)
    np.testing.assert_array_equal(graphs.degree(graph), degree)
    scale = 1.0 / np.sqrt(looped.sum(1))
    symmetric = dense(graph, graphs.symmetric_weights(graph))
    np.testing.assert_allclose(symmetric, scale[:, None] * looped * scale, rtol=1e-6)
    mean = adjacency / np.maximum(degree, 1)[:, None]
    np.testing.assert_allclose(dense(graph, graphs.mean_weights(graph)), mean)


@BOTH_KERNELS
def test_aggregate_and_its_gradients(kernel):
    graph = build(GRAPHS["directed"], kernel)
    draw = np.random.default_rng(0)
    weights = draw.normal(size=len(graph.senders)).astype(np.float32)
    x, g = draw.normal(size=(2, 8, 3)).astype(np.float32)
    call = jax.jit(
        lambda w, x: jax.vjp(lambda w, x: graphs.aggregate(graph, w, x), w, x)[1](g)
    )
    matrix = dense(graph, weights)
    np.testing.assert_allclose(
        graphs.aggregate(graph, weights, x), matrix @ x, atol=1e-5
    )
    d_weights, dx = call(weights, x)
    np.testing.assert_allclose(dx, matrix.T @ g, atol=1e-5)
    expected = (g @ x.T)[graph.receivers, graph.senders]
    np.testing.assert_allclose(d_weights, expected, atol=1e-5)


@BOTH_KERNELS
def test_kernel_is_the_callers_choice(kernel):
    assert (graphs.pattern(build(CASES["mixed"], kernel)) is not None) == (
        kernel == "sparse"
    )


@pytest.mark.parametrize(
    ("platform", "sparse"), [("cpu", True), ("gpu", False), ("tpu", False)]
)
def test_kernel_follows_the_platform_by_default(monkeypatch, platform, sparse):
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    assert (graphs.pattern(build(CASES["mixed"], "auto")) is not None) == sparse


def test_from_a_data_set():
    senders, receivers = random_edges(6, 9, 0)
    features = np.ones((6, 2), np.float32)
    labels = np.zeros(6, np.int32)
    dataset = Dataset("toy", features, senders, receivers, labels, (0,), 1)
    graph = graphs.build(dataset, "segment")
    np.testing.assert_array_equal(graph.nodes, features)
    expected = graphs.from_edges(features, senders, receivers, "segment")
    np.testing.assert_array_equal(graph.senders, expected.senders)


def test_features_stay_sparse_only_where_that_is_faster():
    thin = scipy.sparse.csr_array(np.eye(10, dtype=np.float32))
    thick = scipy.sparse.csr_array(np.ones((10, 4)))
    edges = (np.array([0]), np.array([1]))
    kept = graphs.from_edges(thin, *edges).nodes
    assert isinstance(kept, sparse.SparseFeatures)
    assert kept.shape == (10, 10)
    made_dense = graphs.from_edges(thick, *edges).nodes
    assert isinstance(made_dense, jax.Array)
    assert made_dense.dtype == jnp.float32


@pytest.mark.parametrize(
    ("senders", "receivers", "message"),
    [
        ([0, 3], [1, 1], "names node 3 among its senders"),
        ([0, 1], [1, -1], "names node -1 among its receivers"),
        ([0, 1], [1], "two one-dimensional arrays of one length"),
        ([[0]], [[1]], "two one-dimensional arrays of one length"),
        ([0.5], [1.0], "must be whole numbers"),
    ],
)
def test_bad_edges_are_refused(senders, receivers, message):
    with pytest.raises(InputError, match=message):
        graphs.from_edges(np.ones((3, 1)), np.array(senders), np.array(receivers))


def test_edges_may_be_lists():
    graph = graphs.from_edges(np.ones((3, 1)), [0, 1], [1, 2])
    assert graph.n_edge.tolist() == [5]
    with pytest.raises(InputError, match="names node 7"):
        graphs.from_edges(np.ones((3, 1)), [0, 7], [1, 2])


def test_empty_graph_and_unknown_kernel_are_refused():
    with pytest.raises(InputError, match="no nodes"):
        graphs.from_edges(np.ones((0, 1)), np.array([], int), np.array([], int))
    with pytest.raises(InputError, match="choose from auto, native, sparse, segment"):
        graphs.from_edges(np.ones((2, 1)), np.array([0]), np.array([1]), "dense")


@settings(max_examples=100, deadline=None)
@given(data=st.data(), nodes=st.integers(1, 12))
def test_any_edges_give_the_same_kind_of_graph(data, nodes):
    """Sorted, each once, one loop per node, whatever repeats or loops were given."""
    node = st.integers(0, nodes - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), max_size=40))
    senders, receivers = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = build((nodes, senders, receivers))
    wanted = {*zip(receivers.tolist(), senders.tolist(), strict=True)}
    wanted |= {(i, i) for i in range(nodes)}
    rows, columns = np.asarray(graph.receivers), np.asarray(graph.senders)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == sorted(wanted)
    pattern = graphs.pattern(graph)
    np.testing.assert_array_equal(rows[pattern.by_column], pattern.rows_by_column)
    np.testing.assert_array_equal(columns[pattern.by_column], pattern.columns_by_column)
    assert (np.diff(pattern.columns_by_column) >= 0).all()
    np.testing.assert_array_equal(
        np.diff(pattern.row_ptr), np.bincount(rows, minlength=nodes)
    )
