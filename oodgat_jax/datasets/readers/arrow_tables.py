"""Reads tables with pyarrow: large CSV files fast, Parquet, Arrow and Feather.

Of a CSV, None is returned where anything is odd: `text_tables` then reads it, or names
the line and column of the mistake. The rows of the other formats count from 1. Only
whoever has the extra `tables` can import this module.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv, ipc, parquet

from oodgat_jax.datasets import limits
from oodgat_jax.datasets.feature_tables import Category
from oodgat_jax.datasets.readers import (
    arrow_values,
    table_columns,
    text_tables,
    unpacking,
)
from oodgat_jax.datasets.readers.table_columns import Columns, Format, Nodes, Plan
from oodgat_jax.types import InputError

BLOCK = 8 << 20  # bytes of a CSV that are parsed at a time
ROWS = 1 << 16  # of a Parquet file at a time
NULLS = frozenset(("", "nan", "NaN", "NAN", "na", "NA", "n/a", "N/A", "null", "NULL",
                  "Null", "none", "None", "NONE", "<NA>", "<na>"))  # fmt: skip


def read_header(path: Path) -> list[str]:
    """Returns the names of the columns of a Parquet or Arrow file."""
    with _opened(path) as (header, _):
        return header


def read_nodes(path: Path, columns: Columns, *, bare: bool = False) -> Nodes:
    """Reads a table of nodes from Parquet or Arrow; see `tables.read_nodes`."""
    with _opened(path) as (header, batches):
        plan = table_columns.plan(path, header, columns, bare=bare)
        nodes = _gathered(path, header, plan, batches, columns.may_lack)
    if not nodes.ids:
        raise InputError(f"{path} has no rows.")
    rows = range(1, len(nodes.ids) + 1)
    table_columns.check_ids(path, nodes.ids, (f"row {row}" for row in rows))
    return nodes


def read_edges(path: Path, ids: Sequence[str], columns: Columns) -> np.ndarray:
    """Reads a table of edges from Parquet or Arrow as row numbers [E, 2]."""
    with _opened(path) as (header, batches):
        ends = table_columns.ends(path, header, columns)
        sides: tuple[list, list] = ([], [])
        for batch in batches:
            for side, at in zip(sides, ends, strict=True):
                side.append(arrow_values.as_text(path, header[at], batch.column(at)))
        pairs, odd = _numbered(sides, ids)
    if odd is not None:
        row, name = odd
        raise table_columns.unknown_node(path, f"row {row + 1}", name)
    return pairs


def read_nodes_csv(
    path: Path, columns: Columns, form: Format, *, bare: bool = False
) -> Nodes | None:
    """Reads a large CSV of nodes, or returns None where anything is odd."""
    header = text_tables.read_header(path, form)
    plan = table_columns.plan(path, header, columns, bare=bare)
    labels = [] if plan.label is None else [plan.label]
    types = {header[at]: pa.string() for at in (plan.id, *labels, *plan.texts)}
    types |= {header[at]: pa.float64() for at in plan.numbers}
    read = table_columns.plan(path, list(types), columns._replace(ignore=()), bare=bare)
    try:
        batches = _csv_batches(path, form, types, columns.may_lack)
        nodes = _gathered(path, list(types), read, batches, columns.may_lack)
    except (_OddTableError, InputError):  # the other reader says it with the line
        return None
    unique = len(set(nodes.ids)) == len(nodes.ids) > 0
    return nodes if unique else None


def read_edges_csv(
    path: Path, ids: Sequence[str], columns: Columns, form: Format
) -> np.ndarray | None:
    """Reads a large CSV of edges, or returns None where anything is odd."""
    header = text_tables.read_header(path, form)
    ends = table_columns.ends(path, header, columns)
    types = {header[at]: pa.string() for at in ends}
    sides: tuple[list, list] = ([], [])
    try:
        for batch in _csv_batches(path, form, types, False):
            for side, column in zip(sides, batch.columns, strict=True):
                side.append(column)
    except _OddTableError:
        return None
    pairs, odd = _numbered(sides, ids)
    return pairs if odd is None else None


class _OddTableError(Exception):
    """pyarrow cannot read a CSV, or reads it otherwise than the other reader."""


def _csv_batches(
    path: Path, form: Format, types: Mapping[str, Any], may_lack: bool
) -> Iterator[Any]:
    """Yields the columns of `types`, in their order."""
    options = {
        "read_options": csv.ReadOptions(block_size=BLOCK, encoding=form.encoding),
        "parse_options": csv.ParseOptions(
            delimiter=text_tables.delimiter(path, form), newlines_in_values=True
        ),
        "convert_options": csv.ConvertOptions(
            column_types=dict(types),
            include_columns=list(types),
            null_values=sorted(NULLS) if may_lack else [],
            strings_can_be_null=False,
        ),
    }
    try:
        with unpacking.opened(path) as file:
            source = file if unpacking.is_packed(path) else str(path)
            reader = csv.open_csv(source, **options)
            if reader.schema.names != list(types):
                raise _OddTableError
            yield from reader
    except (pa.ArrowException, ValueError, LookupError, OSError) as error:
        raise _OddTableError from error


def _gathered(
    path: Path, header: list[str], plan: Plan, batches: Iterator[Any], may_lack: bool
) -> Nodes:
    """Returns the nodes of all batches."""
    ids: list[str] = []
    labels: list[str] = []
    blocks = [np.zeros((0, len(plan.numbers)), np.float32)]
    texts: dict[str, list[Any]] = {header[at]: [] for at in plan.texts}
    for batch in batches:
        first = len(ids)
        ids += arrow_values.ids(path, header[plan.id], batch.column(plan.id), first)
        if plan.label is not None:
            labels += arrow_values.labels(
                path, header[plan.label], batch.column(plan.label)
            )
        for at in plan.texts:
            column, name = batch.column(at), header[at]
            texts[name].append(
                arrow_values.category(path, name, column, first, may_lack)
            )
        block = np.empty((batch.num_rows, len(plan.numbers)), np.float32)
        for place, at in enumerate(plan.numbers):
            column = batch.column(at)
            block[:, place] = arrow_values.numbers(
                path, header[at], column, first, may_lack
            )
        blocks.append(block)
    return Nodes(
        ids,
        table_columns.lighter(np.concatenate(blocks)),
        [header[at] for at in plan.numbers],
        labels if plan.label is not None else None,
        {name: _merged(parts) for name, parts in texts.items()},
    )


def _merged(parts: Sequence[Category]) -> Category:
    """Returns a column of text whose batches each have values of their own."""
    values = sorted(set().union(*(part.values for part in parts)))
    number = {value: at for at, value in enumerate(values)}
    codes = [np.zeros(0, np.int32)]
    for part in parts:
        table = np.array([*(number[value] for value in part.values), -1], np.int32)
        codes.append(table[part.codes])
    return Category(np.concatenate(codes), values)


def _numbered(
    sides: tuple[list, list], ids: Sequence[str]
) -> tuple[np.ndarray, tuple[int, str] | None]:
    """Returns edges as row numbers [E, 2], and the row and name of an unknown end."""
    known = pa.array(ids, pa.large_string())
    ends = [pa.chunked_array(side, pa.string()).cast(known.type) for side in sides]
    found = [compute.index_in(end, value_set=known) for end in ends]
    lost = [np.flatnonzero(column.is_null().to_numpy()) for column in found]
    if any(map(len, lost)):
        row, side = min((int(rows[0]), at) for at, rows in enumerate(lost) if len(rows))
        return np.zeros((0, 2), np.int64), (row, str(ends[side][row].as_py() or ""))
    return np.stack([column.to_numpy() for column in found], 1).astype(np.int64), None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[list[str], Iterator[Any]]]:
    """Opens a Parquet or Arrow file: its columns' names and its batches, checked."""
    try:
        with unpacking.opened(path) as file:
            packed = unpacking.is_packed(path)
            source = pa.BufferReader(file.read()) if packed else pa.OSFile(str(path))
            with source:
                form = (
                    _parquet if unpacking.inner(path) in unpacking.PARQUET else _arrow
                )
                header, batches = form(path, source)
                yield header, _validated(batches)
    except InputError:
        raise
    except Exception as error:  # Arrow has many kinds for damaged bytes
        first = str(error).strip().partition("\n")[0].rstrip(".")
        kind = unpacking.inner(path).removeprefix(".")
        raise InputError(f"{path} is not a {kind} table: {first}.") from error


def _validated(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        batch.validate(full=True)  # offsets within the buffers, text that is text
        yield batch


def _parquet(path: Path, source: Any) -> tuple[list[str], Iterator[Any]]:
    file = parquet.ParquetFile(source)
    facts = file.metadata
    groups = [facts.row_group(at) for at in range(facts.num_row_groups)]
    packed = sum(max(group.total_byte_size, 0) for group in groups)
    limits.check(path, max(packed, 4 * facts.num_rows * facts.num_columns))
    return list(file.schema_arrow.names), file.iter_batches(ROWS)


def _arrow(path: Path, source: Any) -> tuple[list[str], Iterator[Any]]:
    file = ipc.open_file(source)
    count = file.num_record_batches
    return list(file.schema.names), (file.get_batch(at) for at in range(count))
