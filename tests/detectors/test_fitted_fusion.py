"""FUSED+fit: held-out known nodes say which score to trust; OOD labels do not."""

import jax
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from oodgat_jax.detectors import DETECTORS, fitted_fusion, rank_fusion
from oodgat_jax.testing import make_case
from oodgat_jax.types import Outputs

SURE = np.array([3.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def case():
    return make_case()


PLACES = {"ENT": 0, "ATT": 1, "distance": 2}


def outputs(split, by):
    """Returns outputs of which one score tells; the others mislead."""
    random = np.random.default_rng(0)
    signal = np.asarray(split.is_ood) + random.uniform(0.0, 0.01, split.is_ood.shape)
    entropy, attention, far = (signal if by == name else 1 - signal for name in PLACES)
    logits = SURE[(np.arange(3) - np.asarray(split.labels)[:, None]) % 3]
    logits = np.float32(logits / (0.5 + 3 * entropy[:, None]))
    ood = np.float32(attention[:, None])
    train = np.asarray(split.train)
    # Train nodes are near the mean of the class, whatever misleads.
    hidden = np.stack([np.where(train, 0, 9 * far), random.normal(size=far.size)], 1)
    return Outputs(logits, np.float32(hidden), (ood, ood))


fit = jax.jit(fitted_fusion.fit)


def score(name, given, graph, split=None):
    return jax.jit(lambda o: DETECTORS[name](lambda _: o, graph, split))(given)


def prior():
    trust = np.exp(fitted_fusion.PRIOR)
    return trust / trust.sum()


@pytest.mark.parametrize(("by", "place"), PLACES.items())
def test_the_better_score_gets_the_weight(case, by, place):
    found = np.asarray(fit(outputs(case.split, by), case.graph, case.split).weights)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-5)
    assert found[:, place].sum() > 0.6  # a third or two before, and none of distance


def test_without_held_out_nodes_it_is_what_was_expected(case):
    nobody = case.split._replace(val=np.zeros_like(case.split.val))
    found = fit(outputs(case.split, "ENT"), case.graph, nobody)
    expected = np.einsum("wr,ws->rs", prior(), fitted_fusion.SHARES)
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)


def test_shares_are_all_in_quarters():
    shares = fitted_fusion.SHARES
    assert len(np.unique(shares, axis=0)) == len(shares) == 15
    np.testing.assert_array_equal(shares.sum(1), 1)
    np.testing.assert_array_equal(shares * 4 % 1, 0)


def test_the_distance_is_that_of_the_detector(case):
    given = outputs(case.split, "ENT")
    kept = fit(given, case.graph, case.split)
    far = score("Mahalanobis", given, case.graph, case.split)
    np.testing.assert_allclose(kept.quantiles[2, [0, -1]], [far.min(), far.max()], 1e-5)


def test_labels_of_unknown_nodes_change_nothing(case):
    given, split = outputs(case.split, "ENT"), case.split
    unseen = split._replace(labels=np.where(split.is_ood, -1, split.labels))
    hidden = ~split.val & ~split.train
    unseen = unseen._replace(is_ood=np.where(hidden, ~split.is_ood, split.is_ood))
    assert (unseen.labels != split.labels).any()
    expected, found = fit(given, case.graph, split), fit(given, case.graph, unseen)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_the_area_is_that_of_scikit_learn_with_weights_and_ties():
    random = np.random.default_rng(1)
    scores = random.integers(0, 12, 200) / 12
    held = random.random(200) < 0.3
    others = ~held & (random.random(200) < 0.9)
    importance = np.where(held, random.random(200), 0.0)
    importance /= importance.sum()
    found = jax.jit(fitted_fusion._area)(scores, importance, others)
    both = held | others
    expected = roc_auc_score(
        others[both], scores[both], sample_weight=np.where(held, importance, 1)[both]
    )
    assert float(found) == pytest.approx(expected, abs=1e-5)


def test_a_held_out_node_counts_by_the_size_of_its_class():
    labels = np.array([0, 0, 1, 0, 0, 0, 1])
    held = np.array([True, True, True, False, False, False, False])
    importance = jax.jit(fitted_fusion._importance)
    found = importance(np.eye(2)[labels], labels, held, ~held)
    np.testing.assert_allclose(found[:3], [1 / 3, 1 / 3, 1 / 3])  # (3 + 1) / 2, 1 + 1
    assert not found[3:].any()


def test_what_a_model_keeps_is_taken_whatever_the_split(case):
    given = outputs(case.split, "ENT")
    weights = np.zeros((len(fitted_fusion.ROUNDS), 3), np.float32)
    weights[0, 1] = 1.0  # ATT alone
    kept = fit(given, case.graph, case.split)._replace(weights=weights)
    known = given._replace(reference=kept)
    found = score("FUSED+fit", known, case.graph)
    own = jax.jit(rank_fusion.scores)(given)
    expected = jax.jit(rank_fusion.ranks)(own, kept.quantiles[:2])[1]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # FUSED reads the same quantiles.
    fused = score("FUSED", known, case.graph)
    expected = score("FUSED", given, case.graph)
    np.testing.assert_allclose(fused, expected, atol=1e-6)


def test_an_empty_fit_has_the_shapes_of_a_fit(case):
    given = outputs(case.split, "ENT")
    found = fit(given, case.graph, case.split)
    for a, b in zip(fitted_fusion.empty(given), found, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
