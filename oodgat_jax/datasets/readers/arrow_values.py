"""Columns of Arrow -> numbers, text, ids, labels; the rows of mistakes count from 1.

Only whoever has the extra `tables` can import this module.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from oodgat_jax.datasets.feature_tables import Category
from oodgat_jax.datasets.readers import table_columns
from oodgat_jax.types import InputError


def numbers(
    path: Path, name: str, column: Any, first: int, may_lack: bool
) -> np.ndarray:
    """Returns a column of numbers [N] float32; NaN where one may be missing.

    Args:
      path: of the table.
      name: of the column.
      column: an Arrow array.
      first: rows before it.
      may_lack: whether values may be missing.
    """
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif not _is_number(kind):
        raise _no_number(path, name, column, first)
    exact = column.cast(pa.float64(), safe=False)
    with np.errstate(over="ignore"):
        found = exact.to_numpy(zero_copy_only=False).astype(np.float32)
    wrong = np.isinf(found) if may_lack else ~np.isfinite(found)
    if wrong.any():
        row = int(wrong.argmax())
        value = column[row].as_py()
        cell = "" if value is None else str(value)
        raise table_columns.wrong_cell(path, f"row {first + row + 1}", name, cell)
    return found


def as_text(path: Path, name: str, column: Any) -> Any:
    """Returns a column of names, text or whole numbers, as an Arrow array of text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    whole = pa.types.is_integer(kind) or pa.types.is_null(kind)
    if not (whole or pa.types.is_boolean(kind) or _is_text(kind)):
        raise InputError(
            f"{path}: column '{name}' is of type {kind}, where text or whole numbers "
            "are needed."
        )
    return column.cast(pa.string())


def ids(path: Path, name: str, column: Any, first: int) -> list[str]:
    """Returns the names of nodes; none may be missing."""
    found = as_text(path, name, column).to_pylist()
    if column.null_count:
        row = first + found.index(None) + 1
        raise InputError(f"{path}, row {row}: column '{name}' holds no id.")
    return found


def labels(path: Path, name: str, column: Any) -> list[str]:
    """Returns labels as text, "" where there is none; 1.0 is the class 1."""
    if not pa.types.is_floating(column.type):
        found = as_text(path, name, column).to_pylist()
        return ["" if value is None else value.strip() for value in found]
    return [_label(value) for value in column.to_pylist()]


def category(
    path: Path, name: str, column: Any, first: int, may_lack: bool
) -> Category:
    """Returns a categorical column; rows without a value only if they may lack one."""
    text = compute.utf8_trim_whitespace(_any_text(path, name, column))
    gone = pa.scalar(None, text.type)
    encoded = compute.if_else(compute.equal(text, ""), gone, text).dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    codes = codes.astype(np.int32)
    if (codes < 0).any() and not may_lack:
        row = first + int((codes < 0).argmax()) + 1
        raise table_columns.empty_cell(path, f"row {row}", name)
    return Category(codes, values)


def _any_text(path: Path, name: str, column: Any) -> Any:
    """Returns a column of text, or of any numbers, as text."""
    if pa.types.is_floating(column.type):
        return column.cast(pa.string())
    return as_text(path, name, column)


def _label(value: float | None) -> str:
    if value is None or value != value:
        return ""
    return str(int(value)) if float(value).is_integer() else str(value)


def _no_number(path: Path, name: str, column: Any, first: int) -> InputError:
    """Returns the error for a column of another type, with a value where it is text."""
    kind = column.type
    text = _is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)
    present = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    if text and len(present):
        row = int(present[0])
        cell = str(column[row].as_py())
        return table_columns.text_column(path, f"row {first + row + 1}", name, cell)
    return InputError(
        f"{path}: column '{name}' is of type {kind}, where numbers are needed: leave "
        f"it out with --ignore={name}."
    )


def _is_number(kind: Any) -> bool:
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return pa.types.is_null(kind) or any(check(kind) for check in checks)


def _is_text(kind: Any) -> bool:
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in checks)
