"""Graph attention whose edge logits need all of both nodes' vectors (GATv2).

    e_ij  = a . leaky_relu(h_i + h_j)
    out_i = sum over j of keep_ij alpha_ij h_j,  alpha = softmax over j of e_ij

This is work per edge, head and width, [E, H, D]. It is done in blocks of edges, and
the gradients are written by hand to be done so too: no array of that size is held.
With G_i the sum over the edges at i, incoming and outgoing, of
de_ij leaky_relu'(h_i + h_j), and since leaky_relu(u) = u leaky_relu'(u),

    dh_i = a G_i,  da = sum over i of h_i G_i
"""

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs
from oodgat_jax.graphs import sparse
from oodgat_jax.models import attention
from oodgat_jax.types import Array

SLOPE = 0.2  # of leaky_relu
BLOCK = 1 << 20  # numbers in a block, edges x heads x width; fastest on a CPU


def attend(
    graph: jraph.GraphsTuple,
    logits: Array,
    h: Array,
    dropout: attention.EdgeDropout | None = None,
) -> Array:
    """Sums over neighbors, weighted by attention, per head.

    Args:
      graph: its pattern, or the lack of one, chooses the path.
      logits: e [E, H].
      h: what is aggregated, [N, H, D], by position of the senders.
      dropout: on alpha, or None.

    Returns:
      [N, H, D].
    """
    alpha = attention.softmax(graph, logits)
    if dropout is not None:
        alpha *= dropout.factors(jnp.arange(logits.shape[0]), logits.shape[1]).T
    return weighted_sum(graph, alpha, h)


@jax.custom_vjp
def pair_logits(graph: jraph.GraphsTuple, query: Array, h: Array) -> Array:
    """Computes e_ij = a . leaky_relu(h_i + h_j): [H, D], [N, H, D] -> [E, H].

    h is by position of the senders, among which a piece's own nodes come first.
    """
    flat, weights = h.reshape(h.shape[0], -1), _by_head(query)

    def block(edges):
        receivers, senders = edges
        u = flat[receivers] + flat[senders]
        return jnp.where(u > 0, u, SLOPE * u) @ weights

    return _map_blocks(block, (graph.receivers, graph.senders), flat.shape[1])


def _pair_forward(graph, query, h):
    return pair_logits(graph, query, h), (graph, query, h)


def _pair_backward(residuals, gradient):
    graph, query, h = residuals
    flat = h.reshape(h.shape[0], -1)

    def add_block(total, edges):
        receivers, senders, d_logits = edges
        u = flat[receivers] + flat[senders]
        slopes = jnp.where(u > 0, 1.0, SLOPE) * jnp.repeat(d_logits, h.shape[2], 1)
        total = total.at[receivers].add(slopes, indices_are_sorted=True)
        return total.at[senders].add(slopes)

    edges = (graph.receivers, graph.senders, gradient)
    total = _fold_blocks(add_block, jnp.zeros_like(flat), edges).reshape(h.shape)
    return None, jnp.sum(h * total, 0), query * total


pair_logits.defvjp(_pair_forward, _pair_backward)


@jax.custom_vjp
def weighted_sum(graph: jraph.GraphsTuple, weights: Array, h: Array) -> Array:
    """Computes out_i = sum_j weights_ij h_j: [E, H], [N, H, D] -> [N, H, D].

    h is by position of the senders.
    """
    if graphs.pattern(graph) is None:
        ends = (graph.receivers, graph.senders)
        return _scatter(*ends, weights, h, graphs.num_nodes(graph), sorted_to=True)
    return _per_head(sparse.matmul, graphs.pattern(graph), weights, h)


def _sum_forward(graph, weights, h):
    return weighted_sum(graph, weights, h), (graph, weights, h)


def _sum_backward(residuals, gradient):
    graph, weights, h = residuals
    flat, g = (x.reshape(x.shape[0], -1) for x in (h, gradient))
    ones = _by_head(jnp.ones(h.shape[1:], h.dtype))

    def block(edges):
        receivers, senders = edges
        return (g[receivers] * flat[senders]) @ ones

    edges = (graph.receivers, graph.senders)
    d_weights = _map_blocks(block, edges, flat.shape[1])
    pattern = graphs.pattern(graph)
    if pattern is None:
        ends = (graph.senders, graph.receivers)
        dh = _scatter(*ends, weights, gradient, h.shape[0])
    else:
        dh = _per_head(sparse.matmul_transposed, pattern, weights, gradient)
    return None, d_weights, dh


weighted_sum.defvjp(_sum_forward, _sum_backward)


def _by_head(weights):
    """Arranges weights [H, D] -> [H * D, H]: a product with it sums each head.

    It takes about two thirds of the time of a sum over the last axis.
    """
    heads = jnp.eye(weights.shape[0], dtype=weights.dtype)
    return (weights[:, :, None] * heads[:, None]).reshape(-1, weights.shape[0])


def _per_head(product, pattern, values, x):
    """Multiplies sparse matrices head by head: [E, H], [N, H, D] -> [N, H, D]."""
    heads = range(x.shape[1])
    return jnp.stack([product(values[:, k], pattern, x[:, k]) for k in heads], 1)


def _scatter(to, source, weights, x, size, sorted_to=False):
    """Adds weights_e x[source_e] to the row to_e: [E, H], [K, H, D] -> [size, H, D]."""
    flat = x.reshape(x.shape[0], -1)

    def add_block(total, edges):
        to, source, weights = edges
        values = jnp.repeat(weights, x.shape[2], 1) * flat[source]
        return total.at[to].add(values, indices_are_sorted=sorted_to)

    edges, start = (to, source, weights), jnp.zeros((size, flat.shape[1]), flat.dtype)
    return _fold_blocks(add_block, start, edges).reshape(size, *x.shape[1:])


def _map_blocks(function, edges, numbers):
    """Maps a function of blocks of edge values over all edges: [E, ...]."""
    size = edges[0].shape[0]
    values = jax.lax.map(function, _blocks(edges, numbers))
    return values.reshape(-1, *values.shape[2:])[:size]


def _fold_blocks(function, start, edges):
    """Folds a function (total, block of edge values) -> total over all edges."""
    blocks = _blocks(edges, start.shape[1])
    return jax.lax.scan(lambda sum, b: (function(sum, b), None), start, blocks)[0]


def _blocks(edges, numbers):
    """Splits edge values [E, ...] into [blocks, B, ...].

    The last block is filled up with the last edge's nodes, so that they stay in
    order, and with zeros as its values.
    """
    size = edges[0].shape[0]
    length = min(size, max(1, BLOCK // numbers))

    def split(values):
        ids = jnp.issubdtype(values.dtype, jnp.integer)
        padding = [(0, -size % length), *[(0, 0)] * (values.ndim - 1)]
        values = jnp.pad(values, padding, mode="edge" if ids else "constant")
        return values.reshape(-1, length, *values.shape[1:])

    return jax.tree.map(split, edges)
