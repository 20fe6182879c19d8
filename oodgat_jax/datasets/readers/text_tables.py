"""Reads CSV and TSV line by line, and names the line and column of every mistake.

`arrow_tables` is several times faster; wherever it is not sure of a file, this reader
has the last word, so that the answer never depends on which of the two is there.
"""

import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from oodgat_jax.datasets.feature_tables import category
from oodgat_jax.datasets.readers import table_columns, unpacking
from oodgat_jax.datasets.readers.table_columns import Columns, Format, Nodes
from oodgat_jax.types import InputError

Row = tuple[int, list[str]]  # the line that it ends on, and its cells
ROWS = 4096  # turned into numbers at a time


def delimiter(path: Path, form: Format) -> str:
    """Returns the sign between cells, checked."""
    found = form.delimiter or ("\t" if unpacking.inner(path) == ".tsv" else ",")
    if len(found) != 1 or found in '\r\n"':
        raise InputError(f"--delimiter must be one character, not {found!r}.")
    return found


def read_header(path: Path, form: Format) -> list[str]:
    """Returns the names of the columns."""
    return _table(path, form)[0]


def read_nodes(
    path: Path, columns: Columns, form: Format, *, bare: bool = False
) -> Nodes:
    """Reads a table of nodes; see `tables.read_nodes`."""
    header, rows = _table(path, form)
    plan = table_columns.plan(path, header, columns, bare=bare)
    ids: list[str] = []
    lines: list[int] = []
    labels: list[str] = []
    texts: dict[str, list[str]] = {header[at]: [] for at in plan.texts}
    blocks = []
    for block in iter(lambda: list(itertools.islice(rows, ROWS)), []):
        ids += [cells[plan.id] for _, cells in block]
        lines += [line for line, _ in block]
        if plan.label is not None:
            labels += [cells[plan.label].strip() for _, cells in block]
        for at in plan.texts:
            texts[header[at]] += _texts(path, header, block, at, columns.may_lack)
        blocks.append(_numbers(path, header, block, plan.numbers, columns.may_lack))
    if not ids:
        raise InputError(f"{path} has no row after its header.")
    table_columns.check_ids(path, ids, (f"line {line}" for line in lines))
    return Nodes(
        ids,
        table_columns.lighter(np.concatenate(blocks)),
        [header[at] for at in plan.numbers],
        labels if plan.label is not None else None,
        {name: category(values) for name, values in texts.items()},
    )


def read_edges(
    path: Path, ids: Sequence[str], columns: Columns, form: Format
) -> np.ndarray:
    """Reads a table of edges as row numbers of the nodes, [E, 2]."""
    header, rows = _table(path, form)
    ends = table_columns.ends(path, header, columns)
    number = {name: row for row, name in enumerate(ids)}
    blocks = [np.zeros((0, 2), np.int64)]
    for block in iter(lambda: list(itertools.islice(rows, ROWS)), []):
        pairs = [[number.get(cells[at], -1) for at in ends] for _, cells in block]
        blocks.append(np.array(pairs, np.int64))
        if blocks[-1].min() < 0:
            at, side = np.argwhere(blocks[-1] < 0)[0]
            line, cells = block[at]
            name = cells[ends[side]]
            raise table_columns.unknown_node(path, f"line {line}", name)
    return np.concatenate(blocks)


def _table(path: Path, form: Format) -> tuple[list[str], Iterator[Row]]:
    """Returns the header, and the rows after it as they are read."""
    found = _rows(path, form)
    first = next(found, None)
    if first is None:
        raise InputError(f"{path} is empty: it needs a line with the columns' names.")
    header = first[1]
    table_columns.check_header(path, header)
    return header, _checked(path, len(header), found)


def _checked(path: Path, width: int, rows: Iterator[Row]) -> Iterator[Row]:
    for line, cells in rows:
        if len(cells) != width:
            raise InputError(
                f"{path}, line {line} has {len(cells)} cells, but the header has "
                f"{width}."
            )
        yield line, cells


def _rows(path: Path, form: Format) -> Iterator[Row]:
    """Yields every row that is not empty, the header included."""
    sign = delimiter(path, form)
    encoding = "utf-8-sig" if form.encoding == "utf-8" else form.encoding
    try:
        with unpacking.opened(path) as file:
            text = io.TextIOWrapper(file, encoding=encoding, newline="")
            reader = csv.reader(text, delimiter=sign, strict=True)
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
    except UnicodeError as error:
        raise InputError(
            f"{path} is not written in {form.encoding}: save it as UTF-8, or name its "
            "encoding with --encoding, for instance latin-1."
        ) from error
    except LookupError as error:
        raise InputError(f"There is no --encoding '{form.encoding}'.") from error
    except csv.Error as error:
        raise InputError(f"{path} is not a table: {error}.") from error


def _texts(
    path: Path, header: list[str], block: list[Row], at: int, may_lack: bool
) -> list[str]:
    """Returns the cells of a categorical column; empty ones only if they may be."""
    found = [cells[at].strip() for _, cells in block]
    if "" in found and not may_lack:
        line = block[found.index("")][0]
        raise table_columns.empty_cell(path, f"line {line}", header[at])
    return found


def _numbers(
    path: Path, header: list[str], block: list[Row], chosen: list[int], may_lack: bool
) -> np.ndarray:
    """Returns the features of some rows as float32; NaN where one may be missing."""
    cells = [[cells[at] for at in chosen] for _, cells in block]
    try:
        if any("_" in "".join(row) for row in cells):  # Python's 1_000 is no number
            raise ValueError
        found = np.array(cells, np.float32).reshape(len(block), len(chosen))
        right = not np.isinf(found).any() if may_lack else np.isfinite(found).all()
    except ValueError:
        right = False
    if right:
        return found
    values = [
        [_number(path, line, header[at], row[at], may_lack) for at in chosen]
        for line, row in block
    ]
    return np.array(values, np.float32).reshape(len(block), len(chosen))


def _number(path: Path, line: int, name: str, cell: str, may_lack: bool) -> float:
    if may_lack and cell.strip().lower() in table_columns.MISSING:
        return float("nan")
    try:
        with np.errstate(over="ignore"):
            found = np.float32(cell)
        if np.isfinite(found) and "_" not in cell:
            return float(found)
    except ValueError:
        pass
    raise table_columns.wrong_cell(path, f"line {line}", name, cell)
