"""Reader of the csv + json files of LastFM-Asia and the Facebook pages.

Both come from the same author in the same format: `*_edges.csv` (two node ids a
line), `*_target.csv` (first column the node id, last column the class) and
`*_features.json` (node id -> list of feature ids).
"""

import csv
import itertools
import json
from pathlib import Path

import numpy as np
import scipy.sparse

from oodgat_jax.datasets.readers import checks
from oodgat_jax.datasets.source import RawGraph, Source

FACEBOOK_CLASSES = ("company", "government", "politician", "tvshow")
LASTFM_FEATURES = 7842
LASTFM_DIMENSIONS = 128


def _rows(path: Path) -> list[list[str]]:
    """Reads the lines of a csv file below its header, all of the same length."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        header, *rows = [row for row in csv.reader(stream, strict=True) if row]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise checks.bad(path, f"has {len(row)} fields in row {number}")
    return rows


def _targets(path: Path) -> list[str]:
    """Reads the class of nodes 0..N-1, as text."""
    with checks.reading(path):
        classes = {int(row[0]): row[-1] for row in _rows(path)}
        if sorted(classes) != list(range(len(classes))):
            raise checks.bad(path, "does not number its nodes 0, 1, 2, ...")
        return [classes[node] for node in range(len(classes))]


def _links(path: Path, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    with checks.reading(path):
        ends = np.array([[int(end) for end in row] for row in _rows(path)])
        if ends.ndim != 2 or ends.shape[1] != 2:
            raise checks.bad(path, "does not hold two node ids a line")
        checks.within(ends.reshape(-1), 0, num_nodes - 1, path, "node")
        return ends[:, 0], ends[:, 1]


def _multi_hot(path: Path, num_nodes: int) -> scipy.sparse.csr_array:
    """Reads binary features; columns are the feature ids in ascending order.

    A node without an entry has no features.
    """
    with checks.reading(path):
        lists = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(lists, dict):
            raise checks.bad(path, "does not map node ids to feature ids")
        nodes = checks.integers([int(node) for node in lists], path, "node ids")
        checks.within(nodes, 0, num_nodes - 1, path, "node")
        ids = list(itertools.chain.from_iterable(lists.values()))
        distinct, columns = np.unique(
            checks.integers(ids, path, "feature ids"), return_inverse=True
        )
        rows = np.repeat(nodes, [len(ids) for ids in lists.values()])
        ones = np.ones(columns.size, np.float32)
        shape = (num_nodes, distinct.size)
        counts = scipy.sparse.csr_array((ones, (rows, columns)), shape=shape)
        return counts.astype(bool).astype(np.float32)


def read_facebook(folder: Path, source: Source) -> RawGraph:
    """Reads the Facebook page-page graph; class ids follow the alphabet."""
    del source
    path = folder / "musae_facebook_target.csv"
    names = _targets(path)
    for name in set(names) - set(FACEBOOK_CLASSES):
        raise checks.bad(path, f"holds the class {name!r}")
    labels = np.array([FACEBOOK_CLASSES.index(name) for name in names])
    features = _multi_hot(folder / "musae_facebook_features.json", labels.size)
    links = _links(folder / "musae_facebook_edges.csv", labels.size)
    return RawGraph(features, *links, labels)


def read_lastfm(folder: Path, source: Source) -> RawGraph:
    """Reads LastFM-Asia, its features reduced to 128 dimensions.

    The 128-dimensional feature file the paper's authors used is no longer served.
    The published lists of liked artists (7,842 of them) are reduced here by a
    truncated SVD with a fixed seed, so the features differ from theirs.
    """
    path = folder / "lastfm_asia_target.csv"
    with checks.reading(path):
        labels = np.array([int(name) for name in _targets(path)])
        checks.within(labels, 0, source.classes - 1, path, "class")
    links = _links(folder / "lastfm_asia_edges.csv", labels.size)
    path = folder / "lastfm_asia_features.json"
    binary = _multi_hot(path, labels.size)
    if binary.shape[1] != LASTFM_FEATURES:
        raise checks.bad(
            path, f"holds {binary.shape[1]} features, not {LASTFM_FEATURES}"
        )
    return RawGraph(reduce(binary, LASTFM_DIMENSIONS), *links, labels)


def reduce(features: scipy.sparse.csr_array, dimensions: int) -> np.ndarray:
    """Reduces features by a truncated SVD with a fixed seed: [N, dimensions]."""
    import sklearn.decomposition  # here, since it takes seconds to import

    svd = sklearn.decomposition.TruncatedSVD(dimensions, random_state=0)
    return svd.fit_transform(features.astype(np.float64)).astype(np.float32)
