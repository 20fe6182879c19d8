"""What is said with 95 % confidence is true that often: a thousand made score sets."""

import functools

import numpy as np
import pytest
from scipy import stats

from oodgat_jax.estimator import bounds, holding_out, thresholds

SETS = 1000
# Of a thousand sets, 50 may fail at 95 %; this many do with a chance below 1e-4.
MOST_FAILURES = 78
KNOWN, STEPS, WIDTH, KEEP = 250, 40, 12, 0.95
# Of whole numbers that often come again.
share = functools.cache(bounds.share)
least_unknown = functools.cache(bounds.least_unknown)


def choose_step(random, choosing, others):
    """Scores of the step, of some, that tells the one best from the others."""
    steps = random.normal(size=(STEPS, WIDTH))
    beaten = (others @ steps.T)[:, None] > choosing @ steps.T
    return steps[np.count_nonzero(beaten, axis=(0, 1)).argmax()]


def stated(seed, unknown_share, calibration_count=40, threshold="quantile"):
    """One fit's words, and the truth: (interval, lost, least, unknown share)."""
    random = np.random.default_rng(seed)
    unknown_count = round(unknown_share * KNOWN / (1 - unknown_share))
    choosing = random.normal(size=(15, WIDTH))
    calibration = random.normal(size=(calibration_count, WIDTH))
    known = random.normal(size=(KNOWN, WIDTH))
    unknown = random.normal(size=(unknown_count, WIDTH)) + 0.7
    # As the fit does: calibration nodes count as unlabeled ones.
    others = np.concatenate([calibration, known, unknown])
    step = choose_step(random, choosing, others)
    scores = {"calibration": calibration @ step}
    unlabeled = np.concatenate([known, unknown]) @ step
    if threshold == "quantile":
        at = thresholds.quantile(scores["calibration"], unlabeled, KEEP)
    else:
        at = float(np.median(others @ step))
    keep = KEEP if threshold == "quantile" else None
    lost = bounds.lost_count(scores["calibration"], at, keep)
    interval = share(lost, calibration_count)
    called = int((unlabeled > at).sum())
    least = least_unknown(called, len(unlabeled), lost, calibration_count)
    truth = stats.norm.sf(at / np.linalg.norm(step))
    return interval, truth, least, unknown_count / len(unlabeled)


@pytest.mark.parametrize("threshold", ["quantile", "median"])
@pytest.mark.parametrize("unknown_share", [0.0, 0.3])
def test_bounds_hold_as_often_as_they_claim(unknown_share, threshold):
    outside, above = 0, 0
    for seed in range(SETS):
        interval, lost, least, unknown = stated(seed, unknown_share, 40, threshold)
        outside += not interval.low <= lost <= interval.high
        above += least > unknown
    assert outside <= MOST_FAILURES
    assert above <= MOST_FAILURES


def test_the_old_rule_failed_this_test():
    """Its lower bound came from the nodes that had chosen the step, without error."""
    wrong = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        choosing = random.normal(size=(6, WIDTH))
        known = random.normal(size=(KNOWN, WIDTH))
        step = choose_step(random, choosing, known)
        at = thresholds.quantile(choosing @ step, known @ step, KEEP)
        called, lost = (known @ step > at).mean(), (choosing @ step > at).mean()
        wrong += max(0.0, (called - lost) / (1 - lost)) > 0
    assert wrong > 90


def test_equal_scores_do_not_help():
    """Nine in ten nodes have one score; the bound must still cover the tenth."""
    outside = 0
    for seed in range(SETS):
        scores = (np.random.default_rng(seed).random(30) < 0.1).astype(float)
        at = thresholds.quantile(scores, scores, KEEP)
        lost = bounds.lost_count(scores, at, KEEP)
        outside += share(lost, 30).high < (0.1 if at < 1 else 0.0)
    assert outside <= MOST_FAILURES


def test_intervals_are_those_of_the_formula():
    low, high = bounds.share(3, 40)
    assert stats.binom.sf(2, 40, low) == pytest.approx(0.025)
    assert stats.binom.cdf(3, 40, high) == pytest.approx(0.025)
    assert bounds.share(0, 40).low == 0.0
    assert bounds.share(40, 40).high == 1.0


def test_least_unknown_finds_what_is_plain():
    assert bounds.least_unknown(0, 100, 2, 40) == 0.0
    assert bounds.least_unknown(5, 100, 2, 40) == 0.0
    assert 0.35 < bounds.least_unknown(50, 100, 2, 40) < 0.5
    assert bounds.least_unknown(500, 1000, 5, 1000) == pytest.approx(0.49, abs=0.01)


def test_nobody_who_chooses_calibrates():
    codes = np.repeat([0, 1, 2, -1], [100, 60, 20, 300])
    held_out = holding_out.draw(codes, 1 / 3, 0)
    divided = holding_out.divide(held_out, codes, 0)
    assert not (divided.choosing & divided.calibration).any()
    np.testing.assert_array_equal(divided.all, held_out)
    assert divided.calibration.sum() == 30
    assert set(codes[divided.choosing]) == {0, 1, 2}


def test_few_held_out_nodes_all_choose():
    codes = np.repeat([0, 1, -1], [60, 60, 300])
    divided = holding_out.divide(holding_out.draw(codes, 1 / 3, 0), codes, 0)
    assert (divided.all.sum(), divided.calibration.sum()) == (40, 0)
