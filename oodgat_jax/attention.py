"""Graph attention as one function, by segment softmax or by sparse products.

    alpha_ij = softmax over j in N(i) and i of e_ij
    out_i    = sum over j of keep_ij alpha_ij h_j

Edge logits e_ij are a function of one number of the receiver i and one of the sender
j. OODGAT's are 1 - |w_i - w_j| (eq. 2), GAT's are leaky_relu(r_i + s_j).

`_attend_segment` is the definition, and the path of accelerators. `_attend_sparse`
has the same values and gradients from sparse products alone: since e_ij depends on
node numbers only, the gradient of alpha is never needed per edge and width. With g the
incoming gradient, r'_ij = de_ij/dr_i and s'_ij = de_ij/ds_j,

    de_ij = alpha_ij (keep_ij g_i.h_j - g_i.out_i)
    dh_j  = sum_i keep_ij alpha_ij g_i
    dr_i  = g_i . sum_j r'_ij keep_ij alpha_ij h_j - (g_i.out_i) sum_j r'_ij alpha_ij
    ds_j  = h_j . sum_i s'_ij keep_ij alpha_ij g_i - sum_i s'_ij alpha_ij (g_i.out_i)
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs, sparse
from oodgat_jax.dropout import keep
from oodgat_jax.graphs import sum_by, take
from oodgat_jax.types import Array

EdgeLogit = Callable[[Array, Array], Array]


def ood_logit(w_i: Array, w_j: Array) -> Array:
    """OODGAT, eq. 2: 1 - |w_i - w_j|, nodes attend to nodes of a similar OOD score.

    Equal scores have slope 0 (that of `jnp.abs` is 1 there), so that the slopes of an
    edge and of its reverse are each other's negatives, always.
    """
    difference = w_i - w_j
    return 1.0 - difference * jax.lax.stop_gradient(jnp.sign(difference))


def gat_logit(r_i: Array, s_j: Array) -> Array:
    """GAT: leaky_relu with slope 0.2."""
    return jax.nn.leaky_relu(r_i + s_j, 0.2)


class EdgeDropout(NamedTuple):
    """Dropout on normalised attention weights."""

    key: Array
    rate: Array | float

    def factors(self, edges: Array, heads: int) -> Array:
        """keep_ij for edge numbers [M] -> [M, H], the same wherever they are asked."""
        positions = edges.astype(jnp.uint32)[:, None] * heads
        positions = positions + jnp.arange(heads, dtype=jnp.uint32)
        return keep(self.key, positions, self.rate)


def attend(
    graph: jraph.GraphsTuple,
    edge_logit: EdgeLogit,
    receiver: Array,
    sender: Array,
    h: Array,
    dropout: EdgeDropout | None = None,
) -> Array:
    """Attention-weighted sum over neighbours, per head.

    Args:
      graph: its pattern, or the lack of one, chooses the path.
      edge_logit: elementwise function of (receiver number, sender number).
      receiver: r [N, H].
      sender: s [N, H].
      h: what is aggregated, [N, H, D].
      dropout: on alpha, or None.

    Returns:
      [N, H, D].
    """
    if graph.globals is None:
        return _attend_segment(graph, edge_logit, receiver, sender, h, dropout)
    pattern = graph.globals
    # On a symmetric graph, with one number per node, e_ij = e_ji.
    one_number = edge_logit is ood_logit and receiver is sender
    mirrored = one_number and pattern.second is None
    return _attend_sparse(edge_logit, mirrored, pattern, receiver, sender, h, dropout)


def softmax(graph: jraph.GraphsTuple, logits: Array) -> Array:
    """Softmax of edge logits [E, H] over the edges into each node."""
    largest = jax.ops.segment_max(
        jax.lax.stop_gradient(logits),
        graph.receivers,
        graphs.num_nodes(graph),
        indices_are_sorted=True,
    )
    weights = jnp.exp(logits - take(largest, graph.receivers))
    return weights / take(graphs.sum_edges(graph, weights), graph.receivers)


def _attend_segment(graph, edge_logit, receiver, sender, h, dropout):
    logits = edge_logit(take(receiver, graph.receivers), take(sender, graph.senders))
    alpha = softmax(graph, logits)
    if dropout is not None:
        alpha *= dropout.factors(jnp.arange(logits.shape[0]), logits.shape[1])
    return graphs.sum_edges(graph, alpha[..., None] * take(h, graph.senders))


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attend_sparse(edge_logit, mirrored, pattern, receiver, sender, h, dropout):
    args = (pattern, receiver, sender, h, dropout)
    return _sparse_forward(edge_logit, mirrored, *args)[0]


def _sparse_forward(edge_logit, mirrored, pattern, receiver, sender, h, dropout):
    # alpha = weights / total; the division is left to the end, so that alpha itself
    # is never made. The shift keeps exp in range, as the maximum does in a softmax.
    shift = _row_maximum(edge_logit, pattern, receiver, sender)
    edges = _Edges(pattern.rows, pattern.columns, jnp.arange(pattern.rows.shape[0]))
    weights = _weights(edge_logit, edges, receiver, sender, shift)
    total = sum_by(edges.rows, weights, receiver.shape[0])
    h = jnp.swapaxes(h, 0, 1)  # [H, N, D]
    kept = _heads_first(_dropped(weights, edges, dropout))
    out = _products(pattern, kept, h) / total.T[..., None]
    residuals = (pattern, receiver, sender, h, dropout, shift, total, kept, out)
    return jnp.swapaxes(out, 0, 1), residuals


def _sparse_backward(edge_logit, mirrored, residuals, g):
    pattern, receiver, sender, h, dropout, shift, total, kept, out = residuals
    g = jnp.swapaxes(g, 0, 1) / total.T[..., None]  # [H, N, D]
    g_out = jnp.sum(g * out, -1).T  # [N, H]

    edges = _Edges(pattern.rows, pattern.columns, jnp.arange(pattern.rows.shape[0]))
    r_slope, _ = _slopes(edge_logit, edges, receiver, sender)
    weights = _weights(edge_logit, edges, receiver, sender, shift)
    towards = _products(pattern, _heads_first(r_slope) * kept, h)
    dr = jnp.sum(g * towards, -1).T
    dr -= g_out * sum_by(edges.rows, r_slope * weights, receiver.shape[0])

    # The column side is computed anew in column order from the nodes' numbers, which
    # is cheaper than to permute values of edges.
    edges = _Edges(pattern.rows_by_column, pattern.columns_by_column, pattern.by_column)
    if mirrored:
        s_slope = r_slope  # edge ji now stands where ij stood
    else:
        _, s_slope = _slopes(edge_logit, edges, receiver, sender)
        weights = _weights(edge_logit, edges, receiver, sender, shift)
    kept = _dropped(weights, edges, dropout)
    dh = _products_transposed(pattern, _heads_first(kept), g)
    back = _products_transposed(pattern, _heads_first(s_slope * kept), g)
    ds = jnp.sum(h * back, -1).T
    ds -= sum_by(
        edges.columns, s_slope * weights * take(g_out, edges.rows), sender.shape[0]
    )
    return None, dr, ds, jnp.swapaxes(dh, 0, 1), None


_attend_sparse.defvjp(_sparse_forward, _sparse_backward)


class _Edges(NamedTuple):
    """Edges in row or in column order."""

    rows: Array  # [E] receivers
    columns: Array  # [E] senders
    numbers: Array  # [E] position in row order


def _row_maximum(edge_logit, pattern, receiver, sender):
    """max_j e_ij [N, H]; none is needed for OODGAT, whose logits are in [0, 1]."""
    if edge_logit is ood_logit:
        return None
    logits = edge_logit(take(receiver, pattern.rows), take(sender, pattern.columns))
    return jax.ops.segment_max(
        logits, pattern.rows, receiver.shape[0], indices_are_sorted=True
    )


def _weights(edge_logit, edges, receiver, sender, shift):
    """exp(e_ij - shift_i): [E, H]."""
    logits = edge_logit(take(receiver, edges.rows), take(sender, edges.columns))
    return jnp.exp(logits if shift is None else logits - take(shift, edges.rows))


def _dropped(weights, edges, dropout):
    """keep_ij exp(e_ij): [E, H]."""
    if dropout is None:
        return weights
    return weights * dropout.factors(edges.numbers, weights.shape[1])


def _slopes(edge_logit, edges, receiver, sender):
    """de_ij/dr_i and de_ij/ds_j, [E, H] each."""
    logits, pullback = jax.vjp(
        edge_logit, take(receiver, edges.rows), take(sender, edges.columns)
    )
    return pullback(jnp.ones_like(logits))


def _products(pattern, values, x):
    """Sparse products of all heads: values [H, E], x [H, N, D] -> [H, N, D]."""
    return _block_product(values, pattern.columns, pattern.row_ptr, x)


def _products_transposed(pattern, values, x):
    """The same with the transposed matrix, values in column order."""
    return _block_product(values, pattern.rows_by_column, pattern.column_ptr, x)


def _block_product(values, columns, row_ptr, x):
    # One call of the kernel: the heads are the blocks of a block-diagonal matrix.
    heads, nodes, _ = x.shape
    edges = columns.shape[0]
    row_ptr = jnp.append(_shifted(row_ptr[:-1], heads, edges), heads * edges)
    columns = _shifted(columns, heads, nodes)
    x = x.reshape(heads * nodes, -1)
    out = sparse.csr_product(values.reshape(-1), columns, row_ptr, x)
    return out.reshape(heads, nodes, -1)


def _shifted(indices, heads, by):
    """Indices [M] of one head as those of all heads, [H * M]."""
    return (indices + by * jnp.arange(heads, dtype=jnp.int32)[:, None]).reshape(-1)


def _heads_first(values):
    """[E, H] -> [H, E]; as slices it is several times faster than as a transpose."""
    return jnp.stack([values[:, head] for head in range(values.shape[1])])
