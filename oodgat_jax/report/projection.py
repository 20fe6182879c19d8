"""The members' hidden layers as one space, and that space in two dimensions."""

from typing import NamedTuple

import numpy as np

MOST_DIMENSIONS = 16  # of each member
TSNE_LEAST = 50  # nodes; fewer have no neighborhoods to show
TSNE_MOST = 4_000  # nodes that t-SNE places itself; with more it takes minutes
BESIDE = 3  # placed nodes between which any other node goes


class Places(NamedTuple):
    """Where nodes are on the map."""

    xy: np.ndarray  # [N, 2] float32, within -1 and 1
    method: str


def member_space(hidden: np.ndarray) -> np.ndarray:
    """Returns a member's hidden layer [N, D] reduced to [N, K], to be put side by side.

    Only directions count: members differ in the length of what they represent, and so
    do nodes with few and many edges.
    """
    return reduce(directions(hidden))


def directions(vectors: np.ndarray) -> np.ndarray:
    """Returns rows of length one; a row of zeros stays."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(length, np.finfo(np.float32).tiny)


def reduce(vectors: np.ndarray, dimensions: int = MOST_DIMENSIONS) -> np.ndarray:
    """Returns principal components [N, K], scaled to a variance of one in all."""
    centered = vectors - vectors.mean(0)
    _, axes = np.linalg.eigh((centered.T @ centered).astype(np.float64))
    parts = centered @ axes[:, ::-1][:, : min(dimensions, *vectors.shape)]
    variance = float(parts.var(0).sum())
    return (parts / np.sqrt(variance or 1.0)).astype(np.float32)


def project(space: np.ndarray, seed: int = 0) -> Places:
    """Returns places in the plane, by the best method that the size allows."""
    if len(space) >= TSNE_LEAST:
        return _by_tsne(space, seed)
    flat = reduce(space, 2)
    if flat.shape[1] < 2:
        flat = np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))
    return Places(_fit(flat), "PCA")


def _by_tsne(space: np.ndarray, seed: int) -> Places:
    """Places nodes by t-SNE; of many, a sample, and the others beside their nearest."""
    if len(space) <= TSNE_MOST:
        return Places(_fit(_tsne(space, seed)), "t-SNE")
    some = np.random.default_rng(seed).choice(len(space), TSNE_MOST, replace=False)
    places = _beside(space, space[some], _tsne(space[some], seed))
    return Places(_fit(places), f"t-SNE of {TSNE_MOST:,} of the nodes")


def _tsne(space: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, len(space) / 4)
    made = TSNE(perplexity=perplexity, max_iter=500, init="pca", random_state=seed)
    return made.fit_transform(space)


def _beside(space: np.ndarray, placed: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Returns each node's mean place of the nearest that are placed, near ones first.

    A node that is placed itself stays where it is.
    """
    from sklearn.neighbors import NearestNeighbors

    distances, nearest = (
        NearestNeighbors(n_neighbors=BESIDE).fit(placed).kneighbors(space)
    )
    weights = 1.0 / np.maximum(distances, 1e-9)
    weights /= weights.sum(1, keepdims=True)
    return np.einsum("nk,nkd->nd", weights, places[nearest])


def _fit(flat: np.ndarray) -> np.ndarray:
    """Moves and scales places so that all are within -1 and 1."""
    low, high = flat.min(0), flat.max(0)
    half = float((high - low).max()) / 2 or 1.0
    return ((flat - (low + high) / 2) / half).astype(np.float32)
