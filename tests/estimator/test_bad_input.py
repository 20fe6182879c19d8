"""Features, edges, labels and arguments that a classifier cannot use are named."""

import networkx
import numpy as np
import pytest
import scipy.sparse

from oodgat_jax.estimator import OODGATClassifier, inputs
from oodgat_jax.types import InputError

LABELS = ["a"] * 10 + ["b"] * 10 + [-1] * 380
FEATURES = np.random.default_rng(0).normal(size=(400, 2))
GOOD = {"features": FEATURES, "edges": [[0, 1]], "labels": LABELS}


@pytest.mark.parametrize("missing", [-1, -1.0, None, float("nan"), "", "-1"])
def test_every_sign_of_no_label(missing):
    classes, codes = inputs.labels(["a", "a", "b", "b", missing], 5)
    assert classes == ["a", "b"]
    assert codes.tolist() == [0, 0, 1, 1, -1]


CASES = {
    "text in features": ({"features": [["a"]]}, "must be numbers"),
    "NaN": (
        {"features": np.full((400, 2), np.nan)},
        "Row 0, column 0 of the features is missing",
    ),
    "infinity, sparse": (
        {"features": scipy.sparse.csr_array(np.full((400, 2), np.inf))},
        "row 0, column 0 is inf",
    ),
    "one axis": ({"features": np.zeros(400)}, r"shape \(400,\)"),
    "unknown node": ({"edges": [[0, 400]]}, "names node 400"),
    "negative node": ({"edges": [[0, -2]]}, "names node -2"),
    "three columns": ({"edges": [[0, 1, 2]] * 4}, r"shape \(4, 3\)"),
    "halves": ({"edges": [[0.5, 1]]}, "whole numbers"),
    "matrix of another size": ({"edges": scipy.sparse.eye(3)}, r"\(3, 3\)"),
    "networkx of another size": ({"edges": networkx.empty_graph(2)}, "2 nodes"),
    "too few labels": ({"labels": ["a", "b"]}, "2 labels for 400"),
    "no label": ({"labels": [-1] * 400}, "No node has a label"),
    "one class": ({"labels": ["a"] * 20 + [-1] * 380}, "class 'a'"),
    "single node of a class": (
        {"labels": ["a"] * 20 + ["b"] + [-1] * 379},
        "Class 'b' has a single",
    ),
    "everything labeled": ({"labels": ["a", "b"] * 200}, "Every node has a label"),
    "mixed labels": ({"labels": ["a", 1] * 100 + [-1] * 200}, "one kind"),
    "validation of unlabeled": ({"validation": np.ones(400, bool)}, "labeled nodes"),
    "validation of numbers": ({"validation": [1, 2]}, "400 booleans"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_named(case):
    changes, sentence = CASES[case]
    with pytest.raises(InputError, match=sentence):
        OODGATClassifier(members=1).fit(**GOOD | changes)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"method": "gut"}, "'gut'"),
        ({"members": 0}, "members"),
        ({"threshold": "middle"}, "'middle'"),
        ({"keep": 1.0}, "keep"),
        ({"held_out": 0.0}, "held_out"),
        ({"settings": {"speed": 1}}, "'speed'"),
        ({"settings": {"lr": "fast"}}, "lr"),
    ],
)
def test_bad_arguments_are_named(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        OODGATClassifier(**arguments).fit(**GOOD)
