"""Statistics of claimed orders: paired differences over runs, corrected for many.

Two methods are compared run by run, on the same split with the same seed. Runs are
resampled (bootstrap); Holm's correction keeps the chance of one wrong claim among all
claims of a table at 5 %. Runs differ by split and, inside of a split, by seed:
`components` tells the two apart, which resampling runs does not.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oodgat_jax.records import Record

RESAMPLES = 10_000
LEVEL = 0.05
NOTE = (
    "n.s.: not significant at 5 % by the bootstrap after Holm's correction for all of "
    "the table"
)
LEAST = 5  # runs; of fewer, a bootstrap finds all that agree in sign significant


class Difference(NamedTuple):
    """A mean paired difference in points, its 95 % interval and its p-value."""

    mean: float
    low: float
    high: float
    p: float  # two-sided: how often a resampled mean has the other sign, doubled; 1
    # for fewer than LEAST runs


def are_paired(ours: Record, theirs: Record) -> bool:
    """Returns whether two records are of the same splits and seeds, run by run."""
    keys = ("split_seeds", "model_seeds", "split_digest")
    return all(ours[key] == theirs[key] for key in keys)


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Difference:
    """Returns the paired difference of runs; those in which either failed are left out.

    Args:
      ours: a fraction per run, NaN for a run that failed.
      theirs: of the same runs.
    """
    differences = 100 * (np.array(ours, float) - np.array(theirs, float))
    differences = differences[np.isfinite(differences)]
    if not differences.size:
        return Difference(*(np.nan,) * 4)
    rng = np.random.default_rng(0)
    drawn = rng.choice(differences, (RESAMPLES, differences.size)).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    other = min((drawn <= 0).sum(), (drawn >= 0).sum())
    p = min(1.0, 2 * (other + 1) / (RESAMPLES + 1))
    p = p if differences.size >= LEAST else 1.0
    return Difference(float(differences.mean()), float(low), float(high), float(p))


def compare(ours: Record, theirs: Record, metric: str) -> Difference | None:
    """Returns the difference of two records, None unless their runs are the same."""
    if not are_paired(ours, theirs):
        return None
    return difference(ours["metrics"][metric], theirs["metrics"][metric])


def texts(found: Sequence[Difference]) -> list[str]:
    """Returns the differences of a table as text, `n.s.` where one is not significant.

    The correction is for all of them.
    """
    sure = holm([each.p for each in found])
    return [
        f"{each.mean:+.1f} ({each.low:+.1f} to {each.high:+.1f}){'' if s else ' n.s.'}"
        for each, s in zip(found, sure, strict=True)
    ]


def holm(values: Sequence[float]) -> list[bool]:
    """Returns which of many p-values are significant together (Holm's correction).

    The smallest must be at most LEVEL / n, the next LEVEL / (n - 1), and so on; from
    the first that is not, none is. NaN never is.
    """
    numbers = np.where(np.isnan(values), np.inf, values)
    order = np.argsort(numbers, kind="stable")
    bounds = LEVEL / np.arange(len(numbers), 0, -1)
    passed = np.minimum.accumulate(numbers[order] <= bounds) if len(order) else order
    found = np.zeros(len(numbers), bool)
    found[order] = passed
    return found.tolist()


def components(record: Record, metric: str) -> tuple[float, float] | None:
    """Returns deviations in points, between splits and between seeds of a split.

    They are those of a model with a random effect per split; runs that failed are left
    out. None unless there are several splits, and several seeds of one.
    """
    values = 100 * np.array(record["metrics"][metric], float)
    whole, splits = np.isfinite(values), np.array(record["split_seeds"])
    groups = [values[whole & (splits == split)] for split in np.unique(splits[whole])]
    sizes = np.array([len(group) for group in groups])
    if len(groups) < 2 or sizes.max() < 2:
        return None
    within = sum(((g - g.mean()) ** 2).sum() for g in groups) / (sizes - 1).sum()
    means, mean = np.array([g.mean() for g in groups]), values[whole].mean()
    between = (sizes * (means - mean) ** 2).sum() / (len(groups) - 1)
    size = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(groups) - 1)
    return float(np.sqrt(max(0.0, (between - within) / size))), float(np.sqrt(within))
