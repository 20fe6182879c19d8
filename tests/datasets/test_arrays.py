"""What people have as features, edges and labels: read as meant, or refused by name."""

import numpy as np
import pytest
import scipy.sparse

import oodgat_jax as og
from oodgat_jax.types import InputError

NODES = 40
LABELS = np.repeat(np.arange(4), 10)
FEATURES = np.random.default_rng(0).normal(size=(NODES, 3))
EDGES = np.stack([np.arange(NODES - 1), np.arange(1, NODES)], 1)
HIDDEN = np.arange(NODES) % 5 == 0
EXPECTED = np.where(HIDDEN, -1, LABELS)


def make(features=FEATURES, edges=EDGES, labels=LABELS, **changes):
    return og.from_arrays(features, edges, labels, **{"id_classes": (0, 1)} | changes)


@pytest.mark.parametrize(
    "labels",
    [
        np.where(HIDDEN, np.nan, LABELS),
        np.where(HIDDEN, -1.0, LABELS),
        np.where(HIDDEN, None, LABELS),
        np.ma.masked_array(LABELS, HIDDEN),
        [
            np.nan if hidden else str(n)
            for n, hidden in zip(LABELS, HIDDEN, strict=True)
        ],
        [None if hidden else str(n) for n, hidden in zip(LABELS, HIDDEN, strict=True)],
        ["" if hidden else str(n) for n, hidden in zip(LABELS, HIDDEN, strict=True)],
    ],
    ids=["nan", "-1.0", "None", "masked", "nan and text", "None and text", "empty"],
)
def test_a_missing_label_is_no_class(labels):
    made = make(labels=labels)
    np.testing.assert_array_equal(made.labels, EXPECTED)
    assert made.id_classes == (0, 1)


def test_labels_of_any_size_and_sign_of_type():
    np.testing.assert_array_equal(make(labels=LABELS.astype(np.uint64)).labels, LABELS)
    huge = make(labels=np.where(LABELS == 3, 10**12, LABELS))
    np.testing.assert_array_equal(huge.labels, LABELS)
    huge = make(labels=10**12 + LABELS, id_classes=(10**12, 10**12 + 1))
    assert huge.id_classes == (0, 1)


def outside():
    matrix = scipy.sparse.csr_array(FEATURES)
    matrix.indices[0] = 77
    return matrix


CASES = {
    "labels nan": ({"labels": ["nan", "a"] * 20}, "A label is 'nan'"),
    "labels ragged": ({"labels": [[1], [1, 2]]}, "different lengths"),
    "labels of no kind": ({"labels": [b"a", b"b"] * 20}, "numbers or strings, not b'a"),
    "features ragged": ({"features": [[1, 2], [1]]}, "different lengths"),
    "features masked": (
        {"features": np.ma.masked_array(FEATURES, FEATURES > 1)},
        "masked",
    ),
    "features dates": (
        {"features": np.zeros((NODES, 3), "datetime64[D]")},
        "must be real numbers, not datetime64",
    ),
    "features damaged": ({"features": outside()}, "sparse matrix is damaged"),
    "edges ragged": ({"edges": [(0, 1), (2,)]}, "different lengths"),
    "edges masked": ({"edges": np.ma.masked_array(EDGES, EDGES > 5)}, "masked"),
    "id_classes number": ({"id_classes": 1}, "id_classes must be a list"),
    "id_classes text": ({"id_classes": "01"}, "id_classes must be a list"),
    "test_size text": ({"test_size": "a"}, "test_size must be a whole number"),
    "test_size part": ({"test_size": 2.7}, "test_size must be a whole number"),
    "name": ({"name": "a/b"}, "name must be .* not 'a/b'"),
    "no name": ({"name": None}, "name must be .* not None"),
    "directed": ({"directed": "no"}, "directed must be True or False"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_meant_is_refused(case):
    changes, sentence = CASES[case]
    with pytest.raises(InputError, match=sentence) as raised:
        make(**changes)
    assert "\n" not in str(raised.value)


def test_exposed_nodes_are_kept_by_mask_or_number():
    others = np.flatnonzero(LABELS == 3)
    for given in (others, others.tolist(), LABELS == 3):
        made = make(exposure=given, test_size=5)
        np.testing.assert_array_equal(made.exposure, LABELS == 3)
    assert make().exposure is None
    for wrong in ([NODES], [-1], [0.5], np.ones(3, bool), "all", [[1]]):
        with pytest.raises(
            InputError, match="exposure must be 40 booleans, or numbers"
        ):
            make(exposure=wrong)
