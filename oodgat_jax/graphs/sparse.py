"""Sparse matrices of a fixed pattern: products in XLA's compiled CSR kernel.

A pattern is made once, on the host, and passed to compiled functions as an argument;
the values of its stored entries change from step to step.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax.experimental import sparse

from oodgat_jax.kernels.features import Tiles, tiles
from oodgat_jax.types import AnyArray, Array


class Pattern(NamedTuple):
    """Where the Z stored entries of an [R, K] matrix are, by row and by column.

    Entries are in row order. `by_column` lists them in column order: the transposed
    matrix has the values `values[by_column]`. A symmetric pattern keeps no second copy
    of its indices: its columns in row order are its rows in column order.
    """

    rows: AnyArray  # [Z] int32
    columns: AnyArray  # [Z] int32
    row_ptr: AnyArray  # [R + 1] int32
    column_ptr: AnyArray  # [K + 1] int32
    by_column: AnyArray  # [Z] int32
    second: (
        tuple[AnyArray, AnyArray] | None
    )  # rows, columns in column order, if they differ

    @property
    def shape(self) -> tuple[int, int]:
        """Computes (R, K)."""
        return self.row_ptr.shape[0] - 1, self.column_ptr.shape[0] - 1

    @property
    def rows_by_column(self) -> AnyArray:
        """Returns rows of the entries in column order: [Z]."""
        return self.columns if self.second is None else self.second[0]

    @property
    def columns_by_column(self) -> AnyArray:
        """Returns columns of the entries in column order: [Z]."""
        return self.rows if self.second is None else self.second[1]


class SparseFeatures(NamedTuple):
    """A feature matrix [N, F] that keeps its stored entries only."""

    values: AnyArray  # [Z]
    pattern: Pattern
    tiles: Tiles | None = None  # for the native kernels, if they are to be used

    @property
    def shape(self) -> tuple[int, int]:
        """Computes (N, F)."""
        return self.pattern.shape


def pattern(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Pattern:
    """Indexes entries that are sorted by (row, column), on the host."""
    rows, columns = (np.asarray(ids, np.int32) for ids in (rows, columns))
    by_column = np.argsort(columns, kind="stable").astype(np.int32)
    second = rows[by_column], columns[by_column]
    symmetric = np.array_equal(second[0], columns) and np.array_equal(second[1], rows)
    return Pattern(
        rows=rows,
        columns=columns,
        row_ptr=_pointers(rows, shape[0]),
        column_ptr=_pointers(columns, shape[1]),
        by_column=by_column,
        second=None if symmetric else second,
    )


def features(matrix: scipy.sparse.csr_array) -> SparseFeatures:
    """Indexes the matrix for products with it and with its transpose."""
    matrix = scipy.sparse.csr_array(matrix, dtype=np.float32)
    matrix.sum_duplicates()
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return SparseFeatures(matrix.data, pattern(rows, matrix.indices, matrix.shape))


def with_tiles(
    features: SparseFeatures, numbers: np.ndarray | None = None
) -> SparseFeatures:
    """Indexes host features for the native kernels, if they gain from it.

    Args:
      features: as numpy arrays.
      numbers: [N] of the rows, if the features stand for a dense array: then dropout
        bits are those of the dense array.
    """
    entries = features.pattern
    row_ptr, rows = np.asarray(entries.row_ptr), np.asarray(entries.rows)
    columns = np.asarray(entries.columns)
    found = tiles(row_ptr, rows, columns, features.shape, numbers)
    return features._replace(tiles=found)


def stands_for_dense(features: SparseFeatures) -> bool:
    """Returns whether unstored zeros count as entries, as in a dense array."""
    return features.tiles is not None and features.tiles.numbers is not None


def _pointers(ids: np.ndarray, size: int) -> np.ndarray:
    counts = np.bincount(ids, minlength=size)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


@jax.custom_vjp
def matmul(values: AnyArray, pattern: Pattern, x: Array) -> Array:
    """Multiplies the sparse matrix [R, K] with a dense x [K, D] -> [R, D]."""
    return csr_product(values, pattern.columns, pattern.row_ptr, x)


def matmul_transposed(values: AnyArray, pattern: Pattern, x: Array) -> Array:
    """Multiplies the transposed matrix [K, R] with a dense x [R, D] -> [K, D]."""
    return csr_product(
        values[pattern.by_column], pattern.rows_by_column, pattern.column_ptr, x
    )


def _matmul_forward(values: Array, pattern: Pattern, x: Array):
    return matmul(values, pattern, x), (values, pattern, x)


def _matmul_backward(residuals, gradient: Array):
    # Whichever of the two is not asked for is removed by the compiler; the gradient
    # of the values is the dear one, [Z, D].
    values, pattern, x = residuals
    d_values = jnp.sum(gradient[pattern.rows] * x[pattern.columns], axis=-1)
    return d_values, None, matmul_transposed(values, pattern, gradient)


matmul.defvjp(_matmul_forward, _matmul_backward)


@jax.custom_batching.sequential_vmap
def csr_product(
    values: AnyArray, columns: AnyArray, row_ptr: AnyArray, x: Array
) -> Array:
    """Multiplies a matrix in CSR form [R, K] with a dense x [K, D] -> [R, D]."""
    # The kernel is fast when the number of columns of x is a multiple of eight only.
    size, width = x.shape
    x = jnp.pad(x, ((0, 0), (0, -width % 8)))
    parts = (jnp.asarray(values), jnp.asarray(columns), jnp.asarray(row_ptr))
    matrix = sparse.BCSR(parts, shape=(row_ptr.shape[0] - 1, size))
    return (matrix @ x)[:, :width]
