"""Ensembles of the seeds that were trained anyway: scores, decomposition, metrics.

Members are runs of one setting and one split that differ in their seed. Their scores
are averaged, or their ranks, which need no common scale. A member that disagrees with
the others can be left out: no label is looked at for that. Everything is numpy on what
a Result holds.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import rankdata

from oodgat_jax import evaluation
from oodgat_jax.experiment import Result
from oodgat_jax.registry import check_name
from oodgat_jax.types import InputError, Split

AVERAGES = ("ranks", "scores")
LEAST_AGREEMENT = 0.5
# Scores that an ensemble has and its members have not.
DECOMPOSITION = ("total", "aleatoric", "epistemic")


class Ensemble(NamedTuple):
    """One ensemble: its members, what they say together, and how good that is."""

    setting: int  # number of the members' setting
    split_seed: int
    members: np.ndarray  # [M] numbers of runs in the Result
    kept: np.ndarray  # [M] bool
    scores: np.ndarray  # [N], higher = more OOD
    logits: np.ndarray  # [N, C], log of the mean probabilities
    metrics: dict[str, float]


def ensembles(
    result: Result,
    detector: str,
    size: int,
    *,
    drop: bool = False,
    average: str = "ranks",
    least: float = LEAST_AGREEMENT,
) -> list[Ensemble]:
    """Returns the ensembles of `size` members that a result's runs make.

    Runs of one setting and split are taken in the order of their seeds: nine of them
    make three ensembles of 3, one of 5 or one of 9. Runs that failed are no members.

    Args:
      result: of one method; its graph must be in one place.
      detector: one of `result.scores`, or of DECOMPOSITION, which is always that of
        the members' mean; the first of `result.scores` then says who disagrees.
      size: M, the members of an ensemble.
      drop: whether members are left out that disagree with the others; see `agreeing`.
      average: `ranks` or `scores`.
      least: agreement that a member needs to be kept.
    """
    check_name("average", average, AVERAGES)
    check_name("score", detector, (*result.scores, *DECOMPOSITION))
    found = [
        _ensemble(result, detector, members, drop, average, least)
        for members in _groups(result, size)
    ]
    if not found:
        raise InputError(
            f"No split of {result.method} on {result.dataset} has {size} runs for an "
            "ensemble: train more seeds, or ask for fewer members."
        )
    return found


def decompose(logits: np.ndarray) -> dict[str, np.ndarray]:
    """Splits the entropy of an ensemble's mean probabilities, in nats.

    total = H(mean p), aleatoric = mean H(p), and epistemic, their difference, is the
    mutual information of class and member.

    Args:
      logits: of the members, [M, N, C].

    Returns:
      The three of DECOMPOSITION, [N] each.
    """
    p = _softmax(logits)
    total, aleatoric = _entropy(p.mean(axis=0)), _entropy(p).mean(axis=0)
    return {"total": total, "aleatoric": aleatoric, "epistemic": total - aleatoric}


def combine(scores: np.ndarray, average: str = "ranks") -> np.ndarray:
    """Averages scores [M, N] over the members, or ranks in [0, 1] of them: [N]."""
    check_name("average", average, AVERAGES)
    return (_ranks(scores) if average == "ranks" else scores).mean(axis=0)


def agreement(scores: np.ndarray) -> np.ndarray:
    """Computes each member's rank correlation with the median rank of the others: [M].

    A member on its own agrees: its value is 1.
    """
    ranks = _ranks(scores)
    found = np.ones(len(ranks))
    for number in range(len(ranks)):
        others = np.delete(ranks, number, axis=0)
        if len(others):
            found[number] = _correlation(ranks[number], np.median(others, axis=0))
    return found


def agreeing(scores: np.ndarray, least: float = LEAST_AGREEMENT) -> np.ndarray:
    """Returns which members have an agreement of at least `least`: [M] bool.

    Below two such members nobody can say who is wrong, and all are kept.
    """
    kept = agreement(scores) >= least
    return kept if kept.sum() > 1 else np.ones(len(scores), bool)


def _ensemble(
    result: Result,
    detector: str,
    members: np.ndarray,
    drop: bool,
    average: str,
    least: float,
) -> Ensemble:
    if result.logits is None:
        raise InputError(
            "An ensemble needs the logits of its members, which a sharded graph does "
            "not give: leave the axis graph of --mesh at 1."
        )
    voted = next(iter(result.scores)) if detector in DECOMPOSITION else detector
    voices = result.scores[voted][members]
    kept = agreeing(voices, least) if drop else np.ones(len(members), bool)
    logits = result.logits[members][kept]
    if detector in DECOMPOSITION:
        scores = decompose(logits)[detector]
    else:
        scores = combine(voices[kept], average)
    scores = scores.astype(np.float32)
    mean = np.log(np.maximum(_softmax(logits).mean(axis=0), 1e-30)).astype(np.float32)
    first = int(members[0])
    split = jax.tree.map(lambda leaf: np.asarray(leaf)[first], result.splits)
    return Ensemble(
        int(result.setting[first]),
        int(result.split_seeds[first]),
        members,
        kept,
        scores,
        mean,
        _metrics(scores, mean, split),
    )


def _metrics(scores: np.ndarray, logits: np.ndarray, split: Split) -> dict[str, float]:
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], (scores, logits, split))
    return {name: float(value[0]) for name, value in evaluation.evaluate(*one).items()}


def _groups(result: Result, size: int) -> Iterator[np.ndarray]:
    """Yields the members of one ensemble after the other, numbers of runs [M]."""
    if size < 1:
        raise InputError(f"An ensemble needs at least 1 member, not {size}.")
    worked = np.setdiff1d(np.arange(len(result.setting)), result.failed)
    keys: Sequence[tuple[int, int]] = [
        (int(result.setting[run]), int(result.split_seeds[run])) for run in worked
    ]
    order = sorted(range(len(worked)), key=keys.__getitem__)
    for _, group in itertools.groupby(order, key=keys.__getitem__):
        runs = worked[list(group)]
        for first in range(0, len(runs) - size + 1, size):
            yield runs[first : first + size]


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Ranks nodes within each member, equal scores alike, scaled to [0, 1]: [M, N]."""
    scores = np.asarray(scores, np.float64)
    return (rankdata(scores, axis=1) - 1) / max(scores.shape[1] - 1, 1)


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), rankdata(y) - (len(y) + 1) / 2
    norms = np.linalg.norm(x) * np.linalg.norm(y)
    return float(x @ y / norms) if norms > 0 else 0.0


def _softmax(logits: np.ndarray) -> np.ndarray:
    logits = np.asarray(logits, np.float64)
    exp = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exp / exp.sum(axis=-1, keepdims=True)


def _entropy(p: np.ndarray) -> np.ndarray:
    return -np.sum(p * np.log(np.maximum(p, 1e-30)), axis=-1)
