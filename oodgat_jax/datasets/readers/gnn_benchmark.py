"""Reader of the gnn-benchmark npz files (Amazon-Computers, -Photo, Coauthor-CS)."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse

from oodgat_jax.datasets.readers import checks, npz
from oodgat_jax.datasets.source import RawGraph, Source

PARTS = ("data", "indices", "indptr", "shape")
# What is read; the files also hold names, some of them as pickled objects.
NAMES = ("labels", *(f"{p}_{part}" for p in ("adj", "attr") for part in PARTS))


def _csr(
    archive: Mapping[str, np.ndarray], prefix: str, path: Path
) -> scipy.sparse.csr_array:
    return checks.csr({part: archive[f"{prefix}_{part}"] for part in PARTS}, path)


def _consistent(
    links: scipy.sparse.csr_array, num_nodes: int, labels: np.ndarray, path: Path
) -> None:
    if links.shape != (num_nodes, num_nodes) or labels.size != num_nodes:
        raise checks.bad(path, "holds links, features and labels of different lengths")


def read(folder: Path, source: Source) -> RawGraph:
    """Reads adjacency, features and labels from the one npz file of the source."""
    (name,) = source.files
    path = folder / name
    with checks.reading(path):
        archive = npz.read(path, NAMES)
        links = _csr(archive, "adj", path).tocoo()
        features = _csr(archive, "attr", path)
        labels = checks.integers(archive["labels"], path, "labels")
        _consistent(links, features.shape[0], labels, path)
        checks.within(labels, 0, source.classes - 1, path, "label")
    return RawGraph(features, links.row, links.col, labels)
