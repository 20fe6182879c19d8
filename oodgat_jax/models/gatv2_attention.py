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

from oodgat_jax.models import edge_blocks
from oodgat_jax.types import Array

SLOPE = 0.2  # of leaky_relu


@jax.custom_vjp
def pair_logits(graph: jraph.GraphsTuple, query: Array, h: Array) -> Array:
    """Computes e_ij = a . leaky_relu(h_i + h_j): [H, D], [N, H, D] -> [E, H].

    h is by position of the senders, among which a shard's own nodes come first.
    """
    flat, weights = h.reshape(h.shape[0], -1), edge_blocks.by_head(query)

    def block(edges):
        receivers, senders = edges
        u = flat[receivers] + flat[senders]
        return jnp.where(u > 0, u, SLOPE * u) @ weights

    return edge_blocks.map_blocks(
        block, (graph.receivers, graph.senders), flat.shape[1]
    )


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
    total = edge_blocks.fold_blocks(add_block, jnp.zeros_like(flat), edges).reshape(
        h.shape
    )
    return None, jnp.sum(h * total, 0), query * total


pair_logits.defvjp(_pair_forward, _pair_backward)
