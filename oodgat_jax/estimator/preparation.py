"""Missing values and columns of text -> numbers, alike at every later graph.

A missing number becomes the column's mean in the fit, or zero; a column of text becomes
a column of zeros and ones for each of its values in the fit. Both belong to the model.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from oodgat_jax.datasets import feature_tables
from oodgat_jax.datasets.feature_tables import Category, FeatureTable
from oodgat_jax.estimator import feature_names
from oodgat_jax.training import capacity
from oodgat_jax.types import InputError

MISSING: Mapping[str, str] = {
    "refuse": "a missing value is an error",
    "mean": "the mean of its column in the fit takes its place",
    "zero": "zero takes its place",
}
MOST_VALUES = 1000  # distinct ones of a categorical column


class Preparation(NamedTuple):
    """What a fit has seen of its features."""

    categories: dict[str, list[str]]  # values of each categorical column
    means: np.ndarray | None  # [K] float64 of the columns of numbers, for "mean"


def check_arguments(missing: Any, categorical: Any) -> None:
    """Raises InputError unless they are a key of MISSING and names of columns."""
    if not isinstance(missing, str) or missing not in MISSING:
        raise InputError(f"missing must be {', '.join(MISSING)}, not {missing!r}.")
    is_list = isinstance(categorical, list | tuple)
    if not is_list or not all(isinstance(name, str) for name in categorical):
        raise InputError(
            f"categorical must be a list of columns' names, not {categorical!r:.50}."
        )
    if len(set(categorical)) < len(categorical):
        raise InputError("categorical names a column twice.")


def as_table(
    features: Any, names: Sequence[str] | None, categorical: Sequence[str]
) -> FeatureTable:
    """Returns features of any kind as a table, their names checked."""
    if isinstance(features, FeatureTable):
        return features
    known = feature_names.of(features, names)
    table = feature_tables.of(features, categorical, names)
    return table if categorical else table._replace(names=known)


def fit(table: FeatureTable, missing: str) -> Preparation:
    """Returns what must be kept to treat later features alike."""
    for name, column in table.texts.items():
        if len(column.values) > MOST_VALUES:
            raise InputError(
                f"The column '{name}' has {len(column.values)} different values, more "
                f"than {MOST_VALUES}, as ids or free text have: leave it out."
            )
        if not column.values:
            raise InputError(f"The column '{name}' has no value at all: leave it out.")
    categories = {name: list(column.values) for name, column in table.texts.items()}
    return Preparation(categories, _means(table) if missing == "mean" else None)


def apply(
    table: FeatureTable, prepared: Preparation, missing: str
) -> tuple[np.ndarray | scipy.sparse.csr_array, list[str] | None]:
    """Returns numbers [N, F] without a gap, and the names of the features."""
    if missing == "refuse":
        feature_tables.check_complete(table)
    numbers = _filled(table.numbers, prepared.means)
    if not prepared.categories:
        return numbers, table.names
    width = sum(map(len, prepared.categories.values()))
    capacity.check_features((table.rows, numbers.shape[1] + width), is_dense=True)
    columns = [
        _one_hot(name, table.texts[name], values, table.rows)
        for name, values in prepared.categories.items()
    ]
    names = [*(table.names or ()), *encoded_names(prepared)]
    if scipy.sparse.issparse(numbers):
        blocks = [numbers, *map(scipy.sparse.csr_array, columns)]
        return scipy.sparse.csr_array(scipy.sparse.hstack(blocks, "csr")), names
    return np.concatenate([numbers, *columns], axis=1), names


def encoded_names(prepared: Preparation) -> list[str]:
    """Returns the names of the columns of zeros and ones, as in color=red."""
    return [
        f"{name}={value}"
        for name in prepared.categories
        for value in prepared.categories[name]
    ]


def match(
    table: FeatureTable, names: list[str] | None, prepared: Preparation
) -> FeatureTable:
    """Returns the table with the fit's columns in the fit's order, by their names.

    Args:
      table: of another graph.
      names: of the fit's features, those of the encoded columns last.
      prepared: of the fit.
    """
    lost = [name for name in prepared.categories if name not in table.texts]
    if lost:
        raise InputError(
            f"The model needs the column '{lost[0]}', which is categorical: give a "
            "table that has it."
        )
    if table.names is None or names is None:
        return table
    count = len(names) - len(encoded_names(prepared))
    found = feature_names.match(names[:count], table.names)
    if found.extra:
        warnings.warn(
            f"The features {feature_names.shown(found.extra)} are left out: the "
            "model was fitted without them.",
            stacklevel=5,
        )
    return table._replace(numbers=table.numbers[:, found.columns], names=names[:count])


def check_width(found: int, fitted: int) -> None:
    """Raises InputError unless there are as many features as in the fit."""
    if found != fitted:
        raise InputError(
            f"The model was fitted to {fitted} features, but these have {found}: give "
            "the same columns in the same order."
        )


def _means(table: FeatureTable) -> np.ndarray:
    """Returns the mean of every column of numbers, over the rows that have it."""
    matrix = table.numbers
    width = matrix.shape[1]
    if isinstance(matrix, np.ndarray):
        gone = np.isnan(matrix)
        lacking = gone.sum(axis=0)
        sums = np.where(gone, 0.0, matrix).sum(axis=0, dtype=np.float64)
    else:
        gone = np.isnan(matrix.data)
        known = np.where(gone, 0.0, matrix.data)
        sums = np.bincount(matrix.indices, known, minlength=width)
        lacking = np.bincount(matrix.indices[gone], minlength=width)
    present = table.rows - lacking
    if not present.all():
        column = int((present == 0).argmax())
        name = repr(table.names[column]) if table.names else column
        raise InputError(f"Column {name} has no value at all: leave it out.")
    return sums / present


def _filled(
    matrix: np.ndarray | scipy.sparse.csr_array, means: np.ndarray | None
) -> np.ndarray | scipy.sparse.csr_array:
    """Returns numbers with means, or zeros, in place of NaN."""
    if isinstance(matrix, np.ndarray):
        gone = np.isnan(matrix)
        if not gone.any():
            return matrix
        fill = 0.0 if means is None else means.astype(np.float32)
        return np.where(gone, fill, matrix)
    gone = np.isnan(matrix.data)
    filled = matrix.copy()
    filled.data[gone] = 0.0 if means is None else means[matrix.indices[gone]]
    return filled


def _one_hot(name: str, column: Category, values: list[str], rows: int) -> np.ndarray:
    """Returns a column of text as zeros and ones [N, V]; zeros for a new value."""
    place = {value: at for at, value in enumerate(values)}
    table = np.array([*(place.get(value, -1) for value in column.values), -1])
    codes = table[column.codes]
    new = [value for value in column.values if value not in place]
    if new:
        count = int(((codes < 0) & (column.codes >= 0)).sum())
        warnings.warn(
            f"Column '{name}' holds {feature_names.shown(new)} in {count} rows, which "
            "the fit has not seen: encoded as all zeros.",
            stacklevel=6,
        )
    found = np.zeros((rows, len(values)), np.float32)
    present = np.flatnonzero(codes >= 0)
    found[present, codes[present]] = 1.0
    return found
