"""From scores to decisions without a single OOD label; table THRESHOLDS.

A node is unknown if its score is above the threshold.
"""

from collections.abc import Callable, Mapping

import numpy as np

from oodgat_jax.estimator.holding_out import HeldOut
from oodgat_jax.types import InputError


def quantile(held_out: np.ndarray, unlabeled: np.ndarray, keep: float) -> float:
    """Returns the lowest score that `keep` of the held-out known nodes do not exceed.

    Of further known nodes about as many are kept; nothing is assumed of the others.
    """
    del unlabeled
    return float(np.quantile(held_out, keep, method="higher"))


def mixture(held_out: np.ndarray, unlabeled: np.ndarray, keep: float) -> float:
    """Returns where two normal distributions fitted to unlabeled scores are even.

    For when the scores have two humps and known nodes may be lost to find unknown ones.
    """
    from sklearn.mixture import GaussianMixture  # deferred: it takes a second

    del held_out, keep
    scores = unlabeled[:, None]
    if np.ptp(scores) > 0:
        one, two = (
            GaussianMixture(count, n_init=3, random_state=0).fit(scores)
            for count in (1, 2)
        )
        low, high = np.sort(two.means_[:, 0])
        grid = np.linspace(low, high, 1001)
        upper = two.predict_proba(grid[:, None])[:, int(two.means_[:, 0].argmax())]
        if two.bic(scores) < one.bic(scores) and upper[0] < 0.5 < upper[-1]:
            return float(grid[int((upper > 0.5).argmax())])
    raise InputError(
        "The scores of the unlabeled nodes do not fall into two groups, so that "
        "threshold 'mixture' has none: choose 'quantile' or a number."
    )


THRESHOLDS: Mapping[str, Callable[[np.ndarray, np.ndarray, float], float]] = {
    "quantile": quantile,
    "mixture": mixture,
}


def choose(
    threshold: str | float,
    keep: float,
    score: np.ndarray,
    codes: np.ndarray,
    held_out: HeldOut,
) -> tuple[np.ndarray, float]:
    """Returns the sorted scores that a threshold is from, and the threshold.

    Args:
      threshold: a key of THRESHOLDS, or a number.
      keep: share of known nodes that "quantile" keeps.
      score: [N] of the fitted graph.
      codes: [N] class numbers, negative where there is no label.
      held_out: who was kept from training.
    """
    calibration = held_out.calibration
    # Few nodes serve better together; of them, nothing is then said.
    judged = calibration if calibration.any() else held_out.choosing
    scores = np.sort(score[judged]).astype(np.float64)
    if not isinstance(threshold, str):
        return scores, float(threshold)
    # Calibration nodes count as unlabeled here, as in training.
    others = score[(codes < 0) | calibration]
    return scores, THRESHOLDS[threshold](score[judged], others, keep)
