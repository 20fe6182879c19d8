"""The embedded data set: scikit-learn's digits as a nearest-neighbor graph.

It needs no download, so it serves the first steps, the tests and machines without a
network. The images are 8 x 8 pixels of 0..16.
"""

from pathlib import Path

import numpy as np

from oodgat_jax.datasets.source import RawGraph, Source
from oodgat_jax.types import InputError

NEIGHBORS = 5
BRIGHTEST = 16


def nearest(pixels: np.ndarray, k: int) -> np.ndarray:
    """Returns ids of the k nearest other rows, by Euclidean distance: [N, k].

    Integer pixels give exact distances and ties go to the lower id, so that the
    graph is the same on every machine; a library search breaks ties as it likes.
    """
    pixels = pixels.astype(np.int64)
    num_nodes = pixels.shape[0]
    squares = (pixels * pixels).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * (pixels @ pixels.T)
    keys = distances * num_nodes + np.arange(num_nodes)
    np.fill_diagonal(keys, np.iinfo(np.int64).max)
    return np.sort(np.partition(keys, k - 1)[:, :k]) % num_nodes


def neighbor_graph(k: int) -> RawGraph:
    """Digits, pixels / 16, with a link from each image to its k nearest ones."""
    import sklearn.datasets  # here, since it takes seconds to import

    bunch = sklearn.datasets.load_digits()
    num_nodes = bunch.data.shape[0]
    if not 1 <= k < num_nodes:
        raise InputError(
            f"k = {k} neighbors are impossible among {num_nodes} digits; "
            f"choose k between 1 and {num_nodes - 1}."
        )
    receivers = np.repeat(np.arange(num_nodes), k)
    senders = nearest(bunch.data, k).reshape(-1)
    features = (bunch.data / BRIGHTEST).astype(np.float32)
    return RawGraph(features, senders, receivers, bunch.target)


def read(folder: Path, source: Source) -> RawGraph:
    """Returns the default graph; nothing is read from `folder`."""
    del folder, source
    return neighbor_graph(NEIGHBORS)
