"""Attention against a dense oracle, and the sparse path against the segment path."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.random_graphs import CASES, dense_adjacency, random_edges

from oodgat_jax import experiment, graphs, methods, training
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.models import attention
from oodgat_jax.types import Split

LOGITS = {"ood": attention.OOD_LOGIT, "gat": attention.GAT_LOGIT}
PATHS = ("sparse", "segment")
DIRECTED = (9, *random_edges(9, 30, 0))
UNDIRECTED = (9, *random_edges(9, 15, 1, directed=False))


def build(case, path):
    nodes, senders, receivers = case
    features = np.zeros((nodes, 1), np.float32)
    return graphs.from_edges(features, np.int32(senders), np.int32(receivers), path)


def inputs(nodes, heads, width, seed=0, scale=2.0):
    """r, s [N, H], h and an incoming gradient [N, H, D]."""
    draw = np.random.default_rng(seed)
    shapes = ((nodes, heads),) * 2 + ((nodes, heads, width),) * 2
    return [(scale * draw.normal(size=shape)).astype(np.float32) for shape in shapes]


def edge_dropout(rate, seed=0):
    return None if rate is None else attention.EdgeDropout(jax.random.key(seed), rate)


def factors(dropout, adjacency, heads):
    """Dropout factors [N, N, H]; edges are numbered by (receiver, sender)."""
    dense = np.ones((*adjacency.shape, heads))
    if dropout is not None:
        rows, columns = np.nonzero(adjacency)
        dense[rows, columns] = dropout.factors(jnp.arange(len(rows)), heads).T
    return dense


def oracle(name, adjacency, r, s, h, dropout=None):
    """The definition with an [N, N, H] softmax, in float64."""
    r, s, h = (np.asarray(x, np.float64) for x in (r, s, h))
    r, s = r[:, None], s[None]
    leaky = np.maximum(r + s, 0.2 * (r + s))
    logits = 1.0 - np.abs(r - s) if name == "ood" else leaky
    weights = np.where(adjacency[..., None], np.exp(logits), 0.0)
    alpha = weights / weights.sum(1, keepdims=True)
    alpha *= factors(dropout, adjacency, h.shape[1])
    return np.einsum("ijh,jhd->ihd", alpha, h)


@partial(jax.jit, static_argnums=0)
def value_and_gradients(name, graph, r, s, h, g, dropout):
    """attend() and its gradients for r, s and h; s may be None, for r itself."""

    def function(r, s, h):
        s = r if s is None else s
        return attention.attend(graph, LOGITS[name], r, s, h, dropout)

    out, pull = jax.vjp(function, r, s, h)
    return out, pull(g)


def on_both_paths(name, case, *args):
    return [value_and_gradients(name, build(case, path), *args) for path in PATHS]


def assert_close(got, expected, atol=1e-5):
    def check(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=atol)

    jax.tree.map(check, got, expected)


@pytest.mark.parametrize(
    ("case", "name"),
    [("one node", "gat"), ("no edges", "ood"), ("mixed", "ood"), ("mixed", "gat")],
)
def test_both_paths_follow_the_definition(case, name):
    case = CASES[case]
    r, s, h, g = inputs(case[0], heads=2, width=5)
    dropout = edge_dropout(0.6)
    expected = oracle(name, dense_adjacency(*case), r, s, h, dropout)
    sparse, segment = on_both_paths(name, case, r, s, h, g, dropout)
    assert_close(sparse[0], expected)
    assert_close(segment[0], expected)
    assert_close(sparse[1], segment[1])


@pytest.mark.parametrize(
    ("name", "heads", "width"), [("ood", 8, 3), ("gat", 1, 1), ("gat", 3, 8)]
)
def test_directed_graph(name, heads, width):
    r, s, h, g = inputs(DIRECTED[0], heads, width)
    expected = oracle(name, dense_adjacency(*DIRECTED), r, s, h)
    sparse, segment = on_both_paths(name, DIRECTED, r, s, h, g, None)
    assert_close(segment[0], expected)
    assert_close(sparse, segment)


@pytest.mark.parametrize(
    ("name", "same"), [("ood", True), ("ood", False), ("gat", False)]
)
def test_symmetric_graph(name, same):
    """Edges of both directions share their indices; OODGAT has r = s."""
    r, s, h, g = inputs(UNDIRECTED[0], heads=2, width=5)
    dropout = edge_dropout(0.6)
    adjacency = dense_adjacency(*UNDIRECTED)
    expected = oracle(name, adjacency, r, r if same else s, h, dropout)
    s = None if same else s
    sparse, segment = on_both_paths(name, UNDIRECTED, r, s, h, g, dropout)
    assert_close(segment[0], expected)
    assert_close(sparse, segment)


def test_nodes_of_equal_numbers():
    """Where |x| has no slope both paths take the same one."""
    _, _, h, g = inputs(UNDIRECTED[0], heads=2, width=5)
    r = np.float32(np.arange(18).reshape(9, 2) % 3) / 4
    dropout = edge_dropout(0.6)
    for s in (None, r.copy()):
        sparse, segment = on_both_paths("ood", UNDIRECTED, r, s, h, g, dropout)
        assert_close(sparse, segment)


def test_runs_at_once():
    runs = range(3)
    batch = jax.tree.map(lambda *x: np.stack(x), *(inputs(9, 2, 3, k) for k in runs))
    keys = jax.random.split(jax.random.key(1), len(runs))
    rates = jnp.array([0.0, 0.3, 0.6])

    def call(path, key, rate, *arrays):
        dropout = attention.EdgeDropout(key, rate)
        return value_and_gradients("ood", build(DIRECTED, path), *arrays, dropout)

    at_once = jax.vmap(partial(call, "sparse"))(keys, rates, *batch)
    for k in runs:
        alone = call("segment", keys[k], rates[k], *(x[k] for x in batch))
        assert_close(jax.tree.map(lambda x, k=k: x[k], at_once), alone)


@pytest.mark.parametrize("path", PATHS)
def test_large_gat_logits_do_not_overflow(path):
    case = DIRECTED
    r, s, h, g = inputs(9, heads=2, width=3, scale=200.0)
    out, gradients = value_and_gradients("gat", build(case, path), r, s, h, g, None)
    assert all(np.isfinite(x).all() for x in (out, *gradients))


def test_node_alone_attends_to_itself():
    graph = build(CASES["no edges"], "sparse")
    r, s, h, g = inputs(5, heads=2, width=3)
    out, _ = value_and_gradients("ood", graph, r, s, h, g, None)
    np.testing.assert_allclose(out, h, rtol=1e-6)


def test_softmax_sums_to_one_at_every_receiver():
    graph = build(DIRECTED, "segment")
    logits = 100 * np.random.default_rng(0).normal(size=(len(graph.receivers), 3))
    alpha = attention.softmax(graph, jnp.float32(logits))
    np.testing.assert_allclose(graphs.sum_edges(graph, alpha), 1.0, rtol=1e-6)


# Examples have one number of edges, so that they share a compilation.
NODES, EDGES = 6, 12
attend = jax.jit(attention.attend, static_argnums=1)
other_pairs = st.integers(0, NODES * NODES - 1).filter(lambda pair: pair % (NODES + 1))


@settings(max_examples=30, deadline=None)
@given(
    pairs=st.lists(other_pairs, unique=True, min_size=EDGES, max_size=EDGES),
    seed=st.integers(0, 2**16),
    rate=st.sampled_from([0.0, 0.5, 0.9]),
    name=st.sampled_from(sorted(LOGITS)),
)
def test_any_graph_and_values(pairs, seed, rate, name):
    case = (NODES, *np.divmod(pairs, NODES))
    r, s, h, _ = inputs(NODES, heads=2, width=3, seed=seed)
    dropout = edge_dropout(rate, seed)
    expected = oracle(name, dense_adjacency(*case), r, s, h, dropout)
    for path in PATHS:
        out = attend(build(case, path), LOGITS[name], r, s, h, dropout)
        assert_close(out, expected, 2e-5)


@pytest.mark.parametrize("edge_logit", [attention.OOD_LOGIT, attention.GAT_LOGIT])
def test_the_segment_kernel_holds_no_messages(edge_logit):
    """No array of edges x heads x width, neither for the sum nor for its gradient."""
    nodes, heads, width = 300, 8, 64
    ends = np.random.default_rng(0).integers(0, nodes, (2, 60_000))
    graph = graphs.from_edges(np.zeros((nodes, 1)), *ends, "segment")
    r, h = jnp.ones((nodes, heads)), jnp.ones((nodes, heads, width))
    dropout = attention.EdgeDropout(jax.random.key(0), 0.6)

    def loss(r, h):
        return jnp.sum(attention.attend(graph, edge_logit, r, r, h, dropout) ** 2)

    compiled = jax.jit(jax.grad(loss, (0, 1))).lower(r, h).compile()
    held = compiled.memory_analysis().temp_size_in_bytes
    assert held < 0.5 * 4 * graph.receivers.shape[0] * heads * width


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
def test_a_training_step_lowers_for_accelerators(platform):
    """Two runs in one vmap, as on an accelerator; nothing is run."""
    nodes = 12
    ends = np.random.default_rng(0).integers(0, nodes, (2, 40))
    graph = graphs.from_edges(np.ones((nodes, 3), np.float32), *ends, "segment")
    mask = np.arange(nodes) < 6
    split = Split(np.arange(nodes, dtype=np.int32) % 3, ~mask, mask, mask, mask)
    method = METHODS["oodgat"]
    recipe = recipes.recipe(None, method) | {"hidden": 4, "heads": 2}
    runs = experiment.make_runs(
        method, [recipe] * 2, [split] * 2, experiment.keys([0, 1])
    )
    task = methods.assemble(method, recipes.module(method, recipe, 2))

    def two_steps(graph, runs):
        def one(run):
            state = training.start(task, training.Schedule(), graph, run)
            return training.train_step(task, graph, run, state)[1]

        return jax.vmap(one)(runs)

    exported = jax.export.export(jax.jit(two_steps), platforms=[platform])(graph, runs)
    assert exported.platforms == (platform,)
