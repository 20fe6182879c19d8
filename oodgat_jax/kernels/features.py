"""Products of dropped sparse features with dense matrices, over kept entries only.

The gradient of the dense factor is a kernel too; that of the feature values, which
only some detectors ask for, is pure JAX and not computed unless it is used.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from oodgat_jax import dropout
from oodgat_jax.kernels import calling
from oodgat_jax.types import AnyArray, Array

TILE_ROWS = 96  # at the least
TILE_ENTRIES = 16  # of a column in a tile, on average
MOST_ROWS = 1 << 16  # of a tile: rows are uint16
MOST_POINTERS = 4  # per entry; beyond it a matrix is too sparse for tiles


class Tiles(NamedTuple):
    """Entries of a sparse matrix [N, F] by (tile of rows, column), for X' G."""

    rows: AnyArray  # [T + 1] int32, first row of each tile
    first: AnyArray  # [T F + 1] int32, where the entries of a tile's column start
    row: AnyArray  # [Z] uint16, row in the tile
    place: AnyArray  # [Z] int32, in row order, among the entries of the tile
    numbers: (
        AnyArray | None
    )  # [N] uint32 of the rows, if dropout is that of a dense array


class Dropped(NamedTuple):
    """Features that are to be dropped when they are multiplied."""

    features: Any  # graphs.sparse.SparseFeatures
    key: Array | None  # None: nothing is dropped
    rate: Array | float
    entries: AnyArray | None  # [Z] uint32, numbers of entries; None: 0, 1, 2, ...

    @property
    def shape(self) -> tuple[int, int]:
        """Returns (N, F)."""
        return self.features.shape


def tiles(
    row_ptr: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    shape: tuple[int, int],
    numbers: np.ndarray | None = None,
) -> Tiles | None:
    """Sorts entries on the host; None if the matrix is too sparse to gain from it.

    The shapes of the result, and whether there is one, depend on shapes alone.

    Args:
      row_ptr: [N + 1] where a row's entries start.
      rows: [Z], rising.
      columns: [Z].
      shape: (N, F).
      numbers: [N] of the rows, if the matrix stands for a dense array whose dropout
        bits belong to (row, column).
    """
    entries = max(len(rows), 1)
    size = max(TILE_ROWS, TILE_ENTRIES * shape[0] * shape[1] // entries)
    size = min(size, MOST_ROWS, shape[0])
    starts = np.append(np.arange(0, shape[0], size), shape[0]).astype(np.int32)
    count = len(starts) - 1
    if count * shape[1] > MOST_POINTERS * entries + (1 << 20):
        return None
    tile = np.asarray(rows) // size
    group = tile.astype(np.int64) * shape[1] + columns
    order = np.argsort(group, kind="stable").astype(np.int32)
    counts = np.bincount(group, minlength=count * shape[1])
    return Tiles(
        rows=starts,
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        row=(rows - tile * size)[order].astype(np.uint16),
        place=order - row_ptr[starts[tile[order]]],
        numbers=None if numbers is None else np.asarray(numbers, np.uint32),
    )


def positions(features: Any, entries: AnyArray | None) -> Array:
    """Returns the dropout positions of stored entries, uint32 [Z].

    Args:
      features: `graphs.sparse.SparseFeatures`.
      entries: their numbers, if they are part of a larger matrix.
    """
    index = features.tiles
    if index is not None and index.numbers is not None:
        rows = jnp.asarray(index.numbers)[features.pattern.rows]
        width = np.uint32(features.shape[1])
        return rows * width + features.pattern.columns.astype(jnp.uint32)
    if entries is not None:
        return jnp.asarray(entries, jnp.uint32)
    return jax.lax.iota(jnp.uint32, features.values.shape[0])


def drop(x: Dropped) -> Any:
    """Returns the features with their dropped values, in pure JAX."""
    if x.key is None:
        return x.features
    kept = dropout.keep(x.key, positions(x.features, x.entries), x.rate)
    return x.features._replace(values=x.features.values * kept)


def product(x: Dropped, weights: Array) -> Array:
    """Returns x W, dropping entries of x if it says so: [N, F], [F, D] -> [N, D]."""
    words = calling.numbers(None)
    if x.key is not None:
        words = calling.words(x.key, x.rate, 0)
    numbers = calling.numbers(x.entries)
    return _product(x.features.values, weights, x, numbers, words)


@jax.custom_vjp
def _product(values, weights, x, numbers, words):
    out = (x.shape[0], weights.shape[1])
    args = (*_stored(values, x, numbers), words, weights)
    return calling.call("oodgat_feature_product", (out,), *args)[0]


def _forward(values, weights, x, numbers, words):
    args = (values, weights, x, numbers, words)
    return _product(*args), args


def _backward(residuals, gradient):
    values, weights, x, numbers, words = residuals
    index = x.features.tiles
    tiled = (index.rows, index.first, index.row, index.place)
    args = (*_stored(values, x, numbers), *tiled, words, gradient)
    symbol = "oodgat_feature_product_transposed"
    d_weights = calling.call(symbol, (weights.shape,), *args)[0]
    # XLA drops this one, of size [Z, D], unless it is used.
    pattern = x.features.pattern
    d_values = jnp.sum(gradient[pattern.rows] * weights[pattern.columns], axis=-1)
    if x.key is not None:
        places = positions(x.features, x.entries)
        d_values *= dropout.keep(x.key, places, x.rate)
    return d_values, d_weights, None, None, None


_product.defvjp(_forward, _backward)


def _stored(values, x, numbers) -> tuple[Array, ...]:
    pattern, index = x.features.pattern, x.features.tiles
    rows = calling.numbers(index.numbers)
    return pattern.row_ptr, pattern.columns, values, numbers, rows
