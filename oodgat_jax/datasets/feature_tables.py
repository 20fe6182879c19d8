"""A table of features as people have it: numbers, some missing, and columns of text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from oodgat_jax.datasets import arrays
from oodgat_jax.types import InputError


class Category(NamedTuple):
    """A column of text: which of its values each row has."""

    codes: np.ndarray  # [N] int32, -1 where it is missing
    values: list[str]


class FeatureTable(NamedTuple):
    """Features before they are encoded."""

    numbers: np.ndarray | scipy.sparse.csr_array  # [N, K] float32, NaN where missing
    names: list[str] | None  # [K]
    texts: Mapping[str, Category]

    @property
    def rows(self) -> int:
        """Returns N."""
        return int(self.numbers.shape[0])


def of(
    given: Any, categorical: Sequence[str] = (), names: Sequence[str] | None = None
) -> FeatureTable:
    """Returns features of any kind as a table.

    Args:
      given: a FeatureTable; [N, F] dense or scipy sparse; or a table like pandas'.
      categorical: columns of text, which only a table with names can have.
      names: of the features; by default those of the table's columns.
    """
    if isinstance(given, FeatureTable):
        return given
    columns = arrays.column_names(given) if names is None else None
    if columns is None:
        if categorical:
            raise InputError(
                f"The categorical column '{categorical[0]}' needs features with names: "
                "give a table such as pandas'."
            )
        known = None if names is None else list(names)
        return FeatureTable(arrays.as_features(given, may_lack=True), known, {})
    unknown = [name for name in categorical if name not in columns]
    if unknown:
        raise InputError(f"There is no column '{unknown[0]}' to encode.")
    return _from_columns(given, columns, categorical)


def _from_columns(
    given: Any, columns: list[str], categorical: Sequence[str]
) -> FeatureTable:
    if not categorical:
        array = np.asarray(given)
        if array.dtype.kind in "fiub":  # all columns are numbers
            return FeatureTable(arrays.as_features(array, may_lack=True), columns, {})
    names = [name for name in columns if name not in categorical]
    texts = {name: category(_values(given[name])) for name in categorical}
    stacked = np.zeros((len(_values(given[columns[0]])), 0), np.float32)
    if names:
        stacked = np.column_stack([_numbers(given[name], name) for name in names])
    return FeatureTable(stacked, names, texts)


def complete(given: Any) -> np.ndarray | scipy.sparse.csr_array:
    """Returns features of any kind as numbers [N, F], of which none may be missing."""
    table = of(given)
    check_complete(table)
    return table.numbers


def check_complete(table: FeatureTable) -> None:
    """Raises InputError if a number is missing, and says where."""
    matrix = table.numbers
    values = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if not np.isnan(values).any():
        return
    row, column, _ = arrays.first(matrix, np.isnan)
    name = repr(table.names[column]) if table.names else column
    raise InputError(
        f"Row {row}, column {name} of the features is missing (NaN): fill it, or give "
        "the classifier missing='mean' or 'zero'."
    )


def category(values: Iterable[Any]) -> Category:
    """Returns a column of text, its values sorted; missing ones have no value."""
    found = [None if is_absent(value) else str(value) for value in values]
    distinct = sorted({value for value in found if value is not None})
    number = {value: at for at, value in enumerate(distinct)}
    codes = [-1 if value is None else number[value] for value in found]
    return Category(np.array(codes, np.int32), distinct)


def is_absent(value: Any) -> bool:
    """Returns whether a value of a table stands for none."""
    if value is None or type(value).__name__ in arrays.ABSENT:
        return True
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, float | np.floating) and bool(value != value)


def _values(column: Any) -> list:
    found = arrays.entries(column)
    return list(column) if found is None else found


def _numbers(column: Any, name: str) -> np.ndarray:
    """Returns a column of numbers [N] float32, NaN where one is missing."""
    array = np.asarray(column)
    if array.dtype.kind not in "fiub":
        values = [_number(v, name, row) for row, v in enumerate(_values(column))]
        array = np.array(values, np.float64)
    with np.errstate(over="ignore"):
        found = array.astype(np.float32)
    if np.isinf(found).any():
        row = int(np.isinf(found).argmax())
        raise InputError(
            f"Row {row}, column '{name}' holds {array[row]}: features must be finite "
            "and below 3.4e38 in size."
        )
    return found


def _number(value: Any, name: str, row: int) -> float:
    if is_absent(value):
        return float("nan")
    if isinstance(value, int | float | np.number):
        return float(value)
    raise InputError(
        f"Row {row}, column '{name}' holds {value!r:.50}, which is not a number: drop "
        "the column, or name it in `categorical`."
    )
