"""The student of OODGAT+: what it learns from, what it keeps, and when it answers."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from oodgat_jax import testing
from oodgat_jax.detectors import DETECTORS, fitted_fusion, student_fusion
from oodgat_jax.graphs import sparse
from oodgat_jax.methods import student
from oodgat_jax.testing import make_case
from oodgat_jax.training import Run
from oodgat_jax.types import Outputs

HYPER = {"student_steps": 40.0, "input_dropout": 0.1, "dropout": 0.1}


@pytest.fixture(scope="module")
def case():
    return make_case()


def teacher(case, split=None):
    """Outputs of a network that is right about most nodes."""
    random = np.random.default_rng(0)
    split = case.split if split is None else split
    labels, unknown = np.asarray(split.labels), np.asarray(split.is_ood)
    sure = np.where(unknown, 0.3, 3.0)[:, None]
    logits = sure * np.eye(4)[np.where(unknown, 3, labels)][:, :3]
    logits += random.normal(size=logits.shape) / 2
    attention = np.where(unknown, 1.0, -1.0)[:, None] + random.normal(
        size=(labels.size, 2)
    )
    hidden = logits + random.normal(size=logits.shape) / 9
    arrays = [np.float32(x) for x in (logits, hidden, attention)]
    return Outputs(arrays[0], arrays[1], (arrays[2], arrays[2]))


pseudo_labels = jax.jit(student.pseudo_labels)


@jax.jit
def taught(given, graph, split, hyper):
    fitted = given._replace(reference=fitted_fusion.fit(given, graph, split))
    run = Run(jax.random.key(0), split, hyper)
    found = student.teach(fitted, graph, run)
    return found, student.answer(found, fitted, graph)


def test_components_are_those_of_the_singular_values(case):
    found = jax.jit(student.principal_components, static_argnums=1)(case.graph, 3)
    _, _, rows = np.linalg.svd(case.dataset.features, full_matrices=False)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-5)
    size = np.linalg.norm(case.dataset.features @ np.asarray(found))
    best = np.linalg.norm(case.dataset.features @ rows[:3].T)
    assert 0.99 * best < size <= best * (1 + 1e-5)


def test_components_of_features_that_are_stored_sparsely(case):
    few = np.where(case.dataset.features > 0.3, case.dataset.features, 0)
    stored = sparse.features(scipy.sparse.csr_array(few))
    dense, stored = (
        jax.jit(student.principal_components, static_argnums=1)(
            case.graph._replace(nodes=nodes), 3
        )
        for nodes in (few, stored)
    )
    np.testing.assert_allclose(stored, dense, atol=1e-4)


def test_what_looks_known_or_unknown_is_learned_from(case):
    split, given = case.split, teacher(case)
    scores = np.float32(np.linspace(0, 1, len(split.labels)))
    found = pseudo_labels(given.logits, scores, split)
    targets, counted = map(np.asarray, found)
    train, val = np.asarray(split.train), np.asarray(split.val)
    np.testing.assert_array_equal(
        np.asarray(targets)[train], np.eye(4)[np.asarray(split.labels)[train]]
    )
    assert counted[train].all()
    assert not counted[val].any()
    held = np.sort(scores[val & ~np.asarray(split.is_ood)])
    low, high = (held[round(q * (len(held) - 1))] for q in (0.8, 0.97))
    others = ~train & ~val
    known, unknown = scores <= low, (scores > low) & (scores >= high)
    np.testing.assert_array_equal(counted[others], (known | unknown)[others])
    np.testing.assert_array_equal(targets[others & unknown, 3], 1)
    sharp = np.exp(2 * np.asarray(given.logits))
    sharp /= sharp.sum(1, keepdims=True)
    np.testing.assert_allclose(
        targets[others & known, :3], sharp[others & known], rtol=1e-5
    )


def test_validation_nodes_teach_unless_they_have_a_label(case):
    """Without OOD labels all unlabeled nodes are there to validate against."""
    split, given = case.split, teacher(case)
    known = np.asarray(split.train) | (np.asarray(split.val) & ~split.is_ood)
    alone = split._replace(
        labels=np.where(known, split.labels, -1), val=~split.train, is_ood=~known
    )
    scores = np.float32(np.linspace(0, 1, len(split.labels)))
    counted = np.asarray(pseudo_labels(given.logits, scores, alone)[1])
    assert not counted[known & ~np.asarray(split.train)].any()
    assert counted[~known].mean() > 0.5


def test_a_large_class_counts_by_the_root_of_its_size():
    targets = np.eye(2)[[0, 0, 0, 0, 1, 1]]
    counted = np.array([True] * 5 + [False])
    found = student._balanced(jnp.asarray(targets), jnp.asarray(counted))
    np.testing.assert_allclose(found, [0.5, 0.5, 0.5, 0.5, 1, 0])


def test_nobody_held_out_leaves_the_middle_of_the_ranks(case):
    nobody = case.split._replace(val=np.zeros_like(case.split.val))
    scores = np.where(np.arange(len(nobody.labels)) % 2, 0.6, 0.4)
    targets, counted = pseudo_labels(teacher(case).logits, scores, nobody)
    assert counted.all()
    others = ~np.asarray(nobody.train)
    np.testing.assert_array_equal(targets[others, 3], (scores > 0.5)[others])


def test_labels_of_unknown_nodes_change_nothing(case):
    split, given = case.split, teacher(case)
    hidden = ~split.val & ~split.train
    unseen = split._replace(
        labels=np.where(hidden, -1, split.labels),
        is_ood=np.where(hidden, ~split.is_ood, split.is_ood),
    )
    expected, found = (taught(given, case.graph, s, HYPER)[0] for s in (split, unseen))
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_it_learns_and_both_answer(case):
    given = teacher(case)
    kept, both = taught(given, case.graph, case.split, HYPER)
    own, logits, quantiles, share = both.student
    unknown = np.asarray(case.split.is_ood)
    right = np.asarray(logits).argmax(1) == np.where(unknown, 3, case.split.labels)
    assert right.mean() > 0.9
    np.testing.assert_array_equal(own, given.logits)
    np.testing.assert_array_equal(quantiles, kept.quantiles)
    mean = (2 * jax.nn.softmax(own) + jax.nn.softmax(logits[:, :3])) / 3
    np.testing.assert_allclose(jax.nn.softmax(both.logits), mean, atol=1e-5)
    assert share == np.float32(1 / 3)
    # The score is the mean of the ranks of teacher and student.
    score, fit = (DETECTORS[name] for name in ("FUSED+student", "FUSED+fit"))
    found = jax.jit(lambda o: score(lambda _: o, case.graph, case.split))(both)
    alone = jax.jit(lambda o: fit(lambda _: o, case.graph, case.split))(both)
    odds = student_fusion.unknown_logit(logits)
    ranks = [np.argsort(np.argsort(x)) / (len(odds) - 1) for x in (alone, odds)]
    assert np.abs(found - np.mean(ranks, 0)).max() < 0.02


def test_without_steps_there_is_no_student(case):
    given = teacher(case)
    hyper = HYPER | {"student_steps": 0.0}
    kept, both = taught(given, case.graph, case.split, hyper)
    assert kept.share == 0
    np.testing.assert_array_equal(both.logits, given.logits)
    found, expected = (
        jax.jit(lambda o, f=DETECTORS[name]: f(lambda _: o, case.graph, case.split))(
            both
        )
        for name in ("FUSED+student", "FUSED+fit")
    )
    np.testing.assert_array_equal(found, expected)


def test_outputs_without_a_student_are_scored_by_the_same_operations(case):
    """So that what is checked of FUSED+fit there need not be checked again."""
    given = teacher(case)
    operations = [
        str(jax.make_jaxpr(lambda o, s, f=DETECTORS[n]: f(lambda _: o, case.graph, s))(
            given, case.split
        ))
        for n in ("FUSED+student", "FUSED+fit", "FUSED")
    ]  # fmt: skip
    score, fit, other = (re.sub("0x[0-9a-f]+", "", each) for each in operations)
    assert score == fit != other


def test_an_empty_student_has_the_shapes_of_one_and_no_share(case):
    found, _ = taught(teacher(case), case.graph, case.split, HYPER)
    nothing = student.empty(case.graph, 3)
    assert nothing.share == 0
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(
            (*a.shape, str(a.dtype)), (*b.shape, str(b.dtype))
        ),
        nothing,
        found,
    )


def test_on_shards_it_is_the_same_student(case):
    """Bits of dropout are those of the node; sums over shards differ a little."""
    given = teacher(case)
    hyper = HYPER | {"student_steps": 5.0}
    _, expected = taught(given, case.graph, case.split, hyper)

    def on_shard(graph, given, split):
        fitted = given._replace(reference=fitted_fusion.fit(given, graph, split))
        found = student.teach(fitted, graph, Run(jax.random.key(0), split, hyper))
        return student.answer(found, fitted, graph).student[1]

    spread = jax.tree.map(lambda x: testing._to_shards(case, np.asarray(x)), given)
    found = testing._on_shards(case, on_shard, spread)
    found = case.layout.from_shards(
        np.moveaxis(np.asarray(found).reshape(-1, 4), -1, 0)
    ).T
    np.testing.assert_allclose(found, expected.student[1], rtol=2e-3, atol=2e-3)
