"""Reads a user's graph from files: CSV tables of nodes and edges, or one npz.

nodes.csv has a row per node: an id, a label (empty where there is none) and one number
per feature. edges.csv has a row per edge: the ids of its two nodes.

  id,label,height,weight          source,target
  a,cat,0.3,4.1                   a,b
  b,,0.7,30                       b,c

An npz has `features` [N, F], or `data`, `indices`, `indptr` and `shape` as scipy's
`save_npz` writes them for a CSR matrix; `edges` [E, 2] of row numbers; and, if they are
known, `labels` [N], `ids` [N] and `feature_names` [F]. No array may be larger than what
the file holds of it, see `datasets.limits`.
"""

import csv
import io
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from oodgat_jax.datasets.arrays import MOST_FEATURES, as_features
from oodgat_jax.datasets.readers import npz
from oodgat_jax.graphs import DENSE_FROM
from oodgat_jax.types import InputError

Rows = Iterator[tuple[int, list[str]]]
CSR_NAMES = {"data", "indices", "indptr", "shape"}
NPZ_NAMES = {"features", "edges", "labels", "ids", "feature_names", *CSR_NAMES}
UNNAMED = re.compile(r"Unnamed: \d+")
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a cell of a formula begins with


class Nodes(NamedTuple):
    """A table of nodes."""

    ids: list[str]
    features: np.ndarray | scipy.sparse.csr_array  # [N, F] float32
    names: list[str] | None  # [F]; None if the file has none
    labels: list | None  # [N], "" or -1 where there is none


class Columns(NamedTuple):
    """What the columns are called; the features are all others."""

    id: str = "id"
    label: str = "label"
    source: str = "source"
    target: str = "target"
    ignore: tuple[str, ...] = ()


class Format(NamedTuple):
    """How the tables are written."""

    encoding: str = "utf-8"
    delimiter: str | None = None  # None: a tab for .tsv, else a comma


DEFAULT_COLUMNS, DEFAULT_FORMAT = Columns(), Format()


def read_nodes(
    path: pathlib.Path,
    columns: Columns = DEFAULT_COLUMNS,
    form: Format = DEFAULT_FORMAT,
) -> Nodes:
    """Reads a table of nodes; a table without labels is one to predict for."""
    header, rows = _read(path, form)
    _need(path, header, [columns.id], "--id_column")
    left_out = {columns.id, columns.label, *columns.ignore}
    unknown = sorted(set(columns.ignore) - set(header))
    if unknown:
        raise InputError(f"{path} has no column '{unknown[0]}' to ignore.")
    chosen = [at for at, name in enumerate(header) if name not in left_out]
    _check_named(path, header, chosen)
    if not chosen:
        raise InputError(f"{path} has no column of features beside id and label.")
    at_id = header.index(columns.id)
    ids = [cells[at_id] for _, cells in rows]
    _check_ids(path, ids, [line for line, _ in rows])
    labels = None
    if columns.label in header:
        labels = [cells[header.index(columns.label)].strip() for _, cells in rows]
    features = _numbers(path, header, rows, chosen)
    return Nodes(ids, features, [header[at] for at in chosen], labels)


def read_edges(
    path: pathlib.Path,
    ids: Sequence[str],
    columns: Columns = DEFAULT_COLUMNS,
    form: Format = DEFAULT_FORMAT,
) -> np.ndarray:
    """Reads a table of edges as row numbers of the nodes, [E, 2]."""
    header, rows = _read(path, form, may_be_empty=True)
    flag = "--source_column and --target_column"
    _need(path, header, [columns.source, columns.target], flag)
    if columns.source == columns.target:
        raise InputError(
            f"{flag} both name '{columns.source}': an edge needs two columns."
        )
    row = {name: number for number, name in enumerate(ids)}
    ends = header.index(columns.source), header.index(columns.target)
    pairs = np.empty((len(rows), 2), np.int64)
    for at, (line, cells) in enumerate(rows):
        for side, column in enumerate(ends):
            number = row.get(cells[column])
            if number is None:
                raise InputError(
                    f"{path}, line {line}: the edge names node '{cells[column]}', "
                    "which is not among the nodes."
                )
            pairs[at, side] = number
    return pairs


def read_npz(path: pathlib.Path) -> tuple[Nodes, np.ndarray]:
    """Reads nodes and edges [E, 2] from one npz."""
    try:
        arrays = npz.read(path, NPZ_NAMES)
    except FileNotFoundError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    except InputError:
        raise
    except Exception as error:  # zip and npy have many kinds for damaged bytes
        raise InputError(f"{path} is not an npz of plain arrays: {error}.") from error
    if "edges" not in arrays:
        raise InputError(f"{path} has no array 'edges', pairs of row numbers [E, 2].")
    features = _features(path, arrays)
    count, width = features.shape
    ids = _texts(path, arrays, "ids", count) or [str(row) for row in range(count)]
    names = _texts(path, arrays, "feature_names", width)
    labels = None
    if "labels" in arrays:
        if arrays["labels"].shape != (count,):
            raise InputError(
                f"{path} has labels of shape {arrays['labels'].shape} for {count} rows "
                "of features."
            )
        labels = arrays["labels"].tolist()
    return Nodes(ids, features, names, labels), arrays["edges"]


def _features(
    path: pathlib.Path, arrays: Mapping[str, np.ndarray]
) -> np.ndarray | scipy.sparse.csr_array:
    """Returns the features [N, F] of an npz, dense or sparse."""
    if "features" in arrays:
        features = arrays["features"]
    elif set(arrays) >= CSR_NAMES:
        features = _csr(path, arrays)
    else:
        raise InputError(f"{path} has no array 'features' [N, F].")
    try:
        return as_features(features)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _csr(
    path: pathlib.Path, arrays: Mapping[str, np.ndarray]
) -> scipy.sparse.csr_array:
    """Returns a checked sparse matrix: every index is inside of its shape."""
    data, indices, indptr, shape = (
        arrays[name] for name in ("data", "indices", "indptr", "shape")
    )
    places = (indices, indptr, shape)
    if any(part.ndim != 1 for part in (data, *places)) or shape.shape != (2,):
        raise InputError(
            f"{path}: data, indices, indptr and shape of a CSR matrix must be lists."
        )
    if any(part.dtype.kind not in "iu" for part in places):
        raise InputError(f"{path}: indices, indptr and shape must be whole numbers.")
    rows, columns = (int(size) for size in shape)
    if rows != len(indptr) - 1:
        raise InputError(
            f"{path}: a CSR matrix of {rows} rows needs {rows + 1} entries in indptr, "
            f"but there are {len(indptr)}."
        )
    if not 0 < columns <= MOST_FEATURES:
        raise InputError(
            f"{path}: the shape says {columns} features: give at most {MOST_FEATURES}."
        )
    if len(data) != len(indices) or not _is_index(indices, columns):
        raise InputError(
            f"{path}: indices must be one per entry of data, from 0 to {columns - 1}."
        )
    ends = indptr.astype(np.int64)
    if ends[0] != 0 or ends[-1] != len(data) or (np.diff(ends) < 0).any():
        raise InputError(
            f"{path}: indptr must rise from 0 to {len(data)}, the entries of data."
        )
    parts = (data, indices.astype(np.int64), ends)
    return scipy.sparse.csr_array(parts, shape=(rows, columns))


def _is_index(values: np.ndarray, size: int) -> bool:
    return bool(((values >= 0) & (values < size)).all())


def _texts(
    path: pathlib.Path, arrays: Mapping[str, np.ndarray], name: str, count: int
) -> list[str] | None:
    """Returns an array as a list of distinct strings, if it is there."""
    if name not in arrays:
        return None
    if arrays[name].shape != (count,):
        raise InputError(
            f"{path} has {name} of shape {arrays[name].shape} where [{count}] is "
            "needed."
        )
    found = [str(value) for value in arrays[name].tolist()]
    if len(set(found)) < count:
        raise InputError(f"{path} has equal {name}: each must be there once.")
    return found


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


def table_text(header: Sequence[str], rows: Sequence[Sequence]) -> str:
    """Returns a CSV table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _read(
    path: pathlib.Path, form: Format, may_be_empty: bool = False
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Reads the header, and every row with its line number."""
    delimiter = form.delimiter or ("\t" if path.suffix == ".tsv" else ",")
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise InputError(f"--delimiter must be one character, not {delimiter!r}.")
    encoding = "utf-8-sig" if form.encoding == "utf-8" else form.encoding
    try:
        with open(path, newline="", encoding=encoding) as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            lines = [(reader.line_num, cells) for cells in reader if cells]
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    except UnicodeError as error:
        raise InputError(
            f"{path} is not written in {form.encoding}: save it as UTF-8, or name its "
            "encoding with --encoding, for instance latin-1."
        ) from error
    except LookupError as error:
        raise InputError(f"There is no --encoding '{form.encoding}'.") from error
    except csv.Error as error:
        raise InputError(f"{path} is not a table: {error}.") from error
    if not lines:
        raise InputError(f"{path} is empty: it needs a line with the columns' names.")
    header, rows = lines[0][1], lines[1:]
    if not rows and not may_be_empty:
        raise InputError(f"{path} has no row after its header.")
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise InputError(f"{path} has two columns '{repeated[0]}'.")
    for line, cells in rows:
        if len(cells) != len(header):
            raise InputError(
                f"{path}, line {line} has {len(cells)} cells, but the header has "
                f"{len(header)}."
            )
    return header, rows


def _need(path: pathlib.Path, header: list[str], names: list[str], flag: str) -> None:
    missing = [name for name in names if name not in header]
    if missing:
        shown = ", ".join(header[:8]) + (", ..." if len(header) > 8 else "")
        raise InputError(
            f"{path} has no column '{missing[0]}' (it has {shown}): name the right one "
            f"with {flag}."
        )


def _check_named(path: pathlib.Path, header: list[str], chosen: list[int]) -> None:
    """Refuses the index that pandas writes into tables: it is not a feature."""
    for at in chosen:
        if not header[at].strip() or UNNAMED.fullmatch(header[at]):
            raise InputError(
                f"{path} has no name for column {at + 1}, as pandas writes its index: "
                "write the table with index=False, or name the column."
            )


def _check_ids(path: pathlib.Path, ids: list[str], lines: list[int]) -> None:
    seen = set()
    for name, line in zip(ids, lines, strict=True):
        if name in seen:
            raise InputError(f"{path}, line {line}: node '{name}' is there twice.")
        seen.add(name)


def _numbers(path, header, rows, chosen) -> np.ndarray | scipy.sparse.csr_array:
    cells = [[cells[at] for at in chosen] for _, cells in rows]
    try:
        dense = np.array(cells, dtype=np.float32)
    except ValueError:
        dense = None
    if dense is None or not np.isfinite(dense).all():
        raise _bad_number(path, header, rows, chosen)
    if np.count_nonzero(dense) < DENSE_FROM * dense.size:
        return scipy.sparse.csr_array(dense)
    return dense


def _bad_number(path, header, rows, chosen) -> InputError:
    for line, cells in rows:
        for at in chosen:
            try:
                fine = bool(np.isfinite(np.float32(cells[at])))
            except ValueError:
                fine = False
            if not fine:
                return InputError(
                    f"{path}, line {line}: column '{header[at]}' holds '{cells[at]}', "
                    "which is not a finite number: correct it, or leave the column out "
                    f"with --ignore={header[at]}."
                )
    return InputError(f"{path} holds features that are not finite numbers.")
