"""Graph attention as one function, by segment softmax or by sparse products.

    alpha_ij = softmax over j in N(i) and i of e_ij
    out_i    = sum over j of keep_ij alpha_ij h_j

An edge logit is a function of one number of the receiver i and one of the sender j,

    e_ij = constant + linear x + absolute |x|,  x = r_i +- s_j

OODGAT's is 1 - |w_i - w_j| (eq. 2); GAT's, leaky_relu(r_i + s_j), is 0.6 x + 0.4 |x|.

`_attend_segment` is the definition, and what accelerators run. `_attend_sparse`
has the same values and gradients from sparse products alone: since e_ij depends on
node numbers only, the gradient of alpha is never needed per edge and width. With g the
incoming gradient and e'_ij = linear + absolute sign(x) the slope,

    de_ij = alpha_ij (keep_ij g_i.h_j - g_i.out_i)
    dh_j  = sum_i keep_ij alpha_ij g_i
    dr_i  = g_i . sum_j e'_ij keep_ij alpha_ij h_j - (g_i.out_i) sum_j e'_ij alpha_ij
    ds_j  = h_j . sum_i e'_ij keep_ij alpha_ij g_i - sum_i e'_ij alpha_ij (g_i.out_i)

An edge needs its weight exp(e_ij) and the sign of x for that: they are kept as one
number, the signed weight. Products with it and with its absolute value are all.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs
from oodgat_jax.dropout import keep
from oodgat_jax.graphs import sparse, sum_by, take
from oodgat_jax.kernels import attention as native
from oodgat_jax.kernels import library
from oodgat_jax.models import edge_blocks
from oodgat_jax.types import AnyArray, Array


class EdgeLogit(NamedTuple):
    """e(x) = constant + linear x + absolute |x| of x = r_i + sign s_j.

    The slope of |x| at 0 is taken as 1. Where r and s are the same numbers, as in
    OODGAT, the two sides of a self-loop cancel.
    """

    sign: float  # of the sender's number
    constant: float
    linear: float
    absolute: float
    bounded: bool  # so that its softmax needs no maximum taken out

    def argument(self, r_i: Array, s_j: Array) -> Array:
        """Returns x."""
        return r_i + self.sign * s_j

    def value(self, x: Array) -> Array:
        """Returns e(x)."""
        magnitude = jnp.where(x >= 0, x, -x)  # `jnp.abs` has slope 0 at 0
        return self.constant + self.mix(x, magnitude)

    def mix(self, even: Array, odd: Array) -> Array:
        """Returns linear even + absolute odd, without the work of a zero factor."""
        return self.absolute * odd + (self.linear * even if self.linear else 0.0)


# OODGAT, eq. 2: 1 - |w_i - w_j|, for OOD scores w in [0, 1].
OOD_LOGIT = EdgeLogit(sign=-1.0, constant=1.0, linear=0.0, absolute=-1.0, bounded=True)
# GAT: leaky_relu(r_i + s_j) with slope 0.2.
GAT_LOGIT = EdgeLogit(sign=1.0, constant=0.0, linear=0.6, absolute=0.4, bounded=False)


class EdgeDropout(NamedTuple):
    """Dropout on normalized attention weights.

    Bits belong to an edge's number in the whole graph, so that a graph has the same
    ones however it is spread over devices.
    """

    key: Array
    rate: Array | float
    numbers: AnyArray | None = None  # [E] in the whole graph, if the edges are a part
    size: AnyArray | None = None  # edges of the whole graph, if they are a part

    def factors(self, edges: Array, heads: int) -> Array:
        """Returns keep_ij of all heads for the edges at these places, [E] -> [H, E]."""
        size = edges.shape[0] if self.size is None else self.size
        if self.numbers is not None:
            edges = take(self.numbers, edges)
        first = size * jnp.arange(heads, dtype=jnp.uint32)[:, None]
        return keep(self.key, first + edges.astype(jnp.uint32), self.rate)


def attend(
    graph: jraph.GraphsTuple,
    edge_logit: EdgeLogit,
    receiver: Array,
    sender: Array,
    h: Array,
    dropout: EdgeDropout | None = None,
) -> Array:
    """Sums over neighbors, weighted by attention, per head.

    Args:
      graph: its pattern, or the lack of one, chooses the path.
      edge_logit: what an edge thinks of (receiver number, sender number).
      receiver: r [N, H].
      sender: s [N, H].
      h: what is aggregated, [N, H, D].
      dropout: on alpha, or None.

    Returns:
      [N, H, D].
    """
    pattern = graphs.pattern(graph)
    same = receiver is sender
    sender, h = graphs.sources(graph, sender), graphs.sources(graph, h)
    if pattern is None:
        return _attend_segment(graph, edge_logit, receiver, sender, h, dropout)
    if graphs.context(graph).native is not None and library.serves(receiver, sender, h):
        return native.attend(edge_logit, pattern, receiver, sender, h, dropout)
    # On a symmetric graph, with the same numbers on both sides, x_ij = -x_ji.
    mirrored = (
        pattern.second is None
        and edge_logit.sign == -1.0
        and edge_logit.linear == 0.0
        and same
    )
    return _attend_sparse(edge_logit, mirrored, pattern, receiver, sender, h, dropout)


def softmax(graph: jraph.GraphsTuple, logits: Array) -> Array:
    """Normalizes edge logits [E, H] over the edges into each node."""
    largest = jax.ops.segment_max(
        jax.lax.stop_gradient(logits),
        graph.receivers,
        graphs.num_nodes(graph),
        indices_are_sorted=True,
    )
    weights = jnp.exp(logits - take(largest, graph.receivers))
    return weights / take(graphs.sum_edges(graph, weights), graph.receivers)


def attend_logits(
    graph: jraph.GraphsTuple,
    logits: Array,
    h: Array,
    dropout: EdgeDropout | None = None,
) -> Array:
    """Sums over neighbors, weighted by the softmax of edge logits, per head.

    Args:
      graph: its pattern, or the lack of one, chooses the kernel of the sum.
      logits: e [E, H].
      h: what is aggregated, [N, H, D], by position of the senders.
      dropout: on alpha, or None.

    Returns:
      [N, H, D].
    """
    alpha = softmax(graph, logits)
    if dropout is not None:
        alpha *= dropout.factors(jnp.arange(alpha.shape[0]), alpha.shape[1]).T
    return edge_blocks.weighted_sum(graph, alpha, h)


def _attend_segment(graph, edge_logit, receiver, sender, h, dropout):
    r_i, s_j = take(receiver, graph.receivers), take(sender, graph.senders)
    logits = edge_logit.value(edge_logit.argument(r_i, s_j))
    return attend_logits(graph, logits, h, dropout)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attend_sparse(edge_logit, mirrored, pattern, receiver, sender, h, dropout):
    args = (pattern, receiver, sender, h, dropout)
    return _sparse_forward(edge_logit, mirrored, *args)[0]


def _sparse_forward(edge_logit, mirrored, pattern, receiver, sender, h, dropout):
    # alpha = weights / total; the division is left to the end, so that alpha itself
    # is never made.
    signed = _signed_weights(edge_logit, pattern, receiver, sender)
    total = _sum_by(pattern.rows, jnp.abs(signed), receiver.shape[0])
    h = jnp.swapaxes(h, 0, 1)  # [H, N, D]
    kept = _dropped(signed, jnp.arange(signed.shape[1]), dropout)
    out = _products(pattern, jnp.abs(kept), h) / total[..., None]
    residuals = (pattern, h, dropout, signed, total, kept, out)
    return jnp.swapaxes(out, 0, 1), residuals


def _sparse_backward(edge_logit, mirrored, residuals, g):
    pattern, h, dropout, signed, total, kept, out = residuals
    rows, columns = pattern.shape
    g = jnp.swapaxes(g, 0, 1) / total[..., None]  # [H, N, D]
    g_out = _dot(g, out)

    mix = edge_logit.mix
    towards = mix(total * g_out, _dot(g, _products(pattern, kept, h)))
    sloped = mix(jnp.abs(signed), signed)
    dr = towards - g_out * _sum_by(pattern.rows, sloped, rows)

    if mirrored:
        kept = _dropped(_mirror(edge_logit, signed), pattern.by_column, dropout)
    else:
        kept = _take(kept, pattern.by_column)
    dh = _products_transposed(pattern, jnp.abs(kept), g)
    back = _dot(h, _products_transposed(pattern, kept, g))
    ds = mix(_dot(h, dh), back)
    sloped *= _take(g_out, pattern.rows)
    ds -= _sum_by(pattern.columns, sloped, columns, is_sorted=False)
    return None, dr.T, edge_logit.sign * ds.T, jnp.swapaxes(dh, 0, 1), None


_attend_sparse.defvjp(_sparse_forward, _sparse_backward)


def _signed_weights(edge_logit, pattern, receiver, sender):
    """Computes exp(e_ij), scaled if need be, with the sign of x: [H, E]."""
    r_i = _take(receiver.T, pattern.rows)
    s_j = _take(sender.T, pattern.columns)
    x = edge_logit.argument(r_i, s_j)
    logits = edge_logit.value(x)
    if not edge_logit.bounded:
        largest = jax.ops.segment_max(
            logits.T, pattern.rows, receiver.shape[0], indices_are_sorted=True
        )
        logits -= _take(largest.T, pattern.rows)
    return jnp.where(x >= 0, 1.0, -1.0) * jnp.exp(logits)


def _mirror(edge_logit, signed):
    """Returns signed weights of edges ji in place of ij; x = 0 is positive in both."""
    at_zero = jnp.exp(jnp.float32(edge_logit.constant))
    return jnp.where(signed >= at_zero, signed, -signed)


def _dropped(signed, edges, dropout):
    """Multiplies the signed weights of these edges with keep_ij: [H, E]."""
    if dropout is None:
        return signed
    return signed * dropout.factors(edges, signed.shape[0])


def _dot(x, y):
    """Multiplies rows, [H, N, D] -> [H, N]; factors inside of the sum are slow."""
    return jnp.sum(x * y, -1)


def _take(x, ids):
    """Gathers x [H, N] -> [H, E], head by head, which is faster than all at once."""
    return jnp.stack([take(values, ids) for values in x])


def _sum_by(ids, values, size, is_sorted=True):
    """Sums [H, E] -> [H, N]; all heads at once are as fast as one."""
    return sum_by(ids, values.T, size, is_sorted).T


def _products(pattern, values, x):
    """Multiplies sparse matrices of all heads: [H, E], [H, K, D] -> [H, R, D]."""
    return _block_product(values, pattern.columns, pattern.row_ptr, x)


def _products_transposed(pattern, values, x):
    """Multiplies the transposed matrices, values in column order."""
    return _block_product(values, pattern.rows_by_column, pattern.column_ptr, x)


def _block_product(values, columns, row_ptr, x):
    # One call of the kernel: the heads are the blocks of a block-diagonal matrix.
    heads, nodes, _ = x.shape
    edges, rows = columns.shape[0], row_ptr.shape[0] - 1
    row_ptr = jnp.append(_shifted(row_ptr[:-1], heads, edges), heads * edges)
    columns = _shifted(columns, heads, nodes)
    x = x.reshape(heads * nodes, -1)
    out = sparse.csr_product(values.reshape(-1), columns, row_ptr, x)
    return out.reshape(heads, rows, -1)


def _shifted(indices, heads, by):
    """Indices [M] of one head as those of all heads, [H * M]."""
    return (indices + by * jnp.arange(heads, dtype=jnp.int32)[:, None]).reshape(-1)
