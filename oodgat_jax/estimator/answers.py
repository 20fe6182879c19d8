"""What a fitted classifier says: of every node, and of itself."""

from typing import NamedTuple

import numpy as np

from oodgat_jax.estimator import bounds
from oodgat_jax.estimator.inputs import UNKNOWN


class Answer(NamedTuple):
    """What the members say of every node."""

    probabilities: np.ndarray  # [N, C] of the known classes, mean of the members
    member_scores: np.ndarray  # [M, N], higher = more likely unknown

    @property
    def score(self) -> np.ndarray:
        """Returns the mean of the members: [N]."""
        return self.member_scores.mean(0)

    @property
    def spread(self) -> np.ndarray:
        """Returns the standard deviation of the score between the members: [N]."""
        return self.member_scores.std(0)


class Labeled(NamedTuple):
    """The nodes that the members learned from, for detectors that compare with them."""

    nodes: np.ndarray  # [L] rows of the fitted graph
    codes: np.ndarray  # [L] class numbers
    digest: str  # of these nodes' features, to recognize them in another graph


class Report(NamedTuple):
    """What the fit says of itself, without any OOD label; shares are of nodes.

    What is said of nodes at large is None where too few were held out to say it; see
    `estimator.bounds` for what it rests on.
    """

    held_out: int  # known nodes kept from training
    calibration: int  # those of them that nothing was chosen by; 0 if too few
    accuracy: float  # of the class, among the calibration nodes, else the held-out ones
    kept: float  # share of the same nodes at or below the threshold
    unlabeled: int
    called_unknown: float  # share of them above the threshold
    failed_members: int  # whose loss stopped being finite; left out
    lost_low: float | None = None  # 95 % interval of the share of known nodes above
    lost_high: float | None = None
    least_unknown: float | None = None  # share of the unlabeled nodes, 95 % sure


def verdicts(answer: Answer, classes: np.ndarray, threshold: float) -> np.ndarray:
    """Returns the class of every node, or -1 where the score is above: [N]."""
    known = classes[answer.probabilities.argmax(1)]
    if not np.issubdtype(known.dtype, np.number):
        known = known.astype(object)
    elif np.issubdtype(known.dtype, np.unsignedinteger):
        known = known.astype(np.int64)
    known[answer.score > threshold] = UNKNOWN
    return known


def report(
    answer: Answer,
    codes: np.ndarray,
    held_out: np.ndarray,
    calibration: np.ndarray,
    threshold: float,
    keep: float | None,
    failed: int,
) -> Report:
    """Returns the report of a fit.

    Args:
      answer: of the fitted graph.
      codes: [N] class numbers, negative where there is no label.
      held_out: [N] bool.
      calibration: [N] bool, some of them or none.
      threshold: of the score.
      keep: the quantile that it is of the calibration scores; None if it is not.
      failed: members left out.
    """
    above = answer.score > threshold
    judged = calibration if calibration.any() else held_out
    right = answer.probabilities.argmax(1) == codes
    unlabeled = codes < 0
    plain = Report(
        held_out=int(held_out.sum()),
        calibration=int(calibration.sum()),
        accuracy=float(right[judged].mean()),
        kept=float(1.0 - above[judged].mean()),
        unlabeled=int(unlabeled.sum()),
        called_unknown=float(above[unlabeled].mean()),
        failed_members=failed,
    )
    if not plain.calibration:
        return plain
    lost = bounds.lost_count(answer.score[calibration], threshold, keep)
    low, high = bounds.share(lost, plain.calibration)
    least = bounds.least_unknown(
        int(above[unlabeled].sum()), plain.unlabeled, lost, plain.calibration
    )
    return plain._replace(lost_low=low, lost_high=high, least_unknown=least)
