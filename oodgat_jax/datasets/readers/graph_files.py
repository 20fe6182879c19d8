"""Reads GraphML, through networkx, and edge lists.

Of GraphML, the attributes of nodes may be labels and features. An edge list has a line
per edge: its two nodes, with white space between them; a line that begins with # is a
comment. Whatever else an edge has is not used.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oodgat_jax.datasets.feature_tables import category, is_absent
from oodgat_jax.datasets.readers import table_columns, unpacking
from oodgat_jax.datasets.readers.table_columns import Columns, Format, Nodes
from oodgat_jax.types import InputError

GRAPHML, EDGE_LIST = ".graphml", ".edgelist"


def read_graphml(path: Path, columns: Columns) -> tuple[Nodes, np.ndarray]:
    """Reads nodes and edges [E, 2]; a node's id is the one in the file."""
    graph = _graph(path)
    facts = [dict(graph.nodes[node]) for node in graph.nodes]
    ids = [str(node) for node in graph.nodes]
    if not ids:
        raise InputError(f"{path} has no node.")
    names = list(dict.fromkeys(str(name) for fact in facts for name in fact))
    header = [columns.id, *(name for name in names if name != columns.id)]
    plan = table_columns.plan(path, header, columns)
    labels = [fact.get(columns.label) for fact in facts]
    features = [
        [_number(path, ids[row], header[at], fact, columns) for at in plan.numbers]
        for row, fact in enumerate(facts)
    ]
    nodes = Nodes(
        ids,
        table_columns.lighter(np.array(features, np.float32)),
        [header[at] for at in plan.numbers],
        None if plan.label is None else ["" if v is None else str(v) for v in labels],
        {
            header[at]: category(
                _text(path, ids[row], header[at], fact, columns)
                for row, fact in enumerate(facts)
            )
            for at in plan.texts
        },
    )
    return nodes, _numbered(path, graph, ids)


def read_graphml_edges(path: Path, ids: Sequence[str]) -> np.ndarray:
    """Reads the edges of a GraphML file as row numbers of the nodes, [E, 2]."""
    return _numbered(path, _graph(path), ids)


def read_edge_list(path: Path, ids: Sequence[str], form: Format) -> np.ndarray:
    """Reads an edge list as row numbers of the nodes, [E, 2]."""
    number = {name: row for row, name in enumerate(ids)}
    pairs = []
    for line, cells in _cells(path, form):
        if len(cells) < 2:
            raise InputError(f"{path}, line {line} names one node: an edge needs two.")
        for name in cells[:2]:
            if name not in number:
                raise table_columns.unknown_node(path, f"line {line}", name)
        pairs.append([number[name] for name in cells[:2]])
    return np.array(pairs, np.int64).reshape(-1, 2)


def has_weights(path: Path, form: Format) -> bool:
    """Returns whether an edge list has more than two entries on its first line."""
    return len(next(iter(_cells(path, form)), (0, []))[1]) > 2


def _cells(path: Path, form: Format) -> Any:
    """Yields the number and the entries of every line that is not a comment."""
    try:
        with unpacking.opened(path) as file:
            text = io.TextIOWrapper(file, encoding=form.encoding)
            for at, line in enumerate(text, 1):
                cells = line.partition("#")[0].split(form.delimiter)
                if cells and any(cells):
                    yield at, [cell.strip() for cell in cells]
    except UnicodeError as error:
        raise InputError(
            f"{path} is not written in {form.encoding}: name its encoding with "
            "--encoding."
        ) from error
    except LookupError as error:
        raise InputError(f"There is no --encoding '{form.encoding}'.") from error


def _graph(path: Path) -> Any:
    networkx = unpacking.optional("networkx", str(path))
    try:
        with unpacking.opened(path) as file:
            return networkx.read_graphml(file, node_type=str)
    except InputError:
        raise
    except Exception as error:  # XML and networkx have many kinds for damaged files
        first = str(error).strip().partition("\n")[0].rstrip(".")
        raise InputError(f"{path} is not GraphML: {first}.") from error


def _numbered(path: Path, graph: Any, ids: Sequence[str]) -> np.ndarray:
    number = {name: row for row, name in enumerate(ids)}
    for node in graph.nodes:
        if node not in number and graph.degree(node):
            raise table_columns.unknown_node(path, "an edge", node)
    pairs = [(number[a], number[b]) for a, b in graph.edges()]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _number(path: Path, node: str, name: str, fact: dict, columns: Columns) -> float:
    value = fact.get(name)
    place = f"node {node!r:.50}"
    if is_absent(value):
        if columns.may_lack:
            return float("nan")
        raise table_columns.wrong_cell(path, place, name, "")
    if isinstance(value, str):
        raise table_columns.text_column(path, place, name, value)
    with np.errstate(over="ignore"):
        found = float(np.float32(value))
    if not np.isfinite(found):
        raise table_columns.wrong_cell(path, place, name, str(value))
    return found


def _text(path: Path, node: str, name: str, fact: dict, columns: Columns) -> Any:
    value = fact.get(name)
    if is_absent(value) and not columns.may_lack:
        raise table_columns.empty_cell(path, f"node {node!r:.50}", name)
    return value
