"""Features of any size, and columns by their names."""

import numpy as np
import pytest
import scipy.sparse
from support import own_graph
from support.own_graph import FEATURES, NODES, SHORT

from oodgat_jax.estimator import OODGATClassifier, feature_names, scaling
from oodgat_jax.types import InputError


@pytest.fixture(scope="module")
def graph():
    return own_graph.generate(labeled=25)[:3]


@pytest.fixture(scope="module")
def fitted(graph):
    names = [f"x{k}" for k in range(FEATURES)]
    model = OODGATClassifier(members=1, settings=SHORT)
    return model.fit(*graph, names=names)


def test_a_huge_column_does_no_harm(graph):
    features, edges, labels = graph
    noise = np.random.default_rng(0).normal(size=(NODES, 1))
    for size in (1.0, 1e9, 1e37):
        given = np.hstack([features[:, 1:], size * noise])
        model = OODGATClassifier(members=1, settings=SHORT).fit(given, edges, labels)
        assert model.report_.accuracy > 0.9, size
        assert np.isfinite(model.ood_score()).all()


def test_columns_are_centered_and_constant_ones_become_zero():
    features = np.float32([[1, 5, 0.1], [2, 5, 0.1], [3, 5, 0.1]])
    scaled = scaling.apply(features, scaling.fit(features, "standard"))
    np.testing.assert_allclose(scaled[:, 0], [-1.2247, 0, 1.2247], atol=1e-3)
    np.testing.assert_allclose(scaled[:, 1:], 0, atol=1e-6)


def test_the_largest_and_smallest_floats_stay_finite():
    biggest, tiny = np.finfo(np.float32).max, np.finfo(np.float32).tiny
    features = np.float32([[biggest, tiny], [-biggest, 0], [0, -tiny]])
    found = scaling.fit(features, "standard")
    assert np.isfinite(scaling.apply(features, found)).all()
    assert np.isfinite(scaling.apply(features[:, ::-1].copy(), found)).all()


def test_sparse_features_and_none_are_left_alone():
    features = np.float32([[1, 0], [3, 0]])
    assert scaling.fit(scipy.sparse.csr_array(features), "standard") is None
    assert scaling.fit(features, "none") is None


@pytest.mark.parametrize("make", [np.float32, scipy.sparse.csr_array])
def test_a_huge_column_that_is_not_scaled_is_named(make):
    features = make(np.array([[1.0, 0, 2e9], [0, 1, 1e9], [1, 1, 0]]))
    with pytest.warns(UserWarning, match="Feature 2 has values up to 2e"):
        scaling.fit(features, "none")


def test_the_scaling_is_saved(graph, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = OODGATClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.scaling_.mean, fitted.scaling_.mean)
    np.testing.assert_array_equal(again.ood_score(*graph[:2]), fitted.ood_score())


class Table:
    """The part of a pandas data frame that is used."""

    def __init__(self, values, columns):
        self.values, self.columns = np.asarray(values), columns
        self.shape = self.values.shape

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_columns_are_matched_by_name(graph, fitted):
    features, edges, _ = graph
    swapped = Table(features[:, ::-1], [f"x{k}" for k in reversed(range(FEATURES))])
    np.testing.assert_array_equal(fitted.predict(swapped, edges), fitted.predict())
    columns = [*(f"x{k}" for k in range(FEATURES - 1)), "y"]
    with pytest.raises(InputError, match="needs the features 'x15'"):
        fitted.predict(Table(features, columns), edges)
    more = Table(np.hstack([features, features[:, :1]]), [*swapped.columns[::-1], "w"])
    with pytest.warns(UserWarning, match="features 'w' are left out"):
        np.testing.assert_array_equal(fitted.predict(more, edges), fitted.predict())


def test_names_come_from_a_table_and_are_saved(graph, tmp_path):
    features, edges, labels = graph
    columns = [f"f{k}" for k in range(FEATURES)]
    model = OODGATClassifier(members=1, settings=SHORT)
    model.fit(Table(features, columns), edges, labels)
    model.save(tmp_path / "model")
    assert OODGATClassifier.load(tmp_path / "model").feature_names_in_ == columns


def test_wrong_names_are_refused(graph):
    features = graph[0]
    with pytest.raises(InputError, match="each of the 16 features"):
        feature_names.of(features, ["a"])
    with pytest.raises(InputError, match="Two features are called 'a'"):
        feature_names.of(features, ["a"] * FEATURES)
