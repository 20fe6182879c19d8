"""From scores to decisions without a single OOD label; table THRESHOLDS.

A node is unknown if its score is above the threshold.
"""

from collections.abc import Callable, Mapping

import numpy as np

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
