"""Graphs of one's own as files: CSV tables of nodes and edges, or one npz.

nodes.csv has a row per node: an id, a label (empty where there is none) and one number
per feature. edges.csv has a row per edge: the ids of its two nodes.

  id,label,height,weight          source,target
  a,cat,0.3,4.1                   a,b
  b,,0.7,30                       b,c

An npz has `features` [N, F], or `data`, `indices`, `indptr` and `shape` as scipy's
`save_npz` writes them for a CSR matrix; `edges` [E, 2] of row numbers; and, if they are
known, `labels` [N] and `ids` [N].
"""

import csv
import io
import pathlib
import zipfile
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from oodgat_jax.graphs import DENSE_FROM
from oodgat_jax.types import InputError

Rows = Iterator[tuple[int, list[str]]]


class Nodes(NamedTuple):
    """A table of nodes."""

    ids: list[str]
    features: np.ndarray | scipy.sparse.csr_array  # [N, F] float32
    names: list[str]  # [F]
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
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is no npz of plain arrays: {error}.") from error
    if "edges" not in arrays:
        raise InputError(f"{path} has no array 'edges', pairs of row numbers [E, 2].")
    if "features" in arrays:
        features = arrays["features"]
    elif {"data", "indices", "indptr", "shape"} <= set(arrays):
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        features = scipy.sparse.csr_array(parts, shape=tuple(arrays["shape"]))
    else:
        raise InputError(f"{path} has no array 'features' [N, F].")
    count = features.shape[0] if features.ndim else 0
    ids = [str(name) for name in arrays.get("ids", np.arange(count))]
    if len(ids) != count:
        raise InputError(f"{path} has {len(ids)} ids for {count} rows of features.")
    labels = arrays["labels"].tolist() if "labels" in arrays else None
    names = [str(number) for number in range(features.shape[1])]
    return Nodes(ids, features, names, labels), arrays["edges"]


def table_text(header: Sequence[str], rows: Sequence[Sequence]) -> str:
    """A CSV table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _read(
    path: pathlib.Path, form: Format, may_be_empty: bool = False
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and every row with its line number."""
    delimiter = form.delimiter or ("\t" if path.suffix == ".tsv" else ",")
    encoding = "utf-8-sig" if form.encoding == "utf-8" else form.encoding
    try:
        with open(path, newline="", encoding=encoding) as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            lines = [(reader.line_num, cells) for cells in reader if cells]
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not written in {form.encoding}: save it as UTF-8, or name its "
            "encoding with --encoding, for instance latin-1."
        ) from error
    except LookupError as error:
        raise InputError(f"There is no --encoding '{form.encoding}'.") from error
    except csv.Error as error:
        raise InputError(f"{path} is no table: {error}.") from error
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
                    "which is no finite number: mend it, or leave the column out with "
                    f"--ignore={header[at]}."
                )
    return InputError(f"{path} holds features that are no finite numbers.")
