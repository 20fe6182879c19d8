"""Graphs as jraph GraphsTuples: build and check on the host, propagate on device.

Every graph here has its edges sorted by (receiver, sender) and exactly one self-loop
per node, so that one edge list serves all layers. `globals` holds the edges' sparse
pattern where products should go through the CSR kernel, and None where segment
operations should be used; functions look at it, and at nothing else, to choose.
"""

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import scipy.sparse

from oodgat_jax import sparse
from oodgat_jax.types import Array, Dataset, InputError

PATHS = ("auto", "sparse", "segment")
DENSE_FROM = 0.2  # share of stored features above which a dense product is faster


def build(dataset: Dataset, path: str = "auto") -> jraph.GraphsTuple:
    """The graph of a data set, with the path chosen by platform unless forced."""
    return from_edges(dataset.features, dataset.senders, dataset.receivers, path)


def from_edges(
    features: np.ndarray | scipy.sparse.sparray,
    senders: np.ndarray,
    receivers: np.ndarray,
    path: str = "auto",
) -> jraph.GraphsTuple:
    """A graph from features [N, F] and directed edges, which may repeat or loop."""
    if path not in PATHS:
        raise InputError(f"Unknown path '{path}': choose one of {', '.join(PATHS)}.")
    num_nodes = features.shape[0]
    senders, receivers = _with_self_loops(senders, receivers, num_nodes)
    use_sparse = path == "sparse" or (path == "auto" and jax.default_backend() == "cpu")
    pattern = sparse.pattern(receivers, senders, (num_nodes, num_nodes))
    graph = jraph.GraphsTuple(
        nodes=_features(features),
        edges=None,
        senders=pattern.columns,
        receivers=pattern.rows,
        n_node=np.array([num_nodes], np.int32),
        n_edge=np.array([len(senders)], np.int32),
        globals=pattern if use_sparse else None,
    )
    return jax.tree.map(jnp.asarray, graph)


def num_nodes(graph: jraph.GraphsTuple) -> int:
    """N, as a static number."""
    return graph.nodes.shape[0]


def is_self_loop(graph: jraph.GraphsTuple) -> Array:
    """[E] bool."""
    return graph.senders == graph.receivers


def take(x: Array, ids: Array) -> Array:
    """x[ids] along the first axis for ids known to be valid, without bounds checks."""
    return (
        jnp.asarray(x)
        .at[ids]
        .get(mode="promise_in_bounds", wrap_negative_indices=False)
    )


def sum_by(ids: Array, values: Array, size: int, is_sorted: bool = True) -> Array:
    """Sums values [M, ...] that share an id -> [size, ...]; ids known to be valid."""
    return jax.ops.segment_sum(
        values, ids, size, indices_are_sorted=is_sorted, mode="promise_in_bounds"
    )


def sum_edges(graph: jraph.GraphsTuple, values: Array) -> Array:
    """Sums edge values [E, ...] over the edges into each node -> [N, ...]."""
    return sum_by(graph.receivers, values, num_nodes(graph))


def degree(graph: jraph.GraphsTuple) -> Array:
    """Number of neighbours a node receives from, itself aside: [N] float32."""
    return sum_edges(graph, jnp.where(is_self_loop(graph), 0.0, 1.0))


def aggregate(graph: jraph.GraphsTuple, weights: Array, x: Array) -> Array:
    """out_i = sum over j of weights_ij x_j, weights [E], x [N, D] -> [N, D].

    Differentiable in both; on the sparse path no array of size [E, D] is made unless
    the gradient of the weights is wanted.
    """
    if graph.globals is not None:
        return sparse.matmul(weights, graph.globals, x)
    return sum_edges(graph, weights[:, None] * take(x, graph.senders))


def symmetric_weights(graph: jraph.GraphsTuple) -> Array:
    """GCN's D^-1/2 (A + I) D^-1/2, D the degree with the self-loop: [E]."""
    scale = jax.lax.rsqrt(degree(graph) + 1.0)
    return scale[graph.receivers] * scale[graph.senders]


def mean_weights(graph: jraph.GraphsTuple) -> Array:
    """D^-1 A without self-loops: [E]; a node without neighbours has zeros."""
    scale = 1.0 / jnp.maximum(degree(graph), 1.0)
    return jnp.where(is_self_loop(graph), 0.0, scale[graph.receivers])


def _features(features: np.ndarray | scipy.sparse.sparray):
    if not scipy.sparse.issparse(features):
        return np.asarray(features, np.float32)
    if features.nnz < DENSE_FROM * np.prod(features.shape):
        return sparse.features(features)
    return features.toarray().astype(np.float32)


def _with_self_loops(
    senders: np.ndarray, receivers: np.ndarray, num_nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    _check_edges(senders, receivers, num_nodes)
    nodes = np.arange(num_nodes, dtype=np.int64)
    senders = np.concatenate([np.asarray(senders, np.int64), nodes])
    receivers = np.concatenate([np.asarray(receivers, np.int64), nodes])
    edges = np.unique(receivers * num_nodes + senders)
    return edges % num_nodes, edges // num_nodes


def _check_edges(senders: np.ndarray, receivers: np.ndarray, num_nodes: int) -> None:
    if num_nodes == 0:
        raise InputError("The graph has no nodes: give at least one row of features.")
    if np.shape(senders) != np.shape(receivers) or np.ndim(senders) != 1:
        raise InputError(
            "Edges must be two one-dimensional arrays of one length, but senders are "
            f"{np.shape(senders)} and receivers {np.shape(receivers)}."
        )
    for name, ids in (("senders", senders), ("receivers", receivers)):
        ids = np.asarray(ids)
        if len(ids) and not np.issubdtype(ids.dtype, np.integer):
            raise InputError(f"The {name} of the edges must be whole numbers.")
        if len(ids) and (np.min(ids) < 0 or np.max(ids) >= num_nodes):
            bad = ids[(ids < 0) | (ids >= num_nodes)][0]
            raise InputError(
                f"An edge names node {bad} among its {name}, but the graph has nodes "
                f"0 to {num_nodes - 1}."
            )
