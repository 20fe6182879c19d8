"""What tables of nodes and edges hold, and which of their columns are what."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from oodgat_jax.datasets.arrays import NO_NAMES
from oodgat_jax.datasets.feature_tables import Category
from oodgat_jax.graphs import DENSE_FROM
from oodgat_jax.types import InputError

UNNAMED = re.compile(r"Unnamed: \d+")
MISSING = frozenset(("", "na", *NO_NAMES))  # in lower case: no value
ENDS = "--source_column and --target_column"


class Nodes(NamedTuple):
    """A table of nodes."""

    ids: list[str]
    features: np.ndarray | scipy.sparse.csr_array  # [N, F] float32; NaN: missing
    names: list[str] | None  # [F]; None if the file has none
    labels: list | None  # [N], "" or -1 where there is none
    texts: Mapping[str, Category] = {}  # the categorical columns


class Columns(NamedTuple):
    """What the columns are called; the features are all others."""

    id: str = "id"
    label: str = "label"
    source: str = "source"
    target: str = "target"
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    may_lack: bool = False  # whether values of features may be missing


class Format(NamedTuple):
    """How the tables are written."""

    encoding: str = "utf-8"
    delimiter: str | None = None  # None: a tab for .tsv, else a comma


class Plan(NamedTuple):
    """The places of the columns that are read of a table of nodes."""

    id: int
    label: int | None
    numbers: list[int]
    texts: list[int]


def plan(
    path: Path, header: Sequence[str], columns: Columns, *, bare: bool = False
) -> Plan:
    """Returns which columns of a table of nodes are what.

    Args:
      path: of the table.
      header: its columns.
      columns: what the user calls them.
      bare: whether the features are elsewhere, so that none is read here.

    Raises:
      InputError: one is missing, twice there or without a name.
    """
    check_header(path, header)
    need(path, header, [columns.id], "--id_column")
    for flag, names in (("ignore", columns.ignore), ("encode", columns.categorical)):
        unknown = sorted(set(names) - set(header))
        if unknown:
            raise InputError(f"{path} has no column '{unknown[0]}' to {flag}.")
    left_out = {columns.id, columns.label, *columns.ignore}
    both = sorted(left_out & set(columns.categorical))
    if both:
        raise InputError(
            f"The column '{both[0]}' cannot be a categorical feature and be left out "
            "or hold ids or labels as well."
        )
    chosen = [at for at, name in enumerate(header) if name not in left_out]
    if not bare:
        _check_named(path, header, chosen)
    if not chosen and not bare:
        raise InputError(f"{path} has no column of features beside id and label.")
    label = header.index(columns.label) if columns.label in header else None
    texts = [at for at in chosen if header[at] in columns.categorical]
    numbers = [at for at in chosen if at not in set(texts)]
    at_id = header.index(columns.id)
    return Plan(at_id, label, [] if bare else numbers, [] if bare else texts)


def ends(path: Path, header: Sequence[str], columns: Columns) -> tuple[int, int]:
    """Returns the places of an edge's two nodes in a table of edges."""
    check_header(path, header)
    need(path, header, [columns.source, columns.target], ENDS)
    if columns.source == columns.target:
        raise InputError(
            f"{ENDS} both name '{columns.source}': an edge needs two columns."
        )
    return header.index(columns.source), header.index(columns.target)


def check_header(path: Path, header: Sequence[str]) -> None:
    """Raises InputError if a column is there twice."""
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise InputError(f"{path} has two columns '{repeated[0]}'.")


def need(path: Path, header: Sequence[str], names: Iterable[str], flag: str) -> None:
    """Raises InputError if a column is missing that a flag could name."""
    missing = [name for name in names if name not in header]
    if missing:
        shown = ", ".join(header[:8]) + (", ..." if len(header) > 8 else "")
        raise InputError(
            f"{path} has no column '{missing[0]}' (it has {shown}): name the right one "
            f"with {flag}."
        )


def _check_named(path: Path, header: Sequence[str], chosen: Sequence[int]) -> None:
    """Refuses the index that pandas writes into tables: it is not a feature."""
    for at in chosen:
        if not header[at].strip() or UNNAMED.fullmatch(header[at]):
            raise InputError(
                f"{path} has no name for column {at + 1}, as pandas writes its index: "
                "write the table with index=False, or name the column."
            )


def wrong_cell(path: Path, place: str, name: str, cell: str) -> InputError:
    """Returns the error for a feature that is not a number: missing, text, infinite.

    Args:
      path: of the table.
      place: "line 3" or "row 3".
      name: of the column.
      cell: what it holds.
    """
    advice = f"correct it, or leave the column out with --ignore={name}"
    if cell.strip().lower() in MISSING:
        advice += ", or fill missing values with --missing=mean or --missing=zero"
    elif not _is_numeric(cell):
        advice += f", or encode it with --categorical={name}"
    shown = cell if len(cell) <= 50 else f"{cell[:50]}..."
    return InputError(
        f"{path}, {place}: column '{name}' holds {shown!r}, which is not a finite "
        f"number: {advice}."
    )


def text_column(path: Path, place: str, name: str, cell: str) -> InputError:
    """Returns the error for a feature that is stored as text."""
    return InputError(
        f"{path}, {place}: column '{name}' holds the text {cell!r:.50}: store numbers "
        f"as numbers, leave the column out with --ignore={name}, or encode it with "
        f"--categorical={name}."
    )


def empty_cell(path: Path, place: str, name: str) -> InputError:
    """Returns the error for a categorical feature without a value."""
    return InputError(
        f"{path}, {place}: the categorical column '{name}' is empty: correct it, or "
        "encode missing values as zeros with --missing=zero."
    )


def _is_numeric(cell: str) -> bool:
    try:
        float(cell)
        return True
    except ValueError:
        return False


def check_ids(path: Path, ids: Sequence[str], places: Iterable[str]) -> None:
    """Raises InputError if an id is there twice; `places` says where each one is."""
    if len(set(ids)) == len(ids):
        return
    seen = set()
    for name, place in zip(ids, places, strict=True):
        if name in seen:
            raise InputError(f"{path}, {place}: node '{name}' is there twice.")
        seen.add(name)


def unknown_node(path: Path, place: str, name: str) -> InputError:
    """Returns the error for an edge whose end is no node."""
    return InputError(
        f"{path}, {place}: the edge names node '{name}', which is not among the nodes."
    )


def lighter(dense: np.ndarray) -> np.ndarray | scipy.sparse.csr_array:
    """Returns features [N, F] as a sparse matrix if they are mostly zeros."""
    if np.count_nonzero(dense) < DENSE_FROM * dense.size:
        return scipy.sparse.csr_array(dense)
    return dense
