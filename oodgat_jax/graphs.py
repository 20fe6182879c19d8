"""Graphs as jraph GraphsTuples: build and check on the host, propagate on device.

Every graph here has its edges sorted by (receiver, sender) and exactly one self-loop
per node, so that one edge list serves all layers. `globals` holds the edges' sparse
pattern where products should go through the CSR kernel, and None where segment
operations should be used; functions look at it, and at nothing else, to choose.

Where a graph is spread over devices, each sees a piece of it: a graph of its own nodes
and the edges into them, whose `globals` is a Piece. Receivers are own nodes. Senders
are positions in `sources(graph, x)`: the own nodes, then what came from the others.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import scipy.sparse

from oodgat_jax import nodes, sparse
from oodgat_jax.types import Array, Dataset, InputError

PATHS = ("auto", "sparse", "segment")
DENSE_FROM = 0.2  # share of stored features above which a dense product is faster


class Piece(NamedTuple):
    """What a device knows of its piece of a spread graph, of B nodes and E edges."""

    pattern: sparse.Pattern | None  # [B, B + P M], or None for segment operations
    send: Array  # [P, M] int32, own nodes that each of the P devices asks for
    ids: Array  # [B] int32, numbers of the nodes in the whole graph; padding last
    real: Array  # [B] bool, False for padding
    edges: Array  # [E] uint32, numbers of the edges in the whole graph
    num_edges: Array  # [] uint32, edges of the whole graph
    entries: Array | None  # [Z] uint32, numbers of stored features, if they are sparse


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
    has_pattern = use_sparse(path)
    num_nodes = features.shape[0]
    _check_edges(senders, receivers, num_nodes)
    senders, receivers = with_self_loops(senders, receivers, num_nodes)
    edges = sparse.pattern(receivers, senders, (num_nodes, num_nodes))
    graph = jraph.GraphsTuple(
        nodes=_features(features),
        edges=None,
        senders=edges.columns,
        receivers=edges.rows,
        n_node=np.array([num_nodes], np.int32),
        n_edge=np.array([len(senders)], np.int32),
        globals=edges if has_pattern else None,
    )
    return jax.tree.map(jnp.asarray, graph)


def use_sparse(path: str) -> bool:
    """Whether a path means the CSR kernel; "auto" means it on the CPU."""
    if path not in PATHS:
        raise InputError(f"Unknown path '{path}': choose one of {', '.join(PATHS)}.")
    return path == "sparse" or (path == "auto" and jax.default_backend() == "cpu")


def num_nodes(graph: jraph.GraphsTuple) -> int:
    """N, as a static number."""
    return graph.nodes.shape[0]


def pattern(graph: jraph.GraphsTuple) -> sparse.Pattern | None:
    """The pattern of the edges for sparse products; None: use segment operations."""
    return graph.globals.pattern if is_piece(graph) else graph.globals


def is_piece(graph: jraph.GraphsTuple) -> bool:
    """Whether this is one device's part of a graph."""
    return isinstance(graph.globals, Piece)


@contextlib.contextmanager
def on_device(graph: jraph.GraphsTuple) -> Iterator[jraph.GraphsTuple]:
    """A graph as one device of a `shard_map` sees it: its piece, if it is spread.

    What is traced inside knows that its nodes are a part of all.
    """
    if not is_piece(graph):
        yield graph
        return
    piece = jax.tree.map(lambda leaf: leaf[0], graph)
    with nodes.spread_over(piece.globals.ids, piece.globals.real):
        yield piece


def sources(graph: jraph.GraphsTuple, x: Array) -> Array:
    """What the graph's senders index, [N, ...] -> [N, ...], or [B + P M, ...].

    On a piece every device sends each other one the rows that it asks for: a halo
    exchange, never more than an all-gather. It is linear, and its gradient goes back
    the same way.
    """
    if not is_piece(graph):
        return x
    outgoing = take(x, graph.globals.send)  # [P, M, ...]
    incoming = jax.lax.all_to_all(outgoing, nodes.AXIS, 0, 0)
    return jnp.concatenate([x, incoming.reshape(-1, *x.shape[1:])])


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
    x = sources(graph, x)
    if pattern(graph) is not None:
        return sparse.matmul(weights, pattern(graph), x)
    return sum_edges(graph, weights[:, None] * take(x, graph.senders))


def symmetric_weights(graph: jraph.GraphsTuple) -> Array:
    """GCN's D^-1/2 (A + I) D^-1/2, D the degree with the self-loop: [E]."""
    scale = jax.lax.rsqrt(degree(graph) + 1.0)
    return scale[graph.receivers] * sources(graph, scale)[graph.senders]


def mean_weights(graph: jraph.GraphsTuple) -> Array:
    """D^-1 A without self-loops: [E]; a node without neighbours has zeros."""
    scale = 1.0 / jnp.maximum(degree(graph), 1.0)
    return jnp.where(is_self_loop(graph), 0.0, scale[graph.receivers])


def stored(
    features: np.ndarray | scipy.sparse.sparray,
) -> np.ndarray | scipy.sparse.csr_array:
    """Features in float32, dense unless few of them are stored."""
    if not scipy.sparse.issparse(features):
        return np.asarray(features, np.float32)
    if features.nnz >= DENSE_FROM * np.prod(features.shape):
        return features.toarray().astype(np.float32)
    features = scipy.sparse.csr_array(features, dtype=np.float32)
    features.sum_duplicates()
    return features


def _features(features: np.ndarray | scipy.sparse.sparray):
    features = stored(features)
    return sparse.features(features) if scipy.sparse.issparse(features) else features


def with_self_loops(
    senders: np.ndarray, receivers: np.ndarray, num_nodes: int, start: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Edges into nodes from `start` on, without repeats, with a loop at each node.

    Sorted by (receiver, sender), int64; `num_nodes` counts the receivers.
    """
    nodes = np.arange(start, start + num_nodes, dtype=np.int64)
    senders = np.concatenate([np.asarray(senders, np.int64), nodes])
    receivers = np.concatenate([np.asarray(receivers, np.int64), nodes])
    base = int(senders.max()) + 1
    edges = np.unique(receivers * base + senders)
    return edges % base, edges // base


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
