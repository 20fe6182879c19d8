"""Builds graphs on the host: checked, sorted, with one self-loop per node.

Every graph has its edges sorted by (receiver, sender) and exactly one self-loop per
node, so that one edge list serves all layers. Its Context holds the edges' sparse
pattern where products should go through the CSR kernel, and None where segment
operations should be used; functions look at it, and at nothing else, to choose.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import scipy.sparse

from oodgat_jax import kernels, registry
from oodgat_jax.graphs import sparse
from oodgat_jax.graphs.context import Context, Native
from oodgat_jax.types import Dataset, Features, InputError

KERNELS = ("auto", "native", "sparse", "segment")
DENSE_FROM = 0.2  # share of stored features above which a dense product is faster
NATIVE_DENSE_FROM = 0.5  # the same for the native kernels


def build(dataset: Dataset, kernel: str = "auto") -> jraph.GraphsTuple:
    """Builds the graph of a data set; "auto" chooses the kernel by platform."""
    ends = dataset.senders, dataset.receivers
    return from_edges(dataset.features, *ends, kernel, dataset.components)


def from_edges(
    features: Features,
    senders: np.ndarray,
    receivers: np.ndarray,
    kernel: str = "auto",
    components: Sequence[int] = (),
) -> jraph.GraphsTuple:
    """Builds a graph from features [N, F] and directed edges, which may repeat.

    Args:
      features: [N, F].
      senders: [E] of the edges.
      receivers: [E] of the edges.
      kernel: one of KERNELS.
      components: nodes of each of several joined graphs, one after the other; no edge
        may lead from one to another. By default it is one graph.
    """
    has_pattern, is_native = uses_sparse(kernel), uses_native(kernel)
    num_nodes = features.shape[0]
    _check_edges(senders, receivers, num_nodes)
    senders, receivers = with_self_loops(senders, receivers, num_nodes)
    n_node = np.array(components or [num_nodes], np.int32)
    n_edge = _edges_per_component(n_node, senders, receivers)
    edges = sparse.pattern(receivers, senders, (num_nodes, num_nodes))
    graph = jraph.GraphsTuple(
        nodes=_features(features, is_native),
        edges=None,
        senders=edges.columns,
        receivers=edges.rows,
        n_node=n_node,
        n_edge=n_edge,
        globals=Context(
            pattern=edges if has_pattern else None,
            native=Native() if is_native else None,
        ),
    )
    return jax.tree.map(jnp.asarray, graph)


def _edges_per_component(
    n_node: np.ndarray, senders: np.ndarray, receivers: np.ndarray
) -> np.ndarray:
    """Returns the number of edges of each joined graph, after checking that none
    leaves it."""
    starts = np.cumsum(n_node)[:-1]
    here = np.searchsorted(starts, receivers, side="right")
    if not np.array_equal(here, np.searchsorted(starts, senders, side="right")):
        raise InputError("An edge leads from one of the joined graphs to another.")
    return np.bincount(here, minlength=len(n_node)).astype(np.int32)


def uses_sparse(kernel: str) -> bool:
    """Returns whether a kernel needs the edges' pattern; "auto" does on the CPU."""
    registry.check_name("kernel", kernel, KERNELS)
    on_cpu = jax.default_backend() == "cpu"
    return kernel in ("sparse", "native") or (kernel == "auto" and on_cpu)


def uses_native(kernel: str) -> bool:
    """Returns whether a kernel means the native ones; "auto": if they are there."""
    if kernel == "native" and not kernels.status().available:
        raise InputError(kernels.status().reason)
    if kernel == "auto" and jax.default_backend() == "cpu":
        return kernels.status().available
    return kernel == "native"


def stored(features: Features) -> Features:
    """Returns features in float32, dense unless few of them are stored."""
    if not scipy.sparse.issparse(features):
        return np.asarray(features, np.float32)
    if features.nnz >= DENSE_FROM * np.prod(features.shape):
        return features.toarray().astype(np.float32)
    features = scipy.sparse.csr_array(features, dtype=np.float32)
    features.sum_duplicates()
    return features


def _features(features: Features, is_native: bool) -> Any:
    if is_native and is_half_stored(features):
        half = sparse.features(features)
        return sparse.with_tiles(half, np.arange(half.shape[0]))
    features = stored(features)
    if not scipy.sparse.issparse(features):
        return features
    features = sparse.features(features)
    return sparse.with_tiles(features) if is_native else features


def is_half_stored(features: Features) -> bool:
    """Returns whether features are dense for XLA and still sparse for native kernels.

    They are then kept as stored entries with the dropout bits of the dense array.
    """
    if not scipy.sparse.issparse(features):
        return False
    share = features.nnz / max(np.prod(features.shape), 1)
    return DENSE_FROM <= share < NATIVE_DENSE_FROM


def with_self_loops(
    senders: np.ndarray, receivers: np.ndarray, num_nodes: int, start: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Returns edges into nodes from `start` on, each once, with a loop at each node.

    They are sorted by (receiver, sender), int64; `num_nodes` counts the receivers.
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
