"""What a classifier gathers of its graph, for a page and a review."""

import jax
import numpy as np
import pytest
from support import own_graph
from support.own_graph import SHORT

from oodgat_jax import report
from oodgat_jax.estimator import OODGATClassifier, bounds, inspection
from oodgat_jax.methods import assemble, recipes
from oodgat_jax.types import InputError


@pytest.fixture(scope="module")
def graph():
    """Features, edges and labels; every known class has 40."""
    return own_graph.generate(labeled=40)[:3]


@pytest.fixture(scope="module")
def fitted(graph):
    return OODGATClassifier(members=2, settings=SHORT).fit(*graph)


@pytest.fixture(scope="module")
def found(fitted):
    return fitted.findings()


def test_findings_are_those_of_the_answer_and_the_report(graph, fitted, found):
    answer, told = fitted.answer(), fitted.report_
    np.testing.assert_array_equal(found.score, answer.score)
    np.testing.assert_array_equal(found.spread, answer.spread)
    np.testing.assert_array_equal(found.codes, graph[2])
    assert found.ids[:2] == ["0", "1"]
    assert found.held_out.sum() == told.held_out
    assert found.unknown.sum() == round(told.called_unknown * told.unlabeled)
    held = found.bounds
    assert len(held.scores) == told.calibration == 30
    assert tuple(held.intervals[held.lost]) == (told.lost_low, told.lost_high)
    assert found.space.shape[0] == own_graph.NODES
    np.testing.assert_array_equal(
        bounds.shares(30), [bounds.share(count, 30) for count in range(31)]
    )


def test_attention_is_that_of_the_layers(fitted, found):
    """Eq. 2, from the OOD logits of the members, edge by edge."""
    method = fitted._method()
    task = assemble(method, recipes.module(method, fitted.recipe_, 4))
    trained = (fitted.parameters_, fitted.aux_)
    alphas = []
    for outputs in inspection.members(task, trained, fitted._seen.graph):
        for logits in outputs.attention:
            w = np.asarray(jax.nn.sigmoid(logits), np.float64)
            weight = np.exp(1 - np.abs(w[found.receivers] - w[found.senders]))
            total = np.zeros_like(w)
            np.add.at(total, found.receivers, weight)
            alphas.append((weight / total[found.receivers]).mean(1))
    assert len(alphas) == 4  # two members of two layers
    np.testing.assert_allclose(found.attention, np.mean(alphas, 0), rtol=1e-4)


def test_a_page_and_a_review_are_made(tmp_path, fitted, found):
    ids = [f"n{row}" for row in range(own_graph.NODES)]
    fitted.report(tmp_path / "page.html", ids)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"ids":["n0","n1"' in text
    rows = fitted.review(7, ids)
    assert len(rows) == 7
    assert rows == report.suggest(found._replace(ids=ids), report.find_groups(found), 7)
    labeled = {ids[node] for node in np.flatnonzero(found.codes >= 0)}
    assert not labeled & {row.id for row in rows}


def test_a_loaded_model_knows_the_graph_of_its_fit(tmp_path, graph, fitted, found):
    fitted.save(tmp_path / "model")
    loaded = OODGATClassifier.load(tmp_path / "model")
    with pytest.raises(InputError, match="does not hold the graph"):
        loaded.review()
    features, edges, labels = graph
    again = loaded.findings(None, features, edges, labels=labels)
    np.testing.assert_array_equal(again.held_out, found.held_out)
    np.testing.assert_array_equal(again.bounds.intervals, found.bounds.intervals)
    assert again.bounds.lost == found.bounds.lost
    # Of another graph, and without labels, nothing is said.
    some = edges[edges.sum(1) % 4 > 0]
    assert loaded.findings(None, features, some, labels=labels).bounds is None
    assert loaded.findings(None, features, edges).bounds is None
    more = labels.astype(object)
    more[np.flatnonzero(labels < 0)[:3]] = "a new one"
    grown = loaded.findings(None, features, edges, labels=more)
    assert grown.bounds is None
    assert not grown.held_out.any()
    assert list(grown.label_names) == ["0", "1", "2", "3", "a new one"]
    assert (grown.codes == 4).sum() == 3
    np.testing.assert_allclose(grown.score, found.score, rtol=1e-5)


def test_another_threshold_moves_what_is_lost(fitted):
    moved = fitted.findings(threshold=0.0)
    assert (moved.unknown == moved.unlabeled).all()
    assert moved.bounds.lost == 30


def test_a_backbone_without_ood_attention_has_none(graph):
    plain = OODGATClassifier("gcn", members=1, settings={"max_steps": 5}).fit(*graph)
    found = plain.findings()
    assert found.attention is None
    assert not found.spread.any()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda model: model.review(0), "count must be a whole number, at least 1"),
        (lambda model: model.review(2.5), "count must be"),
        (lambda model: model.findings(["a"]), "1 ids for 400 nodes"),
    ],
)
def test_what_is_wrong_is_named(fitted, call, text):
    with pytest.raises(InputError, match=text):
        call(fitted)
