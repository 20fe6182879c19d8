"""Settings are chosen on validation; the oracle is the best on test."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from support import detector_cases

from oodgat_jax import detectors
from oodgat_jax.types import InputError


@pytest.fixture(scope="module")
def case():
    return detector_cases.make()


@pytest.fixture(scope="module")
def runs(case):
    """Parameters and splits of three runs."""
    random = np.random.default_rng(5)
    draws = [detector_cases.draw(random, case.split.labels) for _ in range(3)]
    splits = jax.tree.map(lambda *leaves: np.stack(leaves), *draws)
    return np.stack([case.weights, 0.5 * case.weights, 2.0 * case.weights]), splits


@pytest.fixture
def told(monkeypatch, case):
    """A detector that is told where OOD nodes are, and how often it was traced."""
    traced = []

    def factory(on_val, on_test=1.0, shift=0):
        def detector(predict, graph, split):
            traced.append(shift)
            signs = jnp.where(split.val, on_val, on_test)
            return signs * split.is_ood + shift

        return detector

    monkeypatch.setitem(detectors.FACTORIES, "told", factory)
    return traced


def tune(name, case, runs, grid=None):
    params, splits = runs
    return detectors.tune(name, detector_cases.linear, params, case.graph, splits, grid)


def test_validation_chooses_and_test_is_the_oracle(told, case, runs):
    grid = [
        {"on_val": -1.0, "on_test": -1.0},
        {"on_val": 1.0, "on_test": -1.0},
        {"on_val": -1.0, "on_test": 1.0},
    ]
    tuned = tune("told", case, runs, grid)
    assert tuned.chosen == grid[1]
    assert tuned.oracle == grid[2]
    np.testing.assert_allclose(tuned.val_auroc, np.array([[0.0], [1], [0]]) + [0] * 3)
    np.testing.assert_allclose(tuned.test_auroc, np.array([[0.0], [0], [1]]) + [0] * 3)


def test_floats_share_a_compilation_and_others_do_not(told, case, runs):
    grid = [{"on_val": v, "shift": s} for s in (0, 7) for v in (-1.0, 0.0, 1.0)]
    tuned = tune("told", case, runs, grid)
    assert sorted(told) == [0, 7]
    assert tuned.chosen == {"on_val": 1.0, "shift": 0}  # the first of equals


def test_a_setting_that_fails_never_wins(told, case, runs):
    grid = [{"on_val": float("nan")}, {"on_val": 0.0}]
    assert tune("told", case, runs, grid).chosen == {"on_val": 0.0}


def test_aurocs_are_those_of_the_scores(case, runs):
    params, splits = runs
    grid = [{"temperature": 5.0, "epsilon": 0.1}, {"temperature": 1.0, "epsilon": 0.5}]
    tuned = tune("ODIN", case, runs, grid)
    for row, settings in enumerate(grid):
        scores = detectors.score_runs(
            detectors.odin(**settings),
            detector_cases.linear,
            params,
            case.graph,
            splits,
        )
        pairs = ((splits.val, tuned.val_auroc), (splits.test, tuned.test_auroc))
        for (masks, found), run in itertools.product(pairs, range(3)):
            mask = masks[run]
            truth = splits.is_ood[run][mask]
            expected = roc_auc_score(truth, scores[run][mask])
            assert found[row, run] == pytest.approx(expected, abs=1e-3)


def test_scores_of_all_runs(case, runs):
    params, splits = runs
    found = detectors.score_runs(
        detectors.energy(2.0), detector_cases.linear, params, case.graph, splits
    )
    logits = detector_cases.linear(params[2])(case.graph).logits
    expected = -2.0 * jax.nn.logsumexp(logits / 2.0, axis=-1)
    assert found.shape == (3, detector_cases.NODES)
    np.testing.assert_allclose(found[2], expected, rtol=1e-5)


def test_a_remembered_model_is_asked_again_for_another_graph(case):
    asked = []

    def predict(graph):
        asked.append(graph)
        return case.predict(graph)

    remembered = detectors.remember(predict, case.graph)
    remembered(case.graph)
    assert len(asked) == 1
    other = case.graph._replace(nodes=case.graph.nodes)
    remembered(other)
    assert asked[1] is other


def test_only_detectors_with_settings_are_tuned(case, runs):
    with pytest.raises(InputError, match="no detector with settings 'MSP'"):
        tune("MSP", case, runs)
