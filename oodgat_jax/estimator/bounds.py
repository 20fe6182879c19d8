"""What held-out nodes allow to say, with confidence, of all known nodes.

Calibration nodes are labeled nodes that the fit treats as unlabeled ones: it neither
learns from them nor chooses a step by them. If labeled nodes are a random sample of
the known nodes, a calibration node and a known unlabeled node are exchangeable. Both
bounds below rest on this alone, and both hold for a threshold that is a quantile of the
calibration scores, for one that treats all these scores alike, and for a number.
"""

from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
ENOUGH = 30  # calibration nodes below which nothing is said
LEAST_CHOOSING = 15  # held-out nodes that are left to choose a step by


class Interval(NamedTuple):
    """Bounds of a share."""

    low: float
    high: float


def share(count: int, total: int, confidence: float = CONFIDENCE) -> Interval:
    """Returns the Clopper-Pearson interval of a share of which `count` of `total`
    were drawn."""
    from scipy import stats  # deferred: it takes a second

    tail = (1.0 - confidence) / 2
    low = stats.beta.ppf(tail, count, total - count + 1) if count else 0.0
    high = stats.beta.ppf(1 - tail, count + 1, total - count) if count < total else 1.0
    return Interval(float(low), float(high))


def shares(total: int, confidence: float = CONFIDENCE) -> np.ndarray:
    """Returns the interval of `share` for every count from 0 to `total`: [total + 1, 2]
    float64."""
    from scipy import stats

    tail, counts = (1.0 - confidence) / 2, np.arange(total + 1)
    low, high = np.zeros(total + 1), np.ones(total + 1)
    low[1:] = stats.beta.ppf(tail, counts[1:], total - counts[1:] + 1)
    high[:-1] = stats.beta.ppf(1 - tail, counts[:-1] + 1, total - counts[:-1])
    return np.stack([low, high], 1)


def least_unknown(
    called: int, unlabeled: int, lost: int, calibration: int,
    confidence: float = CONFIDENCE,
) -> float:  # fmt: skip
    """Returns the share of unlabeled nodes that is unknown at the least.

    If u unlabeled nodes are unknown, at least called - u of the others are above the
    threshold. Together with the calibration nodes these are one exchangeable sample, so
    the number of calibration nodes above is hypergeometric (Fisher's exact test). The
    smallest u that this test does not reject is the bound.

    Args:
      called: unlabeled nodes above the threshold.
      unlabeled: all unlabeled nodes.
      lost: calibration nodes above the threshold.
      calibration: all calibration nodes.
      confidence: how often the bound holds, at the least.
    """
    from scipy import stats

    def rejected(unknown: int) -> bool:
        everyone = calibration + unlabeled - unknown
        above = lost + called - unknown
        chance = stats.hypergeom.cdf(lost, everyone, above, calibration)
        return bool(chance < 1.0 - confidence)

    low, high = (
        0,
        called,
    )  # `called` is never rejected: then none of the others is above
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if rejected(middle) else (low, middle)
    return low / unlabeled


def lost_count(scores: np.ndarray, threshold: float, keep: float | None) -> int:
    """Returns how many calibration scores count as above the threshold.

    Args:
      scores: [n] of the calibration nodes.
      threshold: a node is unknown if its score is above it.
      keep: the quantile that the threshold is of these very scores; None if it is not.
        Then equal scores must count as if they were in some order.
    """
    above = int((scores > threshold).sum())
    if keep is None:
        return above
    rank = int(np.ceil(keep * (len(scores) - 1)))  # as np.quantile's method "higher"
    return max(above, len(scores) - 1 - rank)


def calibration_count(held_out: int) -> int:
    """Returns how many of the held-out nodes to calibrate by; 0 if they are too few."""
    if held_out < ENOUGH + LEAST_CHOOSING:
        return 0
    return max(ENOUGH, held_out // 2)
