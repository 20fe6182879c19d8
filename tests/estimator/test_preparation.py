"""Missing values, columns of text, and what other libraries have as a graph."""

import types

import numpy as np
import pytest
import scipy.sparse
from support import synthetic

import oodgat_jax as og
from oodgat_jax.datasets import feature_tables
from oodgat_jax.estimator import OODGATClassifier, inputs, preparation
from oodgat_jax.types import InputError

NAN = float("nan")
QUICK = {"members": 1, "settings": {"max_steps": 2}}


class Frame:
    """The part of a table of pandas that is used."""

    def __init__(self, **columns):
        self._columns = columns
        self.columns = list(columns)
        self.shape = (len(next(iter(columns.values()))), len(columns))

    def __getitem__(self, name):
        return self._columns[name]

    def __array__(self, dtype=None, copy=None):
        return np.array(list(self._columns.values()), object).T


@pytest.fixture(scope="module")
def made():
    made = synthetic.generate(60, 240, 3, signal=2.0, seed=3)
    labels = np.where((made.labels < 3) & (np.arange(60) % 2 == 0), made.labels, -1)
    edges = np.stack([made.senders, made.receivers], 1)
    return made.features, edges, labels


def frame(features, colors=("red", "blue")):
    color = [colors[row % len(colors)] for row in range(len(features))]
    numbers = {f"x{k}": column.tolist() for k, column in enumerate(features.T)}
    return Frame(**numbers, color=color)


@pytest.fixture(scope="module")
def fitted(made):
    """A model that fills in means and encodes colors."""
    features, edges, labels = made
    gaps = features.copy()
    gaps[3, 1] = NAN
    model = OODGATClassifier("mlp", missing="mean", categorical=["color"], **QUICK)
    return model.fit(frame(gaps), edges, labels), gaps


def test_means_and_categories_belong_to_the_model(made, fitted, tmp_path):
    _, edges, _ = made
    model, gaps = fitted
    assert model.feature_names_in_ == ["x0", "x1", "x2", "color=blue", "color=red"]
    means = np.nanmean(gaps, 0, dtype=np.float64)
    np.testing.assert_allclose(model.preparation_.means, means, rtol=1e-6)
    filled = np.where(np.isnan(gaps), means, gaps).astype(np.float32)
    colors = np.tile([[0.0, 1.0], [1.0, 0.0]], (30, 1))
    plain = OODGATClassifier("mlp", **QUICK)
    plain.fit(np.hstack([filled, colors]), *made[1:])
    np.testing.assert_array_equal(model.ood_score(), plain.ood_score())
    model.save(tmp_path / "model")
    again = OODGATClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.ood_score(frame(gaps), edges), model.ood_score()
    )
    # Another graph is filled with the means of the fit, not with its own.
    shifted = np.where(np.isnan(gaps), NAN, gaps + 1)
    known = np.where(np.isnan(gaps), means, gaps + 1).astype(np.float32)
    np.testing.assert_array_equal(
        again.ood_score(frame(shifted), edges), again.ood_score(frame(known), edges)
    )


def test_a_new_category_is_all_zeros_and_said(made, fitted):
    features, edges, _ = made
    model, _ = fitted
    with pytest.warns(UserWarning, match="'mauve' in 20 rows.*all zeros"):
        score = model.ood_score(frame(features, ("red", "blue", "mauve")), edges)
    matrix, _ = preparation.apply(
        feature_tables.of(frame(features, ("red", "blue")), ["color"]),
        model.preparation_,
        "mean",
    )
    assert matrix[:2, 3:].tolist() == [[0, 1], [1, 0]]
    assert np.isfinite(score).all()
    with pytest.raises(InputError, match="needs the column 'color', which is categ"):
        model.predict(feature_tables.of(features), edges)


def test_sparse_features_are_filled_alike():
    dense = np.array([[NAN, 0, 2], [1, 0, NAN], [3, 0, 0]], np.float32)
    expected = {"mean": [[2, 0, 2], [1, 0, 1], [3, 0, 0]], "zero": None}
    expected["zero"] = np.nan_to_num(dense)
    for missing, values in expected.items():
        for form in (np.asarray, scipy.sparse.csr_array):
            table = feature_tables.of(form(dense))
            found, _ = preparation.apply(
                table, preparation.fit(table, missing), missing
            )
            found = found if form is np.asarray else found.toarray()
            np.testing.assert_array_equal(found, values)


REFUSED = {
    "missing": ({}, {"x0": [1, None, 2]}, "Row 1, column 'x0' .* missing='mean'"),
    "text": ({}, {"x0": [1, "red", 2]}, "Row 1, column 'x0' holds 'red'.*categorical"),
    "infinite": ({}, {"x0": [1, 2, 1e39]}, "Row 2, column 'x0' holds 1e\\+39"),
    "empty": ({"missing": "mean"}, {"x0": [None] * 3}, "'x0' has no value at all"),
    "column": ({"categorical": ["y"]}, {"x0": [1] * 3}, "no column 'y' to encode"),
    "word": ({"missing": "median"}, {"x0": [1] * 3}, "missing must be refuse, mean"),
    "kind": ({"categorical": "x0"}, {"x0": [1] * 3}, "list of columns' names"),
    "too many": (
        {"categorical": ["x0"]},
        {"x0": [f"{k}" for k in range(1001)]},
        "1001 different values",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_prepared_is_refused_by_name(name):
    arguments, columns, sentence = REFUSED[name]
    with pytest.raises(InputError, match=sentence) as raised:
        OODGATClassifier("mlp", **arguments).fit(Frame(**columns), [], [0, 1, -1])
    assert "\n" not in str(raised.value)


def test_a_graph_of_another_library_holds_all(made):
    features, edges, labels = made
    expected = OODGATClassifier("mlp", **QUICK).fit(features, edges, labels)
    pyg = types.SimpleNamespace(x=features, edge_index=edges.T, y=labels)
    dgl = types.SimpleNamespace(
        ndata={"feat": features, "label": labels}, edges=lambda: tuple(edges.T)
    )
    for graph in (pyg, dgl, attributed(features, edges, labels)):
        found = OODGATClassifier("mlp", **QUICK).fit(graph)
        np.testing.assert_array_equal(found.ood_score(), expected.ood_score())
        data = og.from_arrays(graph, id_classes=(0, 1))
        np.testing.assert_array_equal(data.labels, labels)
    pyg.edge_attr = np.ones(len(edges))
    with pytest.warns(UserWarning, match="edge_attr is not used"):
        og.from_arrays(pyg, id_classes=(0, 1))


def attributed(features, edges, labels):
    """The part of a networkx graph with attributes that is used."""
    nodes = {
        node: {f"x{k}": float(value) for k, value in enumerate(row)}
        | ({"label": int(labels[node])} if labels[node] >= 0 else {})
        for node, row in reversed(list(enumerate(features)))  # rows are their names
    }
    pairs = [tuple(edge) for edge in edges.tolist()]
    return types.SimpleNamespace(nodes=nodes, adj=nodes, edges=lambda: pairs)


def test_tables_of_pandas_polars_and_arrow_are_alike():
    values = {"a": [1.5, None, 2.0], "b": [1, 2, None], "c": ["x", None, "y"]}
    pairs = {"source": [0, 1], "target": [1, 2], "weight": [0.5, 1.0]}
    libraries = {
        "pandas": lambda module, columns: module.DataFrame(columns),
        "polars": lambda module, columns: module.DataFrame(columns),
        "pyarrow": lambda module, columns: module.table(columns),
    }
    for name, make in libraries.items():
        try:
            module = __import__(name)
        except ImportError:
            continue
        table = feature_tables.of(make(module, values), ["c"])
        expected = np.array([[1.5, 1], [NAN, 2], [2, NAN]], np.float32)
        np.testing.assert_array_equal(table.numbers, expected)
        assert table.names == ["a", "b"]
        assert table.texts["c"].codes.tolist() == [0, -1, 1]
        labels = [*values["c"], "x", "y"]
        column = make(module, {"label": labels})["label"]
        classes, codes = inputs.labels(column, 5)
        assert (classes, codes.tolist()) == (["x", "y"], [0, -1, 1, 0, 1])
        with pytest.warns(UserWarning, match="'weight' of the edges is not used"):
            found = og.datasets.arrays.as_pairs(make(module, pairs), 3)
        assert found.tolist() == [[0, 1], [1, 2]]
