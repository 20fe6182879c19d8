"""Reader of the Twitch graphs as PyTorch Geometric publishes them, one npz a region.

    REGION.npz    features [N, 128], target [N] 0 or 1, edges [E, 2]

Edges are stored both ways, with a loop at every node.
"""

from pathlib import Path

import numpy as np

from oodgat_jax.datasets.readers import checks, npz
from oodgat_jax.datasets.source import RawGraph

REGIONS = ("DE", "EN", "ES", "FR", "PT", "RU")
NAMES = ("features", "target", "edges")


def read(path: Path) -> RawGraph:
    """Reads the graph of one region."""
    with checks.reading(path):
        archive = npz.read(path, NAMES)
        features, edges = (np.asarray(archive[name]) for name in ("features", "edges"))
        labels = checks.integers(archive["target"], path, "classes")
        _check_shapes(path, features, edges, labels)
        checks.finite(features, path)
        checks.within(labels, 0, 1, path, "class")
        checks.within(edges.reshape(-1), 0, len(labels) - 1, path, "node")
    return RawGraph(features.astype(np.float32), edges[:, 0], edges[:, 1], labels)


def _check_shapes(
    path: Path, features: np.ndarray, edges: np.ndarray, labels: np.ndarray
) -> None:
    if features.ndim != 2 or len(features) != len(labels) or not features.size:
        raise checks.bad(path, f"holds features of shape {features.shape}")
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise checks.bad(path, f"holds edges of shape {edges.shape}")
