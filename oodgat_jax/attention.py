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
    largest = jax.ops.segment_max(
        jax.lax.stop_gradient(logits),
        graph.receivers,
        graphs.num_nodes(graph),
        indices_are_sorted=True,
    )
    weights = jnp.exp(logits - largest[graph.receivers])
    return weights / graphs.sum_edges(graph, weights)[graph.receivers]


def _attend_segment(graph, edge_logit, receiver, sender, h, keep):
    logits = edge_logit(receiver[graph.receivers], sender[graph.senders])
    alpha = softmax(graph, logits)
    alpha = alpha if keep is None else alpha * keep
    return graphs.sum_edges(graph, alpha[..., None] * h[graph.senders])


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend_sparse(edge_logit, graph, receiver, sender, h, keep):
    return _sparse_forward(edge_logit, graph, receiver, sender, h, keep)[0]


def _sparse_forward(edge_logit, graph, receiver, sender, h, keep):
    logits = edge_logit(receiver[graph.receivers], sender[graph.senders])
    alpha = softmax(graph, logits)
    kept = alpha if keep is None else alpha * keep
    out = _per_head(sparse.matmul, graph.globals, kept, h)
    return out, (graph, receiver, sender, h, alpha, kept, out)


def _sparse_backward(edge_logit, residuals, g):
    graph, receiver, sender, h, alpha, kept, out = residuals
    logits, slopes = jax.vjp(
        edge_logit, receiver[graph.receivers], sender[graph.senders]
    )
    r_slope, s_slope = slopes(jnp.ones_like(logits))
    g_out = jnp.sum(g * out, -1)  # [N, H]
    dh = _per_head(sparse.matmul_transposed, graph.globals, kept, g)
    towards = _per_head(sparse.matmul, graph.globals, r_slope * kept, h)
    back = _per_head(sparse.matmul_transposed, graph.globals, s_slope * kept, g)
    dr = jnp.sum(g * towards, -1) - g_out * graphs.sum_edges(graph, r_slope * alpha)
    ds = jnp.sum(h * back, -1) - jax.ops.segment_sum(
        s_slope * alpha * g_out[graph.receivers],
        graph.senders,
        graphs.num_nodes(graph),
    )
    return None, dr, ds, dh, None


_attend_sparse.defvjp(_sparse_forward, _sparse_backward)


def _per_head(product, pattern, values, x):
    """Applies a product of values [E, H] and x [N, H, D] head by head -> [N, H, D]."""
    heads = [
        product(values[:, head], pattern, x[:, head]) for head in range(x.shape[1])
    ]
    return jnp.stack(heads, axis=1)
