"""What every detector must satisfy, and every one that is added.

That nothing depends on `jit` and `vmap` is a contract of `oodgat_jax.testing`, under
which `test_testing.py` puts every detector; here all are called with two runs at once.
"""

import functools
import inspect
import pathlib
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from support import detector_cases
from support.detector_cases import NODES, scramble

from oodgat_jax import detectors, evaluation, methods, metrics
from oodgat_jax.detectors import DETECTORS, FACTORIES, GRIDS, NEEDS, tuning
from oodgat_jax.gkde import MEASURES
from oodgat_jax.methods import recipes
from oodgat_jax.types import InputError

CONTRIBUTING = pathlib.Path(__file__).parent.parent.parent / "CONTRIBUTING.md"
# GKDE's measures are of its evidential network and have tests of their own; without a
# student FUSED+student is FUSED+fit, which `methods/test_student.py` shows.
ELSEWHERE = {*MEASURES, "FUSED+student"}
ALL = pytest.mark.parametrize("name", [n for n in DETECTORS if n not in ELSEWHERE])


@pytest.fixture(scope="module")
def case():
    return detector_cases.make()


@pytest.fixture(scope="module")
def at_once(case):
    """(detector, weights and split of each of two runs) -> scores, compiled once."""

    @functools.cache
    def program(name):
        def score(run):
            weights, split = run
            return DETECTORS[name](detector_cases.linear(weights), case.graph, split)

        return jax.jit(jax.vmap(score))

    def of(name, *runs):
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *runs)
        return np.asarray(program(name)(stacked))

    return of


@pytest.fixture(scope="module")
def scores(case, at_once):
    """(detector, split, weights) -> scores, those of two equal runs."""

    def of(name, split=case.split, weights=case.weights):
        first, second = at_once(name, (weights, split), (weights, split))
        np.testing.assert_array_equal(first, second)
        return first

    return of


def assert_close(found, expected, name):
    """Up to rounding, which hundreds of training steps make larger."""
    atol = 5e-3 if name == "CaGCN" else 2e-5
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=atol)


@ALL
def test_ood_nodes_score_higher(name, case, scores):
    test = case.split.test
    assert roc_auc_score(case.split.is_ood[test], scores(name)[test]) > 0.95


@ALL
def test_scores_are_finite_and_one_per_node(name, scores):
    assert scores(name).shape == (NODES,)
    assert np.isfinite(scores(name)).all()


@ALL
def test_runs_at_once_give_the_same(name, case, at_once, scores):
    """Two runs that differ in the model and in the split, and each beside its like."""
    random = np.random.default_rng(1)
    other = detector_cases.draw(random, case.split.labels)
    weights = case.weights, 0.5 * case.weights
    both = at_once(name, (weights[0], case.split), (weights[1], other))
    expected = [scores(name), scores(name, other, weights[1])]
    assert_close(both, expected, name)


@ALL
def test_no_leak(name, case, scores):
    """Labels and is_ood outside the train mask change nothing.

    CaGCN, GRASP as coded and FUSED+fit may know which validation nodes are ID, and
    their labels.
    """
    split = case.split
    free = ~split.train
    if "validation" in NEEDS.get(name, ()):
        known = split.val & ~split.is_ood
        changed = scramble(split, free & ~known, free & ~split.val)
    else:
        changed = scramble(split, free, free)
    assert (changed.labels != split.labels).any()
    np.testing.assert_array_equal(scores(name, changed), scores(name))


@pytest.mark.parametrize("name", ["Mahalanobis", "CaGCN"])
def test_labels_that_may_be_used_are_used(name, case, scores):
    split = case.split
    known = split.val & ~split.is_ood if name == "CaGCN" else split.train
    swapped = known & (np.arange(NODES) % 2 == 0)
    labels = np.where(swapped, (split.labels + 1) % 3, split.labels)
    assert not np.allclose(scores(name, split._replace(labels=labels)), scores(name))


@pytest.mark.parametrize(
    "name", ["ENT", "ODIN", "Mahalanobis", "kNN", "GRASP", "GNNSafe"]
)
def test_paths_and_storage_give_the_same(name, scores):
    """Segment path and dense features, against sparse path and sparse features.

    ODIN moves stored entries only, so of a dense matrix it moves more.
    """
    other = detector_cases.make(path="segment", stored="dense")
    again = jax.jit(partial(DETECTORS[name], other.predict))(other.graph, other.split)
    if name == "ODIN":
        assert not np.array_equal(again, scores(name))
    else:
        assert_close(again, scores(name), name)


@pytest.mark.parametrize("name", GRIDS)
def test_every_choice_of_a_grid_works(name, case):
    """Choices other than floats, as shapes only."""
    for rows, _, _ in tuning.programs(GRIDS[name]):
        detector = FACTORIES[name](**GRIDS[name][rows[0]])
        shape = jax.eval_shape(
            lambda g, s, d=detector: d(case.predict, g, s), case.graph, case.split
        )
        assert shape.shape == (NODES,)


def test_grids_begin_with_the_default():
    for name, grid in GRIDS.items():
        parameters = inspect.signature(FACTORIES[name]).parameters
        defaults = {setting: parameters[setting].default for setting in grid[0]}
        assert grid[0] == defaults, name


@pytest.mark.parametrize("name", ["ATT", "ATT_printed", "ATT+prop"])
def test_attention_scores_need_attention(name, case):
    def predict(graph):
        return case.predict(graph)._replace(attention=())

    with pytest.raises(InputError, match="OOD attention"):
        jax.eval_shape(partial(DETECTORS[name], predict), case.graph, case.split)


@pytest.mark.parametrize(
    "make",
    [
        lambda: detectors.mahalanobis(covariance="diagonal"),
        lambda: detectors.mahalanobis(layer="last"),
        lambda: detectors.grasp(score="entropy"),
    ],
)
def test_unknown_choices_are_refused(make):
    with pytest.raises(InputError, match="choose from"):
        make()


@ALL
def test_no_labeled_node_makes_no_nan(name, case, scores):
    split = case.split._replace(train=np.zeros(NODES, bool), val=np.zeros(NODES, bool))
    assert not np.isnan(scores(name, split)).any()


def test_a_detector_added_at_run_time_goes_all_the_way(monkeypatch, case):
    """CONTRIBUTING's example: scores and metrics of all runs."""
    monkeypatch.setitem(DETECTORS, "norm", None)  # so that it is taken back
    text = CONTRIBUTING.read_text(encoding="utf-8")
    exec(re.search(r"<!-- detector -->\n```python\n(.*?)```", text, re.DOTALL)[1], {})
    method = methods.METHODS["mlp"]._replace(detectors=("ENT", "norm"))
    module = recipes.module(method, {"hidden": 4}, 3)
    task = methods.assemble(method, module)
    keys = jax.random.split(jax.random.key(0), 2)
    params = jax.lax.map(lambda key: module.init(key, case.graph), keys)
    splits = jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), case.split)
    logits, found = evaluation.score_all(
        task, (params, ()), case.graph, splits, method.detectors
    )
    measured = jax.jit(jax.vmap(metrics.evaluate))(found["norm"], logits, splits)
    np.testing.assert_allclose(
        found["norm"], -np.linalg.norm(logits, axis=-1), rtol=1e-5
    )
    assert measured["auroc"].shape == (2,)
