"""What a classifier and a saved model refuse, by name and in one sentence."""

import errno
import hashlib
import json
import multiprocessing
import os

import flax.serialization
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from support import hammer_saves, synthetic

from oodgat_jax.estimator import (
    OODGATClassifier,
    holding_out,
    inputs,
    members,
    persistence,
)
from oodgat_jax.types import InputError

ONE_STEP = {"max_steps": 1}


@pytest.fixture(scope="module")
def graph():
    made = synthetic.generate(60, 240, 4, signal=2.0, seed=3)
    labels = np.where((made.labels < 3) & (np.arange(60) % 2 == 0), made.labels, -1)
    return made.features, np.stack([made.senders, made.receivers], 1), labels


def fit(graph, **arguments):
    chosen = {"method": "mlp", "members": 1, "settings": ONE_STEP} | arguments
    return OODGATClassifier(**chosen).fit(*graph)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"threshold": float("nan")}, "no threshold nan"),
        ({"threshold": float("inf")}, "no threshold inf"),
        ({"threshold": None}, "no threshold None"),
        ({"held_out": None}, "held_out must be a number between 0 and 1, not None"),
        ({"keep": "much"}, "keep must be a number"),
        ({"keep": float("nan")}, "keep must be a number"),
        ({"members": 1.5}, "members must be a whole number"),
        ({"members": True}, "members must be a whole number"),
        ({"members": 10**9}, "members must be a whole number from 1 to"),
        ({"random_state": -1}, "random_state must be None or a whole number"),
        ({"random_state": 10**20}, "random_state must be None or a whole number"),
        ({"random_state": 0.5}, "random_state must be None or a whole number"),
        ({"scale": "robust"}, "scale must be standard or none"),
        ({"directed": "no"}, "directed must be True or False"),
        ({"method": None}, "method must be a name"),
        ({"method": ["gcn"]}, "method must be a name"),
        ({"detector": ["ENT"]}, "no detector"),
        ({"method": "oodgat", "detector": "FUSED+fit"}, "does not keep: choose"),
        ({"settings": ["max_steps=1"]}, "settings must be a dict"),
        ({"settings": "max_steps=1"}, "settings must be a dict"),
        ({"settings": 5}, "settings must be a dict"),
        ({"settings": {"max_steps": 10**20}}, "max_steps must be .* at most"),
        ({"settings": {"hidden": 10_000_000_000}}, "hidden must be .* at most"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_by_name(graph, arguments, sentence, monkeypatch):
    """And before anything is trained."""
    monkeypatch.delattr(members, "train")
    with pytest.raises(InputError, match=sentence) as raised:
        fit(graph, **arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "arguments",
    [{"random_state": None}, {"members": np.int64(1)}, {"keep": np.float32(0.9)}],
    ids=str,
)
def test_what_numpy_and_scikit_learn_users_write_works(graph, arguments, tmp_path):
    model = fit(graph, **arguments)
    model.save(tmp_path / "model")
    again = OODGATClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(*graph[:2]), model.predict())


class Tensor:
    """The part of a PyTorch tensor that is used."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def cpu(self):
        return self.values


def test_labels_of_other_libraries_work(graph):
    expected = fit(graph).predict()
    for labels in (jnp.array(graph[2]), Tensor(graph[2]), list(jnp.array(graph[2]))):
        found = fit((*graph[:2], labels)).predict()
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "label", ["nan", "NaN", "None", "null", "<NA>", "-2", "-1.0", -2, -0.5]
)
def test_labels_that_stand_for_nothing_are_refused(label):
    good = "b" if isinstance(label, str) else 1
    with pytest.raises(InputError, match=f"A label is '?{label}"):
        inputs.labels([good, good, label, label, -1], 5)


@pytest.mark.parametrize("labels", [5, [[1], [2]], [{}, {}], np.zeros((5, 1))])
def test_labels_of_no_kind_are_refused(labels):
    with pytest.raises(InputError, match="Labels must be"):
        inputs.labels(labels, 2)


@pytest.mark.parametrize(
    "names",
    [(("a", 0), ("a", 1), ("b", 0)), (2**63, 2**63 + 1, 2**63 + 2), ("a", "a\0", "b")],
    ids=["tuples", "unsigned", "zero bytes"],
)
def test_classes_stay_apart_and_whole(graph, names):
    features, edges, labels = graph
    given = [-1 if code < 0 else names[code] for code in labels]
    model = fit((features, edges, given))
    assert model.classes_.tolist() == list(names)
    assert set(model.predict()) <= {-1, *names}
    assert set(model.decide(model.answer(), threshold=1e9)) <= set(names)


def test_masked_labels_are_missing_and_infinite_ones_refused(graph):
    features, edges, labels = graph
    masked = np.ma.masked_array(np.abs(labels), labels < 0)
    np.testing.assert_array_equal(inputs.labels(masked, 60)[1], labels)
    with pytest.raises(InputError, match="A label is inf"):
        fit((features, edges, np.where(labels == 2, np.inf, labels)))


@pytest.mark.parametrize(
    "change",
    [{"method": "gcn"}, {"detector": "MSP"}, {"settings": {"hidden": 4}}],
    ids=str,
)
def test_arguments_changed_after_the_fit_ask_for_another(graph, change, tmp_path):
    model = fit(graph)
    model.save(tmp_path / "model")
    model.set_params(**change)
    for use in (
        lambda: model.predict(*graph[:2]),
        lambda: model.save(tmp_path / "model"),
    ):
        with pytest.raises(InputError, match=f"{next(iter(change))} was changed"):
            use()
    OODGATClassifier.load(tmp_path / "model")  # the earlier one is still there


def test_an_argument_that_became_wrong_is_not_saved(graph, tmp_path):
    model = fit(graph).set_params(keep=7)
    with pytest.raises(InputError, match="keep must be"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize("threshold", [float("nan"), "mixture", None])
def test_a_decision_needs_a_finite_threshold_and_a_fit(graph, threshold):
    model = fit(graph)
    if threshold is not None:
        with pytest.raises(InputError, match="threshold must be a finite number"):
            model.decide(model.answer(), threshold)
    with pytest.raises(NotFittedError):
        OODGATClassifier().decide(model.answer(), threshold)


def test_a_folder_name_that_is_too_long_is_one_sentence(graph, tmp_path):
    with pytest.raises(InputError, match="File name too long"):
        fit(graph).save(tmp_path / ("a" * 300))


def test_a_private_model_is_private(graph, tmp_path):
    model, before = fit(graph), os.umask(0o077)
    try:
        model.save(tmp_path / "model")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
    assert modes == {0o600}


def test_names_that_are_no_list_are_refused(graph):
    with pytest.raises(InputError, match="names must be a list"):
        OODGATClassifier(settings=ONE_STEP).fit(*graph, names=5)


def test_complex_features_are_refused(graph):
    with pytest.raises(InputError, match="real numbers, not complex64"):
        fit((graph[0].astype(np.complex64), *graph[1:]))


def predict_here(model, graph, answers):
    try:
        model.predict(*graph[:2])
        answers.put("predicted")
    except InputError as error:
        answers.put(str(error))


@pytest.mark.filterwarnings("ignore")  # JAX warns of the fork as well
def test_predicting_in_a_forked_child_is_refused(graph):
    model = fit(graph)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=predict_here, args=(model, graph, answers))
    child.start()
    answer = answers.get(timeout=60)
    child.join(timeout=60)
    assert "cannot predict in a forked process" in answer


# --- Saved models --------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    persistence.save(tmp_path / "model", hammer_saves.model(3))
    return tmp_path / "model"


def test_a_full_disk_leaves_no_empty_folder(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(persistence.os, "fsync", full)
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match="No space left"):
        persistence.save(tmp_path / "mine" / "new" / "model", hammer_saves.model(3))
    assert list(tmp_path.rglob("*")) == [tmp_path / "mine"]


def change(folder, **entries):
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


FACTS = json.loads(json.dumps(hammer_saves.model(3)._asdict() | {"parameters": None}))
TAMPERED = {
    "no classes": {"classes": []},
    "one class twice": {"classes": ["a", "a"]},
    "classes of two kinds": {"classes": ["a", 1]},
    "a class that is a list": {"classes": [["a"], ["b"]]},
    "a class of no name": {"classes": ["a", "-1"]},
    "threshold of text": {"threshold": "high"},
    "no threshold": {"threshold": None},
    "recipe of another kind": {"recipe": []},
    "recipe without an entry": {"recipe": {"lr": 0.1}},
    "hidden of text": {"recipe": FACTS["recipe"] | {"hidden": "many"}},
    "hidden of nothing": {"recipe": FACTS["recipe"] | {"hidden": None}},
    "hidden of billions": {"recipe": FACTS["recipe"] | {"hidden": 10**12}},
    "features of text": {"num_features": "3"},
    "features below zero": {"num_features": -3},
    "features of billions": {"num_features": 10**15},
    "a report of nothing": {"report": None},
    "a report of text": {"report": FACTS["report"] | {"kept": "all"}},
    "a report with more": {"report": FACTS["report"] | {"more": 1}},
    "arguments of a list": {"arguments": ["mlp"]},
    "an argument too many": {"arguments": {"method": "mlp", "speed": 1}},
    "members of text": {"arguments": {"method": "mlp", "members": "two"}},
    "settings of a list": {"arguments": {"method": "mlp", "settings": [1]}},
    "labeled nodes below zero": {
        "labeled": {"nodes": [-1], "codes": [0], "digest": ""}
    },
    "labeled of text": {"labeled": "all"},
    "a deviation of zero": {
        "scaling": {"mean": [0, 0, 0], "deviation": [1, 0, 1]}
    },
    "too few names": {"feature_names": ["x"]},
    "no calibration": {"calibration_scores": []},
    "parameters of text": {"parameters": "here"},
    "parameters without digest": {"parameters": {"file": "x"}},
    "version of truth": {"version": True},
    "versions of a number": {"format": 1, "versions": 5},
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_model_is_one_sentence(folder, name):
    change(folder, **TAMPERED[name])
    with pytest.raises(InputError, match=r"model\.json") as raised:
        OODGATClassifier.load(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "{", "\x00", '{"format": NaN}']
)
def test_a_model_that_is_not_json_is_one_sentence(folder, text):
    (folder / "model.json").write_text(text)
    with pytest.raises(InputError, match=r"model\.json") as raised:
        OODGATClassifier.load(folder)
    assert "\n" not in str(raised.value)
    persistence.save(folder.parent / "other", hammer_saves.model(3))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_parameters_that_are_not_finite_are_refused(folder, value):
    (path,) = folder.glob("parameters-*")
    tree = flax.serialization.msgpack_restore(path.read_bytes())
    leaf = tree["parameters"]["params"]["Linear_0"]["kernel"].copy()
    leaf[0, 0, 0] = value
    tree["parameters"]["params"]["Linear_0"]["kernel"] = leaf
    path.write_bytes(flax.serialization.msgpack_serialize(tree))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    change(folder, parameters={"file": path.name, "sha256": digest})
    with pytest.raises(InputError, match="numbers that are not finite"):
        OODGATClassifier.load(folder)


def test_known_unknowns_are_exposed_and_not_validated_on():
    codes = np.array([0, 1, 0, -1, -1, -1])
    nobody = np.zeros(6, bool)
    exposed = holding_out.known_unknowns([4], codes)
    split = holding_out.as_split(codes, nobody, exposed)
    assert np.flatnonzero(split.exposure).tolist() == [4]
    assert np.flatnonzero(split.val).tolist() == [3, 5]
    assert split.labels.tolist() == codes.tolist()  # no label is made up
    assert not holding_out.as_split(codes, nobody).exposure.any()
    with pytest.raises(InputError, match="without a label, but node 1 has one"):
        holding_out.known_unknowns([1, 4], codes)
