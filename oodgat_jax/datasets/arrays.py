"""What people have as features and edges -> checked arrays.

Objects of other libraries are recognized by what they have, so none is imported: a
PyTorch Geometric `Data` by `x`, `edge_index` and `y`; a DGL graph by `ndata` and
`edges()`; a networkx graph by `nodes` and `edges`; a table of pandas, polars or Arrow
by the names of its columns; tensors by `detach`.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from oodgat_jax.types import InputError

MOST_FEATURES = 2**31 - 1
# What other programs write for a missing value; nobody means a class by it.
ABSENT = ("NAType", "NaTType")  # what pandas has for a missing value, by its type
NO_NAMES = ("nan", "none", "null", "n/a", "<na>")


def as_array(given: Any) -> np.ndarray:
    """Returns an array or a tensor of any library as a numpy array."""
    if hasattr(given, "detach"):
        given = given.detach().cpu()
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InputError(
            "An array cannot be made of rows of different lengths: give each as many "
            "entries."
        ) from error


def as_mask(given: Any, num_nodes: int) -> np.ndarray:
    """Returns nodes, given by number or as a mask, as a mask [N]."""
    given = as_array(given)
    if given.dtype == bool and given.shape == (num_nodes,):
        return given
    whole = given.ndim == 1 and (given.dtype.kind in "iu" or not given.size)
    if not whole or (given.size and not 0 <= given.min() <= given.max() < num_nodes):
        raise InputError(
            f"exposure must be {num_nodes} booleans, or numbers of nodes from 0 to "
            f"{num_nodes - 1}."
        )
    mask = np.zeros(num_nodes, bool)
    mask[given.astype(int)] = True
    return mask


def column_names(given: Any) -> list[str] | None:
    """Returns the columns of a pandas, polars or Arrow table if they are strings."""
    columns = getattr(given, "column_names", None)  # of Arrow
    if columns is None:
        columns = getattr(given, "columns", None)
    if columns is None or callable(columns):
        return None
    found = list(columns)
    return found if found and all(isinstance(name, str) for name in found) else None


def entries(column: Any) -> list | None:
    """Returns a column of pandas, polars or Arrow, None where a value is missing.

    None for anything else.
    """
    for name in ("to_pylist", "to_list"):
        if hasattr(column, name):
            found = getattr(column, name)()
            return [None if type(v).__name__ in ABSENT else v for v in found]
    return None


def _check_not_masked(given: Any, what: str) -> None:
    if np.ma.is_masked(given):
        raise InputError(f"{what} must not be masked: fill or remove those entries.")


def as_features(
    given: Any, *, may_lack: bool = False
) -> np.ndarray | scipy.sparse.csr_array:
    """Returns dense or sparse features [N, F] as float32, checked.

    Args:
      given: an array or a matrix of any library.
      may_lack: whether NaN is allowed, for a missing value.
    """
    sparse = scipy.sparse.issparse(given)
    _check_not_masked(given, "Features")
    matrix = given if sparse else _numbers(given)
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"Features must be real numbers, not {matrix.dtype}.")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(
            "Features must be a table with a row per node and a column per feature, "
            f"not of shape {matrix.shape}."
        )
    if matrix.shape[1] > MOST_FEATURES:
        raise InputError(
            f"There are {matrix.shape[1]} features: give at most {MOST_FEATURES}."
        )
    with np.errstate(over="ignore"):  # what is too large becomes infinite
        matrix = _as_csr(matrix) if sparse else matrix.astype(np.float32)
    values = matrix.data if sparse else matrix
    if not (~np.isinf(values) if may_lack else np.isfinite(values)).all():
        raise not_finite(matrix)
    return matrix


def not_finite(matrix: np.ndarray | scipy.sparse.csr_array) -> InputError:
    """Returns the error for features [N, F] that are not all finite."""
    row, column, value = first(matrix, lambda values: ~np.isfinite(values))
    return InputError(
        "Features must be finite numbers below 3.4e38 in size, but row "
        f"{row}, column {column} is {value}: correct or fill it."
    )


def first(
    matrix: np.ndarray | scipy.sparse.csr_array,
    test: Callable[[np.ndarray], np.ndarray],
) -> tuple[int, int, float]:
    """Returns row, column and value of the first entry that passes a test."""
    if isinstance(matrix, np.ndarray):
        row, column = (int(part) for part in np.argwhere(test(matrix))[0])
        return row, column, float(matrix[row, column])
    stored = scipy.sparse.coo_array(matrix)
    at = int(np.flatnonzero(test(stored.data))[0])
    return int(stored.row[at]), int(stored.col[at]), float(stored.data[at])


def _as_csr(given: Any) -> scipy.sparse.csr_array:
    """Returns a sparse matrix as CSR in float32, its indices checked."""
    try:
        matrix = scipy.sparse.csr_array(given, dtype=np.float32)
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"The sparse matrix is damaged: {error}.") from error
    return matrix


def as_pairs(given: Any, num_nodes: int) -> np.ndarray:
    """Returns edges as pairs of row numbers [E, 2] int64, from whatever holds them.

    Args:
      given: pairs of row numbers as an array [E, 2] or [2, E], or a table with the
        columns source and target; a scipy sparse matrix [N, N] with an entry at (i, j)
        for an edge i -> j; or a networkx graph. Its nodes are row numbers if they are
        0..N-1, else the rows in their order.
      num_nodes: N.
    """
    if scipy.sparse.issparse(given):
        pairs = _from_matrix(given, num_nodes)
    elif hasattr(given, "nodes") and hasattr(given, "edges"):
        pairs = _from_networkx(given, num_nodes)
    else:
        _check_not_masked(given, "Edges")
        pairs = _from_array(_ends(given))
    outside = pairs[(pairs < 0) | (pairs >= num_nodes)]
    if outside.size:
        raise InputError(
            f"An edge names node {outside[0]}, but the features have rows 0 to "
            f"{num_nodes - 1}."
        )
    return pairs


def _numbers(given: Any) -> np.ndarray:
    array = as_array(given)
    if array.dtype.kind not in "OSU":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"Features must be numbers: {error}.") from error


def _ends(given: Any) -> Any:
    """Returns the columns source and target of a table that has them."""
    names = column_names(given)
    if names is None or not {"source", "target"} <= set(names):
        return given
    others = [name for name in names if name not in ("source", "target")]
    if others:
        warnings.warn(
            f"The column '{others[0]}' of the edges is not used: edges have no weights "
            "here.",
            stacklevel=4,
        )
    return np.stack([as_array(given[name]) for name in ("source", "target")], 1)


def _from_array(given: Any) -> np.ndarray:
    array = as_array(given)
    if array.size == 0:
        return np.zeros((0, 2), np.int64)
    if array.ndim == 2 and array.shape[1] != 2 and array.shape[0] == 2:
        array = array.T
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(
            f"Edges must be pairs of row numbers, [E, 2], not of shape {array.shape}."
        )
    whole = array.dtype.kind in "iu" or (
        array.dtype.kind == "f"
        and bool((array % 1 == 0).all() and (abs(array) < 2**53).all())
    )
    if not whole:
        raise InputError("Edges must be pairs of whole numbers.")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError(f"An edge names node {array.max()}, which no graph has.")
    return array.astype(np.int64)


def _from_matrix(given: Any, num_nodes: int) -> np.ndarray:
    if given.shape != (num_nodes, num_nodes):
        raise InputError(
            f"The adjacency matrix is of shape {given.shape}, but there are "
            f"{num_nodes} rows of features."
        )
    matrix = scipy.sparse.coo_array(given)
    stored = matrix.data != 0
    return np.stack([matrix.row[stored], matrix.col[stored]], 1).astype(np.int64)


def _from_networkx(given: Any, num_nodes: int) -> np.ndarray:
    nodes = list(given.nodes)
    if len(nodes) != num_nodes:
        raise InputError(
            f"The graph has {len(nodes)} nodes, but there are {num_nodes} rows of "
            "features."
        )
    numbered = set(nodes) == set(range(num_nodes))
    row = {node: node if numbered else index for index, node in enumerate(nodes)}
    pairs = [(row[a], row[b]) for a, b in given.edges()]
    return np.array(pairs, np.int64).reshape(-1, 2)
