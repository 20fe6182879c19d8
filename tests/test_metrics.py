"""Metrics against scikit-learn, the authors' values, and properties."""

import json
import pathlib
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from oodgat_jax import metrics as eager
from oodgat_jax.types import Split

REFERENCE = pathlib.Path(__file__).parent / "reference" / "metrics.json"
NUMBER_OF_CLASSES = {"weighted_f1": 4, "best_threshold": 4}  # where it is an argument
NAMES = (
    "auroc",
    "aupr",
    "fpr95",
    "fpr95_paper",
    "fpr_near_tpr",
    "accuracy",
    "evaluate",
)
NAMES += ("validation_score", *NUMBER_OF_CLASSES)
# Compiled, as they are used; one test calls them all eagerly.
metrics = types.SimpleNamespace(
    **{
        name: jax.jit(getattr(eager, name), static_argnums=NUMBER_OF_CLASSES.get(name))
        for name in NAMES
    }
)
DETECTION = (metrics.auroc, metrics.aupr, metrics.fpr95, metrics.fpr95_paper)
C = 4
N = 300


def sample(seed, size=N, ties=True, ood_share=0.4):
    """Random scores (with many ties), logits and split; masks overlap nothing."""
    draw = np.random.default_rng(seed)
    is_ood = draw.random(size) < ood_share
    scores = draw.normal(size=size) + is_ood
    scores = (np.round(scores, 1) if ties else scores).astype(np.float32)
    labels = np.where(is_ood, C, draw.integers(0, C, size)).astype(np.int32)
    logits = draw.normal(size=(size, C)).astype(np.float32)
    logits[np.arange(size), labels % C] += 1.0
    part = draw.integers(0, 3, size)
    split = Split(labels, is_ood, part == 0, part == 1, part == 2)
    return scores, logits, split


def first_fpr(is_ood, scores):
    fpr, tpr, _ = sk.roc_curve(is_ood, scores, drop_intermediate=False)
    return fpr[tpr >= 0.95][0]


def mean_fpr(is_ood, scores):
    fpr, tpr, _ = sk.roc_curve(is_ood, scores, drop_intermediate=False)
    near = np.abs(tpr - 0.95) < 0.005
    return fpr[near].mean() if near.any() else 0.0


ORACLES = {
    metrics.auroc: sk.roc_auc_score,
    metrics.aupr: sk.average_precision_score,
    metrics.fpr95: first_fpr,
    metrics.fpr95_paper: mean_fpr,
}


def joint(labels, predicted, scores, threshold):
    """scikit-learn's weighted F1 of the joint prediction."""
    called = np.where(scores > threshold, C, predicted)
    return sk.f1_score(labels, called, average="weighted", zero_division=0)


def joint_at_all(labels, predicted, scores):
    """The same by numpy, which is quick, at every threshold: thresholds, F1."""
    thresholds = np.append(np.float32(-np.inf), np.unique(scores))
    called = np.where(scores > thresholds[:, None], C, predicted)
    total = np.zeros(len(thresholds))
    for k in range(C + 1):
        true, said = labels == k, called == k
        found = 2 * np.sum(true & said, -1) / np.maximum(true.sum() + said.sum(-1), 1)
        total += true.sum() * found
    return thresholds, total / len(labels)


def best_joint(labels, predicted, scores):
    thresholds, values = joint_at_all(labels, predicted, scores)
    return joint(labels, predicted, scores, thresholds[np.argmax(values)])


@pytest.mark.parametrize("metric", DETECTION, ids=lambda f: f.__name__)
@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_detection_equals_scikit_learn(metric, ties, seed):
    scores, _, split = sample(seed, ties=ties)
    inside = np.asarray(split.test)
    expected = ORACLES[metric](split.is_ood[inside], scores[inside])
    got = metric(scores, split.is_ood, split.test)
    np.testing.assert_allclose(got, expected, atol=2e-6)


def test_authors_fpr_is_not_always_zero_in_these_tests():
    values = [
        metrics.fpr95_paper(s, p.is_ood, p.test) for s, _, p in map(sample, range(5))
    ]
    assert max(values) > 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("threshold", [-np.inf, -0.5, 0.3, 1.0, np.inf])
def test_weighted_f1_equals_scikit_learn(seed, threshold):
    scores, logits, split = sample(seed)
    predicted, inside = np.argmax(logits, -1), np.asarray(split.test)
    got = metrics.weighted_f1(
        scores, predicted, split.labels, split.test, C, np.float32(threshold)
    )
    arrays = (np.asarray(a)[inside] for a in (split.labels, predicted, scores))
    expected = joint(*arrays, np.float32(threshold))
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_joint_at_all_thresholds_equals_scikit_learn():
    scores, logits, split = sample(0)
    inside = np.asarray(split.test)
    arrays = [a[inside] for a in (split.labels, np.argmax(logits, -1), scores)]
    thresholds, values = joint_at_all(*arrays)
    expected = [joint(*arrays, threshold) for threshold in thresholds]
    np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize("ood_share", [0.02, 0.4, 0.98])
@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_best_threshold_is_the_best_of_all(seed, ties, ood_share):
    scores, logits, split = sample(seed, ties=ties, ood_share=ood_share)
    predicted, inside = np.argmax(logits, -1), np.asarray(split.test)
    threshold = metrics.best_threshold(scores, predicted, split.labels, split.test, C)
    got = metrics.weighted_f1(scores, predicted, split.labels, split.test, C, threshold)
    arrays = (np.asarray(a)[inside] for a in (split.labels, predicted, scores))
    np.testing.assert_allclose(got, best_joint(*arrays), atol=1e-6)


def test_best_threshold_can_be_reached_with_scores_of_minus_infinity():
    scores = np.array([1.0, -np.inf, -np.inf])
    predicted, labels = np.zeros(3, int), np.array([0, 1, 1])
    mask = np.ones(3, bool)  # calling all three OOD is best, and impossible
    assert metrics.best_threshold(scores, predicted, labels, mask, 1) == 1.0


def test_lowest_score_is_a_point_next_to_nodes_outside_the_mask():
    scores = np.array([1.0, -np.inf, -np.inf, 2.0])
    is_ood = np.array([True, False, True, False])
    mask = np.array([True, True, False, False])
    assert metrics.auroc(scores, is_ood, mask) == 1.0
    assert metrics.auroc(scores, ~is_ood, mask) == 0.0


def test_fpr95_counts_a_tpr_of_exactly_95_percent():
    scores = np.array([*range(30, 11, -1), 0.0, 5.0])  # 20 OOD nodes, then one ID
    is_ood = np.arange(21) < 20
    assert metrics.fpr95(scores, is_ood, np.ones(21, bool)) == 0.0


def test_among_equal_thresholds_the_highest_is_taken():
    scores = np.array([3.0, 2.0, 1.0, 0.0])
    labels = predicted = np.zeros(4, int)
    mask = np.ones(4, bool)
    assert metrics.best_threshold(scores, predicted, labels, mask, 1) == 3.0


def test_accuracy_ignores_ood_and_unlabeled_nodes():
    logits = np.eye(3)[np.array([0, 1, 2, 0, 1, 2])]
    labels = np.array([0, 1, 0, 3, -1, 2])
    test = np.array([True, True, True, True, True, False])
    split = Split(labels, labels == 3, ~test, ~test, test)
    assert metrics.accuracy(logits, split, test) == pytest.approx(2 / 3)
    broken = logits.copy()
    broken[0] = np.nan
    assert metrics.accuracy(broken, split, test) == pytest.approx(1 / 3)


def test_authors_values():
    stored = json.loads(REFERENCE.read_text())
    scores, is_ood = np.array(stored["scores"]), np.array(stored["is_ood"], bool)
    mask = np.ones_like(is_ood)
    got = {
        "auroc": metrics.auroc(scores, is_ood, mask),
        "aupr_ood_positive": metrics.aupr(scores, is_ood, mask),
        "aupr_id_positive": metrics.aupr(-scores, ~is_ood, mask),
        "fpr80_90_95_as_coded": [
            metrics.fpr_near_tpr(scores, is_ood, mask, level) for level in (80, 90, 95)
        ],
    }
    for name, value in got.items():
        np.testing.assert_allclose(value, stored[name], atol=1e-6, err_msg=name)


def test_authors_best_joint_f1():
    stored = json.loads(REFERENCE.read_text())
    names = ("joint_scores", "predicted", "joint_labels")
    scores, predicted, labels = (np.array(stored[name]) for name in names)
    arguments = (scores, predicted, labels, np.ones(len(scores), bool), 3)
    expected = stored["best_joint_f1_weighted"]
    grid = [metrics.weighted_f1(*arguments, k / 100) for k in range(1, 100)]
    np.testing.assert_allclose(max(grid), expected, atol=1e-6)
    exact = metrics.weighted_f1(*arguments, metrics.best_threshold(*arguments))
    np.testing.assert_allclose(exact, expected, atol=1e-6)


UNDEFINED = {
    "no OOD node": {"is_ood": False},
    "no ID node": {"is_ood": True},
    "empty masks": {"test": False, "val": False},
    "empty validation": {"val": False},
}


def undefined(case):
    """A sample with some fields of its split filled with one value."""
    scores, logits, split = sample(0)
    filled = {k: np.full(N, v) for k, v in UNDEFINED[case].items()}
    split = split._replace(**filled)
    if "is_ood" in filled:
        labels = np.where(split.is_ood, C, split.labels % C)
        split = split._replace(labels=labels)
    return scores, logits, split


@pytest.mark.parametrize("case", UNDEFINED)
def test_undefined_metrics_are_finite(case):
    scores, logits, split = undefined(case)
    values = metrics.evaluate(scores, logits, split)
    assert all(np.isfinite(v) and 0 <= v <= 1 for v in values.values()), values
    assert np.isfinite(metrics.validation_score(scores, logits, split))


def test_undefined_metrics_do_not_flatter():
    values = metrics.evaluate(*undefined("empty masks"))
    expected = dict.fromkeys(values, 0.0) | {"auroc": 0.5, "fpr95": 1.0}
    assert values == expected
    for case in ("no OOD node", "no ID node"):
        values = metrics.evaluate(*undefined(case))
        assert (values["auroc"], values["fpr95"]) == (0.5, 1.0)


def test_constant_scores_are_chance():
    scores, logits, split = sample(0)
    values = metrics.evaluate(np.zeros_like(scores), logits, split)
    share = np.mean(np.asarray(split.is_ood)[np.asarray(split.test)])
    assert values["auroc"] == pytest.approx(0.5)
    assert values["aupr"] == pytest.approx(share, abs=1e-6)
    assert values["fpr95"] == 1.0


def test_nan_scores_show_inside_the_mask_only():
    scores, logits, split = sample(0)
    split = split._replace(train=split.train & (np.arange(N) > 0))
    hidden = np.where(split.test | split.val, scores, np.nan)
    assert not np.isnan(list(metrics.evaluate(hidden, logits, split).values())).any()
    values = metrics.evaluate(np.where(split.test, np.nan, scores), logits, split)
    assert np.isfinite(values.pop("accuracy"))
    assert np.isnan(list(values.values())).all()


def test_jit_equals_eager():
    arguments = jax.tree.map(jnp.asarray, sample(1))
    slow, fast = eager.evaluate(*arguments), metrics.evaluate(*arguments)
    for name in slow:
        np.testing.assert_allclose(fast[name], slow[name], atol=1e-6, err_msg=name)


def test_numpy_split_works_inside_jit():
    scores, logits, split = sample(1)
    host = jax.tree.map(np.asarray, split)
    for metric in (metrics.validation_score, metrics.evaluate):
        inside = jax.jit(lambda s, z, f=metric: f(s, z, host))(scores, logits)
        outside = metric(scores, logits, split)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, 1e-6), inside, outside
        )


@pytest.mark.parametrize("function", [metrics.evaluate, metrics.validation_score])
def test_vmap_equals_loop(function):
    runs = [sample(seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *runs)
    together = jax.jit(jax.vmap(function))(*stacked)
    single = jax.tree.map(
        lambda *leaves: np.stack(leaves), *(function(*r) for r in runs)
    )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), together, single
    )


def test_validation_threshold_ignores_test_labels():
    scores, logits, split = sample(2)
    predicted = np.argmax(logits, -1)
    changed = np.where(split.val, split.labels, (split.labels + 1) % (C + 1))
    first, second = (
        metrics.best_threshold(scores, predicted, labels, split.val, C)
        for labels in (split.labels, changed)
    )
    assert first == second


@pytest.mark.parametrize("seed", range(3))
def test_weighted_f1_val_takes_its_threshold_from_validation(seed):
    scores, logits, split = sample(seed)
    predicted = np.argmax(logits, -1)
    arrays = [np.asarray(a) for a in (split.labels, predicted, scores)]
    val, test = (
        [a[np.asarray(mask)] for a in arrays] for mask in (split.val, split.test)
    )
    thresholds = [-np.inf, *np.unique(val[2])]
    best = max(thresholds, key=lambda t: (round(joint(*val, t), 6), t))
    got = metrics.evaluate(scores, logits, split)["weighted_f1_val"]
    np.testing.assert_allclose(got, joint(*test, best), atol=1e-6)


def test_validation_score_is_accuracy_plus_auroc_of_validation():
    scores, logits, split = sample(3)
    inside = np.asarray(split.val)
    known = inside & ~np.asarray(split.is_ood)
    right = np.argmax(logits, -1)[known] == np.asarray(split.labels)[known]
    expected = right.mean() + sk.roc_auc_score(split.is_ood[inside], scores[inside])
    got = metrics.validation_score(scores, logits, split)
    assert float(got) == pytest.approx(float(expected), abs=1e-6)


def test_large_graphs_keep_their_digits():
    draw = np.random.default_rng(0)
    is_ood = draw.random(1_000_000) < 0.3
    scores = (draw.normal(size=is_ood.size) + is_ood).astype(np.float32)
    mask = np.ones_like(is_ood)
    for metric in (metrics.auroc, metrics.aupr, metrics.fpr95_paper):
        got = metric(scores, is_ood, mask)
        np.testing.assert_allclose(got, ORACLES[metric](is_ood, scores), atol=1e-6)


# Integers keep monotone maps exact in float32.
NODES = st.lists(
    st.tuples(st.integers(-50, 50), st.booleans(), st.booleans()),
    min_size=24,
    max_size=24,
)
FEW = settings(max_examples=40, deadline=None)


def columns(nodes):
    scores, is_ood, mask = zip(*nodes, strict=True)
    return np.array(scores, np.float32), np.array(is_ood), np.array(mask)


@FEW
@given(NODES, st.sampled_from([lambda s: 3 * s + 7, lambda s: s**3, np.arctan]))
def test_monotone_maps_change_nothing(nodes, rising):
    scores, is_ood, mask = columns(nodes)
    for metric in DETECTION:
        assert metric(rising(scores), is_ood, mask) == metric(scores, is_ood, mask)


@FEW
@given(NODES)
def test_auroc_of_negated_scores_is_the_complement(nodes):
    scores, is_ood, mask = columns(nodes)
    both = metrics.auroc(scores, is_ood, mask) + metrics.auroc(-scores, is_ood, mask)
    assert both == pytest.approx(1.0, abs=1e-6)


@FEW
@given(NODES, st.integers(0, 2**32 - 1))
def test_nodes_outside_the_mask_have_no_influence(nodes, seed):
    scores, is_ood, mask = columns(nodes)
    draw = np.random.default_rng(seed)
    noise = draw.choice([np.nan, np.inf, -np.inf, 0.0, 60.0], len(nodes))
    other = np.where(mask, scores, noise), np.where(mask, is_ood, ~is_ood)
    for metric in DETECTION:
        assert metric(*other, mask) == metric(scores, is_ood, mask)


@FEW
@given(NODES)
def test_detection_equals_scikit_learn_on_any_input(nodes):
    scores, is_ood, mask = columns(nodes)
    inside = np.asarray(mask)
    truth, values = np.asarray(is_ood)[inside], np.asarray(scores)[inside]
    if truth.all() or not truth.any():
        return
    for metric in DETECTION:
        expected = ORACLES[metric](truth, values)
        assert metric(scores, is_ood, mask) == pytest.approx(expected, abs=1e-6)
