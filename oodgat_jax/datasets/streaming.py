"""Graphs that are read part by part: a part is some nodes and the edges into them.

Two kinds have names that no table holds:

  generated-NODES-EDGES    made part by part, with known and unknown communities
  ogbn-NAME                from DATA_DIR/ogbn_NAME, in OGB's file layout
"""

import os
import pathlib
import re

import numpy as np
import scipy.sparse

from oodgat_jax import graphs
from oodgat_jax.datasets.generated import Communities
from oodgat_jax.datasets.readers import ogb
from oodgat_jax.datasets.source import DATA_DIR_VARIABLE
from oodgat_jax.types import Dataset, InputError, Part, ReadPart, StreamedGraph

TEST_SIZE = 1000
FEWEST_NODES = 480  # 16 communities of the 30 nodes that a split labels per class
MOST_NODES = 2**31 - 1


def is_streamed(name: str) -> bool:
    """Returns whether a name means a graph that is read part by part."""
    return name.startswith(("generated-", "ogbn-"))


def open_streamed(name: str, data_dir: str | None) -> StreamedGraph:
    """Opens the graph of that name; only its labels are read."""
    if name.startswith("ogbn-"):
        return _ogb(name, data_dir or os.environ.get(DATA_DIR_VARIABLE))
    numbers = re.fullmatch(r"generated-(\d+)-(\d+)", name)
    if not numbers:
        raise InputError(
            f"--dataset=generated-NODES-EDGES takes two whole numbers, not '{name}'."
        )
    nodes, edges = map(int, numbers.groups())
    _check_size(name, nodes, edges)
    # Small graphs have small communities, so that every class has one.
    size = max(1, min(1000, nodes // 16))
    test_size = max(1, min(TEST_SIZE, nodes // 8))
    return Communities(nodes, edges, size=size).open(test_size)


def num_edges(name: str) -> int:
    """Returns how many edges a generated graph of that name has; 0 for any other."""
    numbers = re.fullmatch(r"generated-(\d+)-(\d+)", name)
    return int(numbers[2]) if numbers else 0


def _check_size(name: str, nodes: int, edges: int) -> None:
    if nodes < FEWEST_NODES:
        raise InputError(
            f"{name} has {nodes} nodes, too few for every class to have one: ask for "
            f"at least {FEWEST_NODES}."
        )
    if nodes > MOST_NODES or edges > nodes * (nodes - 1):
        raise InputError(
            f"{name} cannot be made: ask for at most {MOST_NODES} nodes, and for at "
            f"most {min(nodes, MOST_NODES) * (min(nodes, MOST_NODES) - 1)} edges "
            "between them."
        )


def _ogb(name: str, data_dir: str | None) -> StreamedGraph:
    if not data_dir:
        raise InputError(
            f"{name} is read from a folder: give the one that holds "
            f"{name.replace('-', '_')} with --data_dir."
        )
    folder = pathlib.Path(data_dir) / name.replace("-", "_")
    # Citations are read both ways, as the small citation graphs are.
    return ogb.open_folder(folder, test_size=TEST_SIZE)


def in_memory(graph: StreamedGraph) -> Dataset:
    """Reads the whole graph, where it fits."""
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


def of_dataset(dataset: Dataset, order: np.ndarray | None) -> ReadPart:
    """Returns a reader of parts of a data set, its nodes ranked in an order [N]."""
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
    """Returns the numbers of the stored entries of the nodes' rows, row by row."""
    if not scipy.sparse.issparse(features):
        return None
    first, counts = features.indptr[nodes], np.diff(features.indptr)[nodes]
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.repeat(first, counts) + within
