"""The members' hidden layers as one space, and that space in two dimensions."""

import importlib.util
from typing import NamedTuple

import numpy as np

MOST_DIMENSIONS = 16  # of each member
TSNE_MOST = 4_000  # nodes; beyond, t-SNE takes minutes
UMAP_MOST = 200_000


class Places(NamedTuple):
    """Where nodes are on the map."""

    xy: np.ndarray  # [N, 2] float32, within -1 and 1
    method: str


def member_space(hidden: np.ndarray) -> np.ndarray:
    """Returns a member's hidden layer [N, D] reduced to [N, K], to be put side by side.

    Only directions count: members differ in the length of what they represent, and so
    do nodes with few and many edges.
    """
    length = np.linalg.norm(hidden, axis=1, keepdims=True)
    return reduce(hidden / np.maximum(length, np.finfo(np.float32).tiny))


def reduce(vectors: np.ndarray, dimensions: int = MOST_DIMENSIONS) -> np.ndarray:
    """Returns principal components [N, K], scaled to a variance of one in all."""
    centered = vectors - vectors.mean(0)
    _, axes = np.linalg.eigh((centered.T @ centered).astype(np.float64))
    parts = centered @ axes[:, ::-1][:, : min(dimensions, *vectors.shape)]
    variance = float(parts.var(0).sum())
    return (parts / np.sqrt(variance or 1.0)).astype(np.float32)


def project(space: np.ndarray, seed: int = 0) -> Places:
    """Returns places in the plane, by the best method that the size allows."""
    if 50 <= len(space) <= TSNE_MOST:
        return Places(_fit(_tsne(space, seed)), "t-SNE")
    if 50 <= len(space) <= UMAP_MOST and importlib.util.find_spec("umap"):
        return Places(_fit(_umap(space, seed)), "UMAP")
    flat = reduce(space, 2)
    if flat.shape[1] < 2:
        flat = np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))
    return Places(_fit(flat), "PCA")


def _tsne(space: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, len(space) / 4)
    made = TSNE(perplexity=perplexity, max_iter=500, init="pca", random_state=seed)
    return made.fit_transform(space)


def _umap(space: np.ndarray, seed: int) -> np.ndarray:
    import umap

    return umap.UMAP(random_state=seed).fit_transform(space)


def _fit(flat: np.ndarray) -> np.ndarray:
    """Moves and scales places so that all are within -1 and 1."""
    low, high = flat.min(0), flat.max(0)
    half = float((high - low).max()) / 2 or 1.0
    return ((flat - (low + high) / 2) / half).astype(np.float32)
