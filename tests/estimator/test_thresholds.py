"""Thresholds between known and unknown nodes, from their scores."""

import numpy as np
import pytest

from oodgat_jax.estimator import thresholds
from oodgat_jax.types import InputError


def test_quantile_keeps_its_share():
    scores = np.arange(100.0)
    chosen = thresholds.quantile(scores, scores, 0.95)
    assert (scores <= chosen).mean() >= 0.95
    assert (scores < chosen).mean() < 0.96


def test_mixture_lies_between_two_groups():
    draw = np.random.default_rng(0)
    scores = np.append(draw.normal(0.2, 0.05, 300), draw.normal(0.8, 0.05, 200))
    assert 0.35 < thresholds.mixture(scores[:5], scores, 0.95) < 0.65


@pytest.mark.parametrize(
    "scores", [np.ones(30), np.random.default_rng(1).normal(size=300)]
)
def test_mixture_refuses_scores_of_one_group(scores):
    with pytest.raises(InputError, match="two groups"):
        thresholds.mixture(scores[:5], scores, 0.95)
