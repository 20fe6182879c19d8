"""The classifier with the student of OODGAT+, which other tests do without."""

import json

import numpy as np
import pytest
from support import own_tables
from support.own_tables import TABLES, run

from oodgat_jax.estimator import OODGATClassifier
from oodgat_jax.types import InputError

SHORT = {"max_steps": 11, "hidden": 4, "heads": 2}


@pytest.fixture(scope="module")
def fitted():
    """A model of the default method and detector, and what it was fitted to."""
    rows, ends = own_tables.rows(3)
    features = np.array([row[2:] for row in rows])
    labels = np.array([row[1] or "-1" for row in rows])
    edges = [[int(name[1:]) for name in pair] for pair in ends]
    model = OODGATClassifier(members=2, settings=SHORT).fit(features, edges, labels)
    return model, features, edges


def test_every_member_keeps_a_student_that_counts(fitted):
    model, *_ = fitted
    assert model._method().validated_by == "FUSED+student"
    kept = model.aux_.student
    np.testing.assert_allclose(kept.share, [1 / 3, 1 / 3], rtol=1e-6)
    kernels = kept.params["params"]["Linear_0"]["kernel"]
    assert np.ptp(kernels, axis=(1, 2)).min() > 0
    assert not np.array_equal(*kernels)


def test_a_loaded_model_answers_with_its_student(fitted, tmp_path):
    model, *graph = fitted
    model.save(tmp_path / "model")
    loaded = OODGATClassifier.load(tmp_path / "model")
    answer = loaded.answer(*graph)
    np.testing.assert_array_equal(answer.score, model.ood_score())
    np.testing.assert_array_equal(answer.probabilities, model.predict_proba())
    student = loaded.aux_.student
    loaded.aux_ = loaded.aux_._replace(
        student=student._replace(share=np.zeros_like(student.share))
    )
    alone = loaded.answer(*graph)
    assert np.abs(alone.score - answer.score).max() > 0.01
    assert np.abs(alone.probabilities - answer.probabilities).max() > 1e-3


def test_a_grown_graph_has_its_answer_from_the_same_student(fitted):
    model, features, edges = fitted
    twin = int(np.argmax([sum(node in pair for pair in edges) for node in range(60)]))
    more = [[60, b] for a, b in edges if a == twin]
    grown = model.answer(np.vstack([features, features[twin]]), [*edges, *more])
    # The twin adds an edge to its neighbors, so that it is close but not equal.
    assert grown.score[60] == pytest.approx(grown.score[twin], abs=0.1)
    shared = grown.probabilities[:60] - model.predict_proba()
    assert 0 < np.abs(shared).max() < 0.2


def test_members_that_fail_fail_with_their_student(fitted):
    _, features, edges = fitted
    labels = np.where(np.arange(60) < 20, np.arange(60) % 3, -1)
    model = OODGATClassifier(members=2, settings={**SHORT, "lr": 1e30})
    with pytest.raises(InputError, match="smaller lr"):
        model.fit(features, edges, labels)


def test_the_command_fits_saves_and_predicts_with_a_student(
    tmp_path, monkeypatch, capsys
):
    rows, ends = own_tables.rows(3)
    monkeypatch.chdir(tmp_path)
    own_tables.write("nodes.csv", ["id", "label", "x0", "x1", "x2"], rows)
    own_tables.write("edges.csv", ["source", "target"], ends)
    few = [f"--set={name}={value}" for name, value in SHORT.items()]
    run("fit", *TABLES, *few, "--members=2", "--save=model", "--json")
    assert json.loads(capsys.readouterr().out)["report"]["failed_members"] == 0
    run("predict", *TABLES, "--model=model", "--out=again.csv")
    first, again = (own_tables.read(f"{n}.csv") for n in ("predictions", "again"))
    assert first == again
    student = OODGATClassifier.load("model").aux_.student
    np.testing.assert_allclose(student.share, [1 / 3, 1 / 3], rtol=1e-6)
