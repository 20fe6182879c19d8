"""Statistics of claimed orders, against values worked out by hand."""

import numpy as np
import pytest
from support.example_records import record

from experiments.support import paired


def test_holm_by_hand():
    # Of four, 0.005 <= 0.05 / 4 and 0.01 <= 0.05 / 3, but 0.03 > 0.05 / 2.
    assert paired.holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    # 0.04 alone would pass as the last, but one before it did not.
    assert paired.holm([0.03, 0.04]) == [False, False]
    assert paired.holm([0.04]) == [True]
    assert paired.holm([np.nan, 0.001]) == [False, True]
    assert paired.holm([]) == []


def test_p_values_follow_the_sign_of_the_runs():
    ours = np.array([0.9, 0.91, 0.92, 0.9, 0.93, 0.9])
    assert paired.difference(ours, ours - 0.02).p < 0.001
    assert paired.difference(ours - 0.02, ours).p < 0.001
    turned = np.array([0.01, -0.01] * 3)
    assert paired.difference(ours, ours + turned).p > 0.3
    assert paired.difference(ours, ours).p == 1.0
    assert paired.difference(ours[:4], ours[:4] - 0.02).p == 1.0  # too few


def test_only_the_same_runs_are_compared():
    ours, theirs = record(auroc=[0.9] * 6), record(auroc=[0.8] * 6)
    assert paired.compare(ours, theirs, "auroc").mean == pytest.approx(10.0)
    assert paired.compare(ours, theirs | {"split_digest": "x"}, "auroc") is None


@pytest.mark.parametrize(
    ("values", "between", "within"),
    [
        # Means 90 and 80 of three runs each: 3 * (25 + 25) / 3 = 50.
        ([0.9, 0.9, 0.9, 0.8, 0.8, 0.8], np.sqrt(50), 0.0),
        # The same mean in both splits; deviations 1, 0, -1: 4 / 4.
        ([0.91, 0.90, 0.89, 0.91, 0.90, 0.89], 0.0, 1.0),
        # A failed run is left out: MSB 2 * 2 * 25, 50 for groups of two.
        ([0.9, 0.9, np.nan, 0.8, 0.8, np.nan], np.sqrt(50), 0.0),
    ],
)
def test_variance_between_splits_and_between_seeds(values, between, within):
    runs = {"split_seeds": [1, 1, 1, 2, 2, 2], "model_seeds": [0, 1, 2] * 2}
    found = paired.components(record(auroc=values, **runs), "auroc")
    assert found == pytest.approx((between, within), abs=1e-6)


def test_one_split_or_one_seed_tells_nothing_apart():
    assert paired.components(record(auroc=[0.9, 0.8], split_seeds=[1, 1]), "auroc") is (
        None
    )
    assert paired.components(record(auroc=[0.9, 0.8]), "auroc") is None
