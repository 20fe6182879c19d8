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

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs, sparse
from oodgat_jax.types import Array

EdgeLogit = Callable[[Array, Array], Array]


def ood_logit(w_i: Array, w_j: Array) -> Array:
    """OODGAT, eq. 2: nodes attend to nodes of a similar OOD score."""
    return 1.0 - jnp.abs(w_i - w_j)


def gat_logit(r_i: Array, s_j: Array) -> Array:
    """GAT: leaky_relu with slope 0.2."""
    return jax.nn.leaky_relu(r_i + s_j, 0.2)


def attend(
    graph: jraph.GraphsTuple,
    edge_logit: EdgeLogit,
    receiver: Array,
    sender: Array,
    h: Array,
    keep: Array | None = None,
) -> Array:
    """Attention-weighted sum over neighbours, per head.

    Args:
      graph: its pattern, or the lack of one, chooses the path.
      edge_logit: elementwise function of (receiver number, sender number).
      receiver: r [N, H].
      sender: s [N, H].
      h: what is aggregated, [N, H, D].
      keep: dropout factors on alpha, [E, H], or None.

    Returns:
      [N, H, D].
    """
    if graph.globals is None:
        return _attend_segment(graph, edge_logit, receiver, sender, h, keep)
    return _attend_sparse(edge_logit, graph, receiver, sender, h, keep)


def softmax(graph: jraph.GraphsTuple, logits: Array) -> Array:
    """Softmax of edge logits [E, H] over the edges into each node."""
    weights, total = _exponentials(graph, logits)
    return weights / total[graph.receivers]


def _exponentials(graph: jraph.GraphsTuple, logits: Array) -> tuple[Array, Array]:
    """Softmax before the division: weights [E, H] and their sums [N, H]."""
    largest = jax.ops.segment_max(
        jax.lax.stop_gradient(logits),
        graph.receivers,
        graphs.num_nodes(graph),
        indices_are_sorted=True,
    )
    weights = jnp.exp(logits - largest[graph.receivers])
    return weights, graphs.sum_edges(graph, weights)


def _attend_segment(graph, edge_logit, receiver, sender, h, keep):
    logits = edge_logit(receiver[graph.receivers], sender[graph.senders])
    alpha = softmax(graph, logits)
    alpha = alpha if keep is None else alpha * keep
    return graphs.sum_edges(graph, alpha[..., None] * h[graph.senders])


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend_sparse(edge_logit, graph, receiver, sender, h, keep):
    return _sparse_forward(edge_logit, graph, receiver, sender, h, keep)[0]


def _sparse_forward(edge_logit, graph, receiver, sender, h, keep):
    # The division by the sum is left to the end, so that alpha itself is never made.
    logits = edge_logit(receiver[graph.receivers], sender[graph.senders])
    if edge_logit is ood_logit:  # in [0, 1]: no maximum needed
        weights = jnp.exp(logits)
        total = graphs.sum_edges(graph, weights)
    else:
        weights, total = _exponentials(graph, logits)
    kept = _heads_first(weights if keep is None else weights * keep)
    h = jnp.swapaxes(h, 0, 1)  # [H, N, D]
    out = _products(graph.globals, kept, h) / total.T[..., None]
    residuals = (graph, receiver, sender, h, weights, total, kept, out)
    return jnp.swapaxes(out, 0, 1), residuals


def _sparse_backward(edge_logit, residuals, g):
    graph, receiver, sender, h, weights, total, kept, out = residuals
    logits, slopes = jax.vjp(
        edge_logit, receiver[graph.receivers], sender[graph.senders]
    )
    r_slope, s_slope = slopes(jnp.ones_like(logits))
    g = jnp.swapaxes(g, 0, 1) / total.T[..., None]  # [H, N, D]
    g_out = jnp.sum(g * out, -1).T  # [N, H]
    towards = _products(graph.globals, _heads_first(r_slope, kept), h)
    dh = _products_transposed(graph.globals, kept, g)
    back = _products_transposed(graph.globals, _heads_first(s_slope, kept), g)
    dr = jnp.sum(g * towards, -1).T - g_out * graphs.sum_edges(graph, r_slope * weights)
    ds = jnp.sum(h * back, -1).T - jax.ops.segment_sum(
        s_slope * weights * g_out[graph.receivers],
        graph.senders,
        graphs.num_nodes(graph),
    )
    return None, dr, ds, jnp.swapaxes(dh, 0, 1), None


_attend_sparse.defvjp(_sparse_forward, _sparse_backward)


def _products(pattern, values, x):
    """Sparse products of all heads: values [H, E], x [H, N, D] -> [H, N, D]."""
    return _block_product(values, pattern.columns, pattern.row_ptr, x)


def _products_transposed(pattern, values, x):
    """The same with the transposed matrix."""
    order = _shifted(pattern.by_column, *values.shape)
    return _block_product(
        values.reshape(-1)[order], pattern.rows_by_column, pattern.column_ptr, x
    )


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


def _heads_first(values, factors=None):
    """[E, H] -> [H, E] in memory, times factors [H, E] if given.

    The barriers keep the compiler from recomputing the values inside of slower
    gathers and transposes.
    """
    values = jax.lax.optimization_barrier(values)
    heads = jnp.stack([values[:, head] for head in range(values.shape[1])])
    heads = heads if factors is None else heads * factors
    return jax.lax.optimization_barrier(heads)
