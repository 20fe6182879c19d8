"""What the command `oodgat` reads: nodes, edges, and labels filled in later."""

import collections
import pathlib
from typing import NamedTuple

import numpy as np

from oodgat_jax.cli import app, predict_flags, predict_output
from oodgat_jax.cli.predict_flags import Given
from oodgat_jax.datasets.feature_tables import FeatureTable
from oodgat_jax.datasets.readers import graph_files, tables, unpacking
from oodgat_jax.estimator import OODGATClassifier, inputs
from oodgat_jax.types import InputError


class Graph(NamedTuple):
    """A user's graph."""

    nodes: tables.Nodes
    edges: np.ndarray  # [E, 2]

    @property
    def features(self) -> FeatureTable:
        """Returns the features as the classifier takes them."""
        return FeatureTable(self.nodes.features, self.nodes.names, self.nodes.texts)


def read(given: Given, model: OODGATClassifier | None) -> Graph:
    """Reads nodes and edges from the files that the flags name.

    Args:
      given: the flags.
      model: that predicts, and knows which columns are categorical; None for a fit.
    """
    path = pathlib.Path(given.nodes)
    columns = _columns(given, model)
    if predict_flags.is_npz(given):
        return Graph(*tables.read_npz(path, may_lack=columns.may_lack))
    if unpacking.inner(path) == graph_files.GRAPHML:
        return Graph(*graph_files.read_graphml(path, columns))
    if not given.edges:
        raise InputError("Name the table of edges with --edges.")
    form = tables.Format(given.encoding, given.delimiter)
    nodes = tables.read_nodes(path, columns, form, bare=bool(given.features))
    if given.features:
        matrix = pathlib.Path(given.features)
        nodes = tables.read_features(matrix, nodes, may_lack=columns.may_lack)
    edges_path = pathlib.Path(given.edges)
    edges = tables.read_edges(edges_path, nodes.ids, columns, form)
    unused = tables.unused_columns(edges_path, columns, form)
    if unused:
        app.tell(
            f"{edges_path}: column '{unused[0]}' is not used, since edges have no "
            "weights here."
        )
    return Graph(nodes, edges)


def _columns(given: Given, model: OODGATClassifier | None) -> tables.Columns:
    categorical = given.categorical or () if model is None else model.categorical
    may_lack = bool(given.missing) if model is None else model.missing != "refuse"
    return tables.Columns(
        given.id_column,
        given.label_column,
        given.source_column,
        given.target_column,
        tuple(given.ignore),
        tuple(categorical),
        may_lack,
    )


def with_labels(graph: Graph, given: Given) -> Graph:
    """Returns the graph with the labels that --labels adds, and says what is new."""
    if not given.labels:
        return graph
    path = pathlib.Path(given.labels)
    columns = tables.Columns(given.id_column, given.label_column)
    form = tables.Format(given.encoding, given.delimiter)
    more = tables.read_nodes(path, columns, form, bare=True)
    if more.labels is None:
        raise InputError(
            f"{path} has no column '{columns.label}': name it with --label_column."
        )
    row = {name: at for at, name in enumerate(graph.nodes.ids)}
    labels = _as_texts(graph.nodes.labels or [""] * len(row))
    before = set(labels)
    added, replaced = collections.Counter[str](), 0
    for name, label in zip(more.ids, more.labels, strict=True):
        if not inputs.is_missing(label):
            at = _row(path, row, name, given.nodes)
            _check_label(path, name, label, given.verdict)
            added[label] += 1
            replaced += labels[at] not in ("", label)
            labels[at] = label
    app.tell(_said(path, added, before, replaced))
    return graph._replace(nodes=graph.nodes._replace(labels=labels))


def _as_texts(labels: list) -> list[str]:
    """Returns labels as text, which is what a table of labels holds."""
    return ["" if inputs.is_missing(label) else str(label) for label in labels]


def _row(path: pathlib.Path, row: dict[str, int], name: str, nodes: str) -> int:
    """Returns the row of an id; one that was escaped for a spreadsheet is known too."""
    plain = name.removeprefix("'")
    if name not in row and plain in row and tables.escaped(plain) == name:
        name = plain
    if name not in row:
        raise InputError(
            f"{path} has a label for node '{name}', which is not among the nodes of "
            f"{nodes}."
        )
    return row[name]


def _check_label(path: pathlib.Path, name: str, label: str, verdict: str) -> None:
    if label == verdict:
        raise InputError(
            f"{path} calls node '{name}' '{label}', which is the word for nodes of no "
            "known class: give its class a name, or leave the label empty."
        )


def _said(
    path: pathlib.Path, added: collections.Counter, before: set[str], replaced: int
) -> str:
    """Returns a sentence on the labels of a table."""
    text = f"{path}: {added.total()} labels"
    text += f", {replaced} of them in place of others" if replaced else ""
    new = [f"'{name}' ({added[name]})" for name in sorted(set(added) - before)]
    return text + (f"; new classes {', '.join(new)}." if new else ".")


def check_verdict(given: Given, graph: Graph) -> None:
    """Raises InputError unless there are labels, none of which is the verdict."""
    if graph.nodes.labels is None:
        raise InputError(
            f"{given.nodes} has no labels: name their column with --label_column, or "
            "a saved model with --model."
        )
    predict_output.check_verdict(given.verdict, graph.nodes.labels)
