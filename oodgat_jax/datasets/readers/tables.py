"""Reads a user's graph from files: tables of nodes and edges, or one file with all.

nodes.csv has a row per node: an id, a label (empty where there is none) and one number
per feature. edges.csv has a row per edge: the ids of its two nodes.

  id,label,height,weight          source,target
  a,cat,0.3,4.1                   a,b
  b,,0.7,30                       b,c

Both may be CSV or TSV, as they are or compressed (.gz, .bz2, .xz, .zst), Parquet, Arrow
or Feather; edges also GraphML or an edge list. `graph_npz` tells of npz.
"""

import csv
import importlib.util
import io
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import numpy as np

from oodgat_jax.datasets.readers import (
    graph_files,
    graph_npz,
    text_tables,
    unpacking,
)
from oodgat_jax.datasets.readers.graph_npz import read_npz
from oodgat_jax.datasets.readers.table_columns import Columns, Format, Nodes

__all__ = ["Columns", "Format", "Nodes", "read_npz"]

FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a cell of a formula begins with
LARGE = 1 << 20  # bytes from which on a CSV is read by pyarrow, if it is there
DEFAULT_COLUMNS, DEFAULT_FORMAT = Columns(), Format()


def read_nodes(
    path: pathlib.Path,
    columns: Columns = DEFAULT_COLUMNS,
    form: Format = DEFAULT_FORMAT,
    *,
    bare: bool = False,
) -> Nodes:
    """Reads a table of nodes; a table without labels is one to predict for.

    Args:
      path: a table of any of the formats.
      columns: which ones are what.
      form: how a text is written.
      bare: whether the features are elsewhere: only ids and labels are read.
    """
    if _is_arrow(path):
        return _arrow(path).read_nodes(path, columns, bare=bare)
    found = None
    if _is_for_arrow(path):
        found = _arrow(path).read_nodes_csv(path, columns, form, bare=bare)
    return found or text_tables.read_nodes(path, columns, form, bare=bare)


def read_edges(
    path: pathlib.Path,
    ids: Sequence[str],
    columns: Columns = DEFAULT_COLUMNS,
    form: Format = DEFAULT_FORMAT,
) -> np.ndarray:
    """Reads a table of edges as row numbers of the nodes, [E, 2]."""
    if unpacking.inner(path) == graph_files.GRAPHML:
        return graph_files.read_graphml_edges(path, ids)
    if unpacking.inner(path) == graph_files.EDGE_LIST:
        return graph_files.read_edge_list(path, ids, form)
    if _is_arrow(path):
        return _arrow(path).read_edges(path, ids, columns)
    found = None
    if _is_for_arrow(path):
        found = _arrow(path).read_edges_csv(path, ids, columns, form)
    if found is None:
        found = text_tables.read_edges(path, ids, columns, form)
    return found


def read_header(path: pathlib.Path, form: Format = DEFAULT_FORMAT) -> list[str]:
    """Returns the names of a table's columns."""
    if _is_arrow(path):
        return _arrow(path).read_header(path)
    return text_tables.read_header(path, form)


def read_features(path: pathlib.Path, nodes: Nodes, *, may_lack: bool = False) -> Nodes:
    """Returns the nodes with features from a matrix of scipy or an array in an npz."""
    features, names = graph_npz.read_features(path, len(nodes.ids), may_lack=may_lack)
    return nodes._replace(features=features, names=names)


def unused_columns(
    path: pathlib.Path,
    columns: Columns = DEFAULT_COLUMNS,
    form: Format = DEFAULT_FORMAT,
) -> list[str]:
    """Returns what a table of edges has beside the two nodes, such as weights."""
    if unpacking.inner(path) == graph_files.GRAPHML:
        return []
    if unpacking.inner(path) == graph_files.EDGE_LIST:
        return ["3"] if graph_files.has_weights(path, form) else []
    used = (columns.source, columns.target)
    return [name for name in read_header(path, form) if name not in used]


def _is_arrow(path: pathlib.Path) -> bool:
    return unpacking.inner(path) in (*unpacking.PARQUET, *unpacking.ARROW)


def _is_for_arrow(path: pathlib.Path) -> bool:
    """Returns whether pyarrow is there and worth its start."""
    try:
        large = path.stat().st_size >= LARGE
    except OSError:  # the reader says so
        return False
    return large and importlib.util.find_spec("pyarrow") is not None


def _arrow(path: pathlib.Path) -> Any:
    """Returns the module that needs pyarrow, or says how to install it."""
    unpacking.optional("pyarrow", str(path))
    from oodgat_jax.datasets.readers import arrow_tables

    return arrow_tables


def escaped(text: Any) -> Any:
    """Returns a cell that no spreadsheet takes for a formula, led by an apostrophe.

    Numbers stay as they are, and so does all other text.
    """
    if not isinstance(text, str) or not text.startswith(FORMULAS):
        return text
    try:
        float(text)
        return text
    except ValueError:
        return f"'{text}"


def table_text(header: Sequence[str], rows: Iterable[Sequence]) -> str:
    """Returns a CSV table."""
    out = io.StringIO()
    write_table(out, header, rows)
    return out.getvalue()


def write_table(out: TextIO, header: Sequence[str], rows: Iterable[Sequence]) -> None:
    """Writes a CSV table to an open file, row by row."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    out.flush()
