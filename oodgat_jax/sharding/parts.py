"""Graphs that are read part by part: a part is some nodes and the edges into them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse

from oodgat_jax import graphs
from oodgat_jax.types import Dataset


class Part(NamedTuple):
    """The nodes of consecutive ranks, n of them, and what comes into them.

    Edges are sorted by receiver and have one self-loop per node. Numbers in the whole
    graph say which bits of dropout an edge or a stored feature gets; None where they
    are consecutive, part after part.
    """

    features: np.ndarray | scipy.sparse.csr_array  # [n, F] float32
    senders: np.ndarray  # [e] int64, ranks
    receivers: np.ndarray  # [e] int64, ranks
    edges: np.ndarray | None = None  # [e] numbers in the whole graph
    entries: np.ndarray | None = None  # [z] numbers of stored features


Read = Callable[[int, int], Part]  # first rank, rank after the last


class Large(NamedTuple):
    """A graph that is read part by part, in the order of its nodes' numbers.

    It has what `splits.draw` needs of a Dataset. Labels are one number per node, which
    every process can hold; features and edges are what is large.
    """

    name: str
    num_nodes: int  # N
    labels: np.ndarray  # [N] int32, -1 where the source gives none
    id_classes: tuple[int, ...]  # ascending; every other class is OOD
    test_size: int
    read: Read

    @property
    def num_classes(self) -> int:
        """C, the number of known classes."""
        return len(self.id_classes)


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
