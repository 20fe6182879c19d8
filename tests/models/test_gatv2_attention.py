"""GATv2's attention against automatic differentiation of its plain definition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oodgat_jax import graphs
from oodgat_jax.models import attention, edge_blocks, gatv2_attention


def example(path, nodes=13, edges=50, heads=3, width=5, seed=0):
    draw = np.random.default_rng(seed)
    ends = draw.integers(0, nodes, (2, edges))
    graph = graphs.from_edges(np.zeros((nodes, 1)), *ends, path)
    h = draw.normal(size=(nodes, heads, width)).astype(np.float32)
    query = draw.normal(size=(heads, width)).astype(np.float32)
    g = draw.normal(size=h.shape).astype(np.float32)
    return graph, jnp.asarray(query), jnp.asarray(h), jnp.asarray(g)


def plain(graph, query, h, dropout):
    u = h[graph.receivers] + h[graph.senders]
    logits = jnp.sum(query * jax.nn.leaky_relu(u, 0.2), -1)
    alpha = attention.softmax(graph, logits)
    if dropout is not None:
        alpha *= dropout.factors(jnp.arange(len(alpha)), alpha.shape[1]).T
    return graphs.sum_edges(graph, alpha[..., None] * h[graph.senders])


def in_blocks(graph, query, h, dropout):
    logits = gatv2_attention.pair_logits(graph, query, h)
    return attention.attend_logits(graph, logits, h, dropout)


@pytest.mark.parametrize("path", ["sparse", "segment"])
@pytest.mark.parametrize(("rate", "edges_per_block"), [(0.6, 7), (None, 10_000)])
def test_values_and_gradients(monkeypatch, path, rate, edges_per_block):
    graph, query, h, g = example(path)
    monkeypatch.setattr(edge_blocks, "BLOCK", edges_per_block * query.size)
    dropout = rate and attention.EdgeDropout(jax.random.key(3), rate)

    def value_and_gradient(function):
        @jax.jit
        def call(query, h, g):
            out, pull = jax.vjp(lambda *a: function(graph, *a, dropout), query, h)
            return out, pull(g)

        return call(query, h, g)

    got, expected = value_and_gradient(in_blocks), value_and_gradient(plain)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), got, expected
    )


@pytest.mark.parametrize("path", ["sparse", "segment"])
def test_batched(path):
    graph, query, h, g = example(path)
    batch = jnp.stack([h, 2 * h, -h])

    @jax.grad
    def gradient(h):
        return jnp.sum(g * in_blocks(graph, query, h, None))

    one_by_one = jax.jit(lambda batch: jax.lax.map(gradient, batch))(batch)
    at_once = jax.jit(jax.vmap(gradient))(batch)
    np.testing.assert_allclose(at_once, one_by_one, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("path", ["sparse", "segment"])
def test_holds_no_array_of_edges_times_heads_times_width(path):
    graph, query, h, g = example(path, nodes=300, edges=60_000, heads=8, width=64)

    def loss(query, h):
        return jnp.sum(g * in_blocks(graph, query, h, None))

    compiled = jax.jit(jax.grad(loss, (0, 1))).lower(query, h).compile()
    held = compiled.memory_analysis().temp_size_in_bytes
    full_size = 4 * graph.receivers.shape[0] * query.size
    assert full_size > 5 * 4 * edge_blocks.BLOCK
    assert held < 0.8 * full_size
