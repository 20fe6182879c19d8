"""Which labeled nodes a fit does not learn from: some choose a step, some calibrate."""

from typing import Any, NamedTuple

import numpy as np

from oodgat_jax.datasets import arrays
from oodgat_jax.estimator import bounds
from oodgat_jax.types import InputError, Split


class HeldOut(NamedTuple):
    """Known nodes kept from training; nobody is in both."""

    choosing: np.ndarray  # [N] bool: the step is chosen by them
    calibration: np.ndarray  # [N] bool: treated as unlabeled by the fit; maybe none

    @property
    def all(self) -> np.ndarray:
        """Returns both: [N] bool."""
        return self.choosing | self.calibration


def choose(codes: np.ndarray, validation: Any, share: float, seed: int) -> HeldOut:
    """Returns who is held out: the user's choice, or a share of every class."""
    if validation is None:
        nodes = draw(codes, share, seed)
    else:
        nodes = checked(validation, codes)
    return divide(nodes, codes, seed)


def draw(codes: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Draws that share of every class's labeled nodes: [N] bool."""
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(codes), bool)
    for code in range(codes.max() + 1):
        nodes = rng.permutation(np.flatnonzero(codes == code))
        count = np.clip(round(share * len(nodes)), 1, len(nodes) - 1)
        held_out[nodes[:count]] = True
    return held_out


def divide(held_out: np.ndarray, codes: np.ndarray, seed: int) -> HeldOut:
    """Divides held-out nodes [N]; every class keeps one to choose the step by."""
    rng = np.random.default_rng((seed, 1))
    nodes = rng.permutation(np.flatnonzero(held_out))
    _, first = np.unique(codes[nodes], return_index=True)
    free = np.delete(nodes, first)
    count = min(bounds.calibration_count(len(nodes)), len(free))
    calibration = np.zeros(len(codes), bool)
    if count >= bounds.ENOUGH:
        calibration[free[:count]] = True
    return HeldOut(held_out & ~calibration, calibration)


def checked(validation: Any, codes: np.ndarray) -> np.ndarray:
    """Returns the user's mask of nodes to hold out, checked: [N] bool."""
    mask = np.asarray(validation)
    if mask.shape != codes.shape or mask.dtype != bool:
        raise InputError(
            f"validation must be {len(codes)} booleans, one per node, not "
            f"{mask.dtype} of shape {mask.shape}."
        )
    if (mask & (codes < 0)).any() or not mask.any():
        raise InputError("validation must name labeled nodes, at least one.")
    if len(np.unique(codes[~mask & (codes >= 0)])) < codes.max() + 1:
        raise InputError("validation must leave a labeled node of every class.")
    return mask


def known_unknowns(exposure: Any, codes: np.ndarray) -> np.ndarray:
    """Returns the mask of nodes that the user knows to be of no class: [N] bool."""
    if exposure is None:
        return np.zeros(len(codes), bool)
    mask = arrays.as_mask(exposure, len(codes))
    if (mask & (codes >= 0)).any():
        raise InputError(
            f"exposure must name nodes without a label, but node "
            f"{np.flatnonzero(mask & (codes >= 0))[0]} has one."
        )
    return mask


def as_split(
    codes: np.ndarray,
    choosing: np.ndarray,
    exposed: np.ndarray | None = None,
) -> Split:
    """Returns a split in which unlabeled nodes stand for the unknown ones, in
    validation alone, but for those exposed to training; their labels stay -1."""
    unlabeled = codes < 0
    free = unlabeled if exposed is None else unlabeled & ~exposed
    return Split(
        labels=codes.astype(np.int32),
        is_ood=unlabeled,
        train=~unlabeled & ~choosing,
        val=free | choosing,
        test=np.zeros(len(codes), bool),
        exposure=exposed,
    )
