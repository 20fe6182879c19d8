"""OODGATClassifier: what it takes, what it gives, what it saves."""

import hashlib
import json
import pathlib
import pickle

import networkx
import numpy as np
import pytest
import scipy.sparse
from sklearn import metrics as sklearn_metrics
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks
from support import hammer_saves, own_graph
from support.own_graph import ISOLATED, NODES, SHORT

from oodgat_jax.estimator import OODGATClassifier, inputs
from oodgat_jax.types import InputError

NAMES = np.array(["ant", "bee", "cat", "dog"])


@pytest.fixture(scope="module")
def graph():
    """Features, edges, labels, true classes; every known class has 12 labels."""
    features, edges, codes, truth = own_graph.generate(labeled=12)
    labels = np.full(len(codes), "-1", object)
    labels[codes >= 0] = NAMES[codes[codes >= 0]]
    return features, edges, labels, truth


@pytest.fixture(scope="module")
def fitted(graph):
    return OODGATClassifier(members=2, settings=SHORT).fit(*graph[:3])


def test_finds_unknown_nodes_and_classes(graph, fitted):
    _, _, labels, truth = graph
    unlabeled = labels == "-1"
    unknown = truth >= 4
    score = fitted.ood_score()
    auroc = sklearn_metrics.roc_auc_score(unknown[unlabeled], score[unlabeled])
    assert auroc > 0.8
    predicted = fitted.predict()
    kept = ~unknown & (predicted != -1)
    assert (predicted[kept] == NAMES[truth[kept]]).mean() > 0.9
    assert set(predicted) == {*NAMES, -1}
    probabilities = fitted.predict_proba()
    assert probabilities.shape == (400, 4)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert (fitted.ood_spread() >= 0).all()
    assert fitted.ood_spread().max() > 0


def test_report_counts_what_is_there(graph, fitted):
    report = fitted.report_
    unlabeled = graph[2] == "-1"
    assert report.held_out == 16
    assert report.unlabeled == unlabeled.sum()
    called = (fitted.ood_score() > fitted.threshold_)[unlabeled].mean()
    assert report.called_unknown == pytest.approx(called)
    assert report.kept >= 0.95
    # 16 nodes are too few to say anything of others.
    assert report.calibration == 0
    assert (report.lost_low, report.lost_high, report.least_unknown) == (None,) * 3
    assert report.failed_members == 0


def test_edges_and_features_of_any_kind_are_the_same(graph, fitted):
    features, edges, _, _ = graph
    expected = fitted.ood_score()
    forms = {
        "both directions given": edges,
        "transposed": edges.T,
        "list": edges.tolist(),
        "matrix": scipy.sparse.csr_array(
            (np.ones(len(edges)), edges.T), shape=(400, 400)
        ),
        "networkx": with_edges(networkx.empty_graph(400), edges),
    }
    for name, form in forms.items():
        np.testing.assert_allclose(
            fitted.ood_score(features, form), expected, atol=1e-5, err_msg=name
        )
    sparse = scipy.sparse.csr_matrix(features)
    np.testing.assert_allclose(fitted.ood_score(sparse, edges), expected, atol=1e-5)


def with_edges(graph, edges):
    graph.add_edges_from(edges.tolist())
    return graph


def test_networkx_nodes_with_names_are_rows_in_their_order():
    graph = networkx.DiGraph()
    graph.add_nodes_from("xyz")
    graph.add_edges_from([("z", "x"), ("y", "y")])
    senders, receivers = inputs.edges(graph, 3, directed=True)
    assert sorted(zip(senders, receivers, strict=True)) == [(1, 1), (2, 0)]


def test_directed_edges_stay_so():
    senders, receivers = inputs.edges([[0, 1]], 2, directed=True)
    assert (senders.tolist(), receivers.tolist()) == ([0], [1])
    senders, receivers = inputs.edges([[0, 1]], 2)
    assert (senders.tolist(), receivers.tolist()) == ([0, 1], [1, 0])


def test_a_grown_graph_needs_no_training(graph, fitted):
    features, edges, _, truth = graph
    twin = np.flatnonzero(truth < 4)[0]
    neighbors = edges[edges[:, 0] == twin][:, 1]
    grown = np.vstack([features, features[twin]])
    more = np.vstack([edges, np.stack([np.full(len(neighbors), 400), neighbors], 1)])
    answer = fitted.answer(grown, more)
    assert answer.score.shape == (401,)
    # The twin adds an edge to its neighbors, so that it is close but not equal.
    assert answer.score[400] == pytest.approx(answer.score[twin], abs=0.1)
    assert fitted.predict(grown, more)[400] == fitted.predict(grown, more)[twin]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (NAMES.tolist(), str),
        ([10, 20, 30, 40], int),
        ([0.5, 1.5, 2.5, 3.5], float),
        ([True, False], bool),
    ],
)
def test_labels_come_back_as_they_went_in(labels, kind):
    draw = np.random.default_rng(0)
    given = np.repeat(np.array([*labels, -1], object), 10)
    features = draw.normal(size=(len(given), 8))
    edges = draw.integers(len(given), size=(200, 2))
    model = OODGATClassifier(
        members=1, settings={"max_steps": 1}, threshold=2.0, method="mlp"
    )
    model.fit(features, edges, given.tolist())
    assert model.classes_.tolist() == sorted(labels)
    predicted = model.predict().tolist()
    assert {type(label) for label in predicted} == {kind}
    assert set(predicted) <= set(labels)
    model.threshold_ = -1.0
    assert set(model.predict().tolist()) == {-1}


@pytest.mark.parametrize("method", ["gat", "gatv2", "gcn", "sage", "mlp", "gkde"])
def test_any_method(graph, method):
    """Twice the same, also of nodes without edges."""
    settings = {"max_steps": 10}
    model = OODGATClassifier(method, members=2, settings=settings).fit(*graph[:3])
    assert not np.isin(graph[1], np.arange(NODES)[ISOLATED]).any()
    assert np.isfinite(model.ood_score()).all()
    again = OODGATClassifier(method, members=2, settings=settings).fit(*graph[:3])
    np.testing.assert_array_equal(model.ood_score(), again.ood_score())


def test_training_never_sees_who_is_unlabeled(graph, monkeypatch):
    """Unlabeled nodes stand for OOD in validation; the losses must not know.

    The default score is fitted to held-out nodes, so it is another one that shows it.
    """
    features, edges, labels, _ = graph
    fixed = {**SHORT, "patience": 1000, "max_steps": 1}
    held_out = np.zeros(400, bool)
    for name in NAMES:
        held_out[np.flatnonzero(labels == name)[:3]] = True
    fewer = labels.copy()
    fewer[np.flatnonzero(held_out)[::3]] = "-1"  # held-out nodes lose their labels
    models = [
        OODGATClassifier(members=1, settings=fixed, detector="FUSED+prop").fit(
            features, edges, given, validation=held_out & (given != "-1")
        )
        for given in (labels, fewer)
    ]
    np.testing.assert_array_equal(models[0].ood_score(), models[1].ood_score())


def test_members_that_fail_are_counted_and_all_failing_is_an_error(graph):
    with pytest.raises(InputError, match="smaller lr"):
        OODGATClassifier(members=1, settings={**SHORT, "lr": 1e30}).fit(*graph[:3])


def test_saved_model_predicts_the_same(graph, fitted, tmp_path):
    features, edges, _, _ = graph
    folder = tmp_path / "deep" / "model"
    fitted.save(folder)
    fitted.save(folder)  # replaces itself
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.json",
        parameters(folder).name,
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    loaded = OODGATClassifier.load(folder)
    np.testing.assert_array_equal(loaded.predict(features, edges), fitted.predict())
    assert loaded.get_params() == fitted.get_params()
    assert loaded.report_ == fitted.report_
    with pytest.raises(InputError, match="does not hold the graph"):
        loaded.predict()
    with pytest.raises(InputError, match="16 features, but these have 3"):
        loaded.predict(features[:, :3], edges)
    with pytest.raises(InputError, match="belong together"):
        loaded.predict(features)


def parameters(folder: pathlib.Path) -> pathlib.Path:
    (found,) = folder.glob("parameters-*.msgpack")
    return found


def replace_parameters(folder: pathlib.Path, content: bytes):
    """Other bytes, with their right digest in model.json."""
    path = parameters(folder)
    path.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    damage_facts(folder, parameters={"file": path.name, "sha256": digest})


def damage_facts(folder: pathlib.Path, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


DAMAGES = {
    "no folder": (lambda f: (f / "model.json").unlink(), "not a saved model"),
    "no JSON": (lambda f: (f / "model.json").write_text("{"), "model.json is damaged"),
    "list": (lambda f: (f / "model.json").write_text("[]"), "not written by"),
    "foreign": (lambda f: (f / "model.json").write_text("{}"), "not written by"),
    "newer": (lambda f: damage_facts(f, version=99), "version 99"),
    "older": (lambda f: damage_facts(f, format=1, version=None), "version None"),
    "elsewhere": (
        lambda f: damage_facts(f, parameters={"file": "../x.msgpack"}),
        "does not name its parameters",
    ),
    "other width": (lambda f: damage_facts(f, num_features=7), "'scaling' is wrong"),
    "other classes": (
        lambda f: damage_facts(f, classes=["a", "b"]),
        "'labeled' is wrong",
    ),
    "no method": (lambda f: damage_facts(f, arguments={"method": "x"}), "'x'"),
    "cut": (
        lambda f: replace_parameters(f, b"\x81\xa1"),
        "msgpack is damaged",
    ),
    "altered": (
        lambda f: parameters(f).write_bytes(parameters(f).read_bytes()[::-1]),
        "its digest is not the one",
    ),
    "pickle": (
        lambda f: replace_parameters(f, pickle.dumps({"a": 1})),
        r"parameters-.*\.msgpack",
    ),
    "lost": (lambda f: parameters(f).unlink(), "is missing"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_models_are_refused(fitted, tmp_path, name):
    damage, sentence = DAMAGES[name]
    fitted.save(tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(InputError, match=sentence):
        OODGATClassifier.load(tmp_path / "model")


def test_a_folder_with_other_files_is_left_alone(fitted, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="other files"):
        fitted.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_foreign_model_json_protects_its_folder(fitted, tmp_path):
    (tmp_path / "model.json").write_text('{"format": 1, "layers": []}')
    (tmp_path / "nodes.csv").write_text("id\n")
    with pytest.raises(InputError, match="other files and no model"):
        fitted.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert (tmp_path / "model.json").read_text() == '{"format": 1, "layers": []}'


def test_saving_again_keeps_what_else_is_in_the_folder(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    (tmp_path / "model" / "note.txt").write_text("the good one")
    (tmp_path / "model" / ".oodgat-draft-1").write_text("of a killed save")
    fitted.save(tmp_path / "model")
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    expected = ["model.json", "note.txt", parameters(tmp_path / "model").name]
    assert names == expected


def test_saves_of_many_processes_are_readable_at_every_moment(tmp_path):
    assert hammer_saves.hammer(tmp_path / "model", saves=30, writers=3) > 0


def test_not_fitted():
    with pytest.raises(NotFittedError):
        OODGATClassifier().predict()


# The checks of scikit-learn that do not call fit. All others cannot apply: they call
# `fit(X, y)` with a table alone, and a graph needs its edges.
CHECKS = (
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
)


@pytest.mark.parametrize("name", CHECKS)
def test_checks_of_scikit_learn(name):
    getattr(estimator_checks, name)("OODGATClassifier", OODGATClassifier())


def test_clone_and_repr():
    model = OODGATClassifier(members=3, settings={"lr": 0.02})
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "OODGATClassifier(members=3, settings={'lr': 0.02})"
    assert model.set_params(members=5).members == 5
