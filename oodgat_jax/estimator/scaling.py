"""Features of any size -> features that a network can learn from; table SCALES.

Dense features are centered and divided by their standard deviation, column by column.
Sparse features stay as they are: centering would fill them. The two numbers per column
belong to the model, so that it treats every later graph alike.
"""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from oodgat_jax.types import InputError

SCALES: Mapping[str, str] = {
    "standard": "every dense feature is centered and divided by its deviation",
    "none": "features are taken as they are",
}
ROWS = 4096  # scaled at a time, in double precision
FAR = 1e6  # deviations from the mean, beyond which a value is cut
UNEVEN = 1e4  # ratio of a feature's size to the typical one that deserves a warning


class Scaling(NamedTuple):
    """What is subtracted from each feature, and what it is then divided by."""

    mean: np.ndarray  # [F] float64
    deviation: np.ndarray  # [F] float64, 1 where a feature is constant


def fit(features: np.ndarray | scipy.sparse.csr_array, scale: str) -> Scaling | None:
    """Returns the scaling of these features [N, F]; None for none."""
    if scale == "none" or scipy.sparse.issparse(features):
        _warn_if_uneven(features)
        return None
    mean = features.mean(0, dtype=np.float64)
    squares = np.zeros_like(mean)
    for rows in _blocks(features):
        squares += ((rows.astype(np.float64) - mean) ** 2).sum(0)
    deviation = np.sqrt(squares / len(features))
    # A constant column differs from its mean by rounding alone.
    rounding = np.finfo(np.float32).eps * np.abs(mean)
    constant = (deviation <= rounding) | (deviation < np.finfo(np.float32).tiny)
    return Scaling(mean, np.where(constant, 1.0, deviation))


def apply(
    features: np.ndarray | scipy.sparse.csr_array, scaling: Scaling | None
) -> np.ndarray | scipy.sparse.csr_array:
    """Returns the scaled features [N, F] float32, always finite."""
    if scaling is None:
        return features
    if not isinstance(features, np.ndarray):
        features = features.toarray()
    scaled = np.empty(features.shape, np.float32)
    for rows, out in zip(_blocks(features), _blocks(scaled), strict=True):
        far = (rows.astype(np.float64) - scaling.mean) / scaling.deviation
        out[:] = np.clip(far, -FAR, FAR)
    return scaled


def check_scale(scale: Any) -> None:
    """Raises InputError unless it is a key of SCALES."""
    if not isinstance(scale, str) or scale not in SCALES:
        raise InputError(f"scale must be {' or '.join(SCALES)}, not {scale!r}.")


def _blocks(matrix: np.ndarray) -> list[np.ndarray]:
    return [matrix[start : start + ROWS] for start in range(0, len(matrix), ROWS)]


def _warn_if_uneven(features: np.ndarray | scipy.sparse.csr_array) -> None:
    sizes = abs(features).max(0)
    sizes = sizes.toarray().reshape(-1) if scipy.sparse.issparse(sizes) else sizes
    typical = np.median(sizes[sizes > 0]) if (sizes > 0).any() else 0.0
    largest = int(sizes.argmax())
    if typical and sizes[largest] > UNEVEN * typical:
        warnings.warn(
            f"Feature {largest} has values up to {sizes[largest]:.3g}, while features "
            f"typically reach {typical:.3g}, and is not scaled: it will drown the "
            "others unless you divide it.",
            stacklevel=4,
        )
