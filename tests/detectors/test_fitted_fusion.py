"""FUSED+fit: held-out known nodes say which score to trust, and OOD labels do not."""

import jax
import jax.numpy as jnp
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


def outputs(split, by):
    """Returns outputs whose ENT or ATT tells known nodes apart; the other misleads."""
    random = np.random.default_rng(0)
    signal = np.asarray(split.is_ood) + random.uniform(0.0, 0.01, split.is_ood.shape)
    wrong = 1 - signal
    entropy, attention = (signal, wrong) if by == "ENT" else (wrong, signal)
    logits = SURE[(np.arange(3) - np.asarray(split.labels)[:, None]) % 3]
    logits = jnp.asarray(logits / (0.5 + 3 * entropy[:, None]), jnp.float32)
    ood = jnp.asarray(attention[:, None], jnp.float32)
    return Outputs(logits, jnp.zeros((len(signal), 1)), (ood, ood))


@jax.jit
def fit(given, graph, split):
    return fitted_fusion.weights(given, rank_fusion.reference(given), graph, split)


def prior():
    trust = np.exp(fitted_fusion.PRIOR)
    return trust / trust.sum()


@pytest.mark.parametrize(("by", "place"), [("ENT", 0), ("ATT", 1)])
def test_the_better_score_gets_the_weight(case, by, place):
    found = np.asarray(fit(outputs(case.split, by), case.graph, case.split))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-5)
    assert found[:, place].sum() > 0.8


def test_without_held_out_nodes_it_is_what_was_expected(case):
    nobody = case.split._replace(val=np.zeros_like(case.split.val))
    found = np.asarray(fit(outputs(case.split, "ENT"), case.graph, nobody))
    shares = fitted_fusion.SHARES
    np.testing.assert_allclose(found[:, 0], shares @ prior(), atol=1e-6)
    np.testing.assert_allclose(found[:, 1], (1 - shares) @ prior(), atol=1e-6)


def test_labels_of_unknown_nodes_change_nothing(case):
    given, split = outputs(case.split, "ENT"), case.split
    unseen = split._replace(labels=np.where(split.is_ood, -1, split.labels))
    hidden = ~split.val & ~split.train
    unseen = unseen._replace(is_ood=np.where(hidden, ~split.is_ood, split.is_ood))
    assert (unseen.labels != split.labels).any()
    np.testing.assert_array_equal(
        fit(given, case.graph, split), fit(given, case.graph, unseen)
    )


def test_the_area_is_that_of_scikit_learn_with_weights_and_ties():
    random = np.random.default_rng(1)
    scores = random.integers(0, 12, 200) / 12
    held = random.random(200) < 0.3
    others = ~held & (random.random(200) < 0.9)
    importance = np.where(held, random.random(200), 0.0)
    importance /= importance.sum()
    found = jax.jit(fitted_fusion._area)(jnp.asarray(scores), importance, others)
    both = held | others
    expected = roc_auc_score(
        others[both], scores[both], sample_weight=np.where(held, importance, 1)[both]
    )
    assert float(found) == pytest.approx(expected, abs=1e-5)


def test_a_held_out_node_counts_by_the_size_of_its_class():
    labels = np.array([0, 0, 1, 0, 0, 0, 1])
    held = np.array([True, True, True, False, False, False, False])
    logits = jnp.asarray(np.eye(2)[labels])
    found = fitted_fusion._importance(logits, jnp.asarray(labels), held, ~held)
    np.testing.assert_allclose(found[:3], [1 / 3, 1 / 3, 1 / 3])  # (3 + 1) / 2, 1 + 1
    assert not found[3:].any()


def test_kept_weights_are_taken_whatever_the_split(case):
    given = outputs(case.split, "ENT")
    kept = jnp.zeros((len(fitted_fusion.ROUNDS), 2)).at[0, 1].set(1.0)  # ATT alone
    quantiles = rank_fusion.reference(given)
    given = given._replace(reference=(quantiles, kept))
    found = DETECTORS["FUSED+fit"](lambda _: given, case.graph, case.split)
    np.testing.assert_allclose(found, rank_fusion.ranks(given, quantiles)[1], atol=1e-6)
