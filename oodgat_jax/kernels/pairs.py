"""What GATv2 computes per edge, head and width, and sums at once over the width.

See models/gatv2_attention.py and models/edge_blocks.py for the definitions. All values
are float32; `pattern` is a `graphs.sparse.Pattern` of the edges, [N, K], and h has a
vector per head for each of the K senders, among which the N receivers come first.
"""

from typing import Any

import numpy as np

from oodgat_jax.kernels import calling
from oodgat_jax.types import Array


def logits(pattern: Any, slope: float, query: Array, h: Array) -> Array:
    """Returns query . leaky_relu(h_i + h_j): [H, D], [K, H, D] -> [E, H]."""
    args = (pattern.row_ptr, pattern.columns, query, h)
    return _call("oodgat_pair_logits", _per_edge(pattern, h), *args, slope=slope)


def dots(pattern: Any, g: Array, h: Array) -> Array:
    """Returns g_i . h_j: [N, H, D], [K, H, D] -> [E, H]."""
    args = (pattern.row_ptr, pattern.columns, g, h)
    return _call("oodgat_pair_dots", _per_edge(pattern, h), *args)


def slopes(pattern: Any, slope: float, values: Array, h: Array) -> Array:
    """Sums values_ij leaky_relu'(h_i + h_j) at both ends: [E, H] -> [K, H, D]."""
    by_row = (pattern.row_ptr, pattern.columns)
    by_column = (pattern.column_ptr, pattern.rows_by_column, pattern.by_column)
    args = (*by_row, *by_column, values, h)
    return _call("oodgat_pair_slopes", h.shape, *args, slope=slope)


def _call(
    symbol: str, shape: calling.Shape, *args: Array, **attributes: float
) -> Array:
    numbers = {name: np.float32(value) for name, value in attributes.items()}
    return calling.call(symbol, (shape,), *args, **numbers)[0]


def _per_edge(pattern: Any, h: Array) -> calling.Shape:
    return pattern.columns.shape[0], h.shape[1]
