"""Graphs that are read part by part: a part is some nodes and the edges into them."""

import numpy as np
import scipy.sparse

from oodgat_jax import graphs
from oodgat_jax.types import Dataset, Large, Part, Read


def in_memory(graph: Large) -> Dataset:
    """The whole of it, where it fits."""
    part = graph.read(0, graph.num_nodes)
    inside = part.senders != part.receivers
    return Dataset(
        name=graph.name,
        features=part.features,
        senders=part.senders[inside].astype(np.int32),
        receivers=part.receivers[inside].astype(np.int32),
        labels=graph.labels,
        id_classes=graph.id_classes,
        test_size=graph.test_size,
    )


def of_dataset(dataset: Dataset, order: np.ndarray | None) -> Read:
    """Parts of a data set that is in memory, its nodes ranked in an order [N]."""
    num_nodes = dataset.num_nodes
    order = np.arange(num_nodes) if order is None else order
    rank = np.empty(num_nodes, np.int64)
    rank[order] = np.arange(num_nodes)
    ends = (dataset.senders, dataset.receivers)
    senders, receivers = graphs.with_self_loops(*ends, num_nodes)
    by_rank = np.lexsort((rank[senders], rank[receivers]))
    senders, receivers = rank[senders[by_rank]], rank[receivers[by_rank]]
    features = graphs.stored(dataset.features)

    def read(start: int, stop: int) -> Part:
        first, last = np.searchsorted(receivers, [start, stop])
        nodes = order[start:stop]
        return Part(
            features=features[nodes],
            senders=senders[first:last],
            receivers=receivers[first:last],
            edges=by_rank[first:last],
            entries=_entries(features, nodes),
        )

    return read


def _entries(features, nodes: np.ndarray) -> np.ndarray | None:
    """Numbers of the stored entries of the nodes' rows, row after row."""
    if not scipy.sparse.issparse(features):
        return None
    first, counts = features.indptr[nodes], np.diff(features.indptr)[nodes]
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.repeat(first, counts) + within
