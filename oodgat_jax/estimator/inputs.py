"""What people have as features, edges and labels -> checked arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from oodgat_jax.types import InputError

UNKNOWN = -1  # an unlabelled node, and a node of no known class


def features(given: Any) -> np.ndarray | scipy.sparse.csr_array:
    """Dense or sparse features [N, F] as float32."""
    if scipy.sparse.issparse(given):
        matrix = scipy.sparse.csr_array(given, dtype=np.float32)
        _check_finite(matrix.data)
    else:
        try:
            matrix = np.asarray(given, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise InputError(f"Features must be numbers: {error}.") from error
        _check_finite(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(
            "Features must be a table with a row per node and a column per feature, "
            f"not of shape {matrix.shape}."
        )
    return matrix


def edges(
    given: Any, num_nodes: int, directed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Senders and receivers [E] from whatever holds edges.

    Args:
      given: pairs of row numbers as an array [E, 2] or [2, E]; a scipy sparse matrix
        [N, N] with an entry at (i, j) for an edge i -> j; or a networkx graph. Its
        nodes are row numbers if they are 0..N-1, else the rows in their order.
      num_nodes: N.
      directed: whether i -> j carries information from i to j alone.
    """
    if scipy.sparse.issparse(given):
        pairs = _from_matrix(given, num_nodes)
    elif hasattr(given, "nodes") and hasattr(given, "edges"):
        pairs = _from_networkx(given, num_nodes)
    else:
        pairs = _from_array(given)
    outside = pairs[(pairs < 0) | (pairs >= num_nodes)]
    if outside.size:
        raise InputError(
            f"An edge names node {outside[0]}, but the features have rows 0 to "
            f"{num_nodes - 1}."
        )
    senders, receivers = pairs.T
    if directed:
        return senders, receivers
    return np.append(senders, receivers), np.append(receivers, senders)


def labels(given: Any, num_nodes: int) -> tuple[list, np.ndarray]:
    """The classes, sorted, and the class number of every node, -1 where it has none.

    A node without a label has -1, "-1", "", None or NaN.
    """
    values = _as_list(given)
    if len(values) != num_nodes:
        raise InputError(
            f"There are {len(values)} labels for {num_nodes} rows of features: give "
            "one per node, -1 where there is none."
        )
    has = np.array([not _is_missing(value) for value in values], bool)
    found = {value for value, labelled in zip(values, has, strict=True) if labelled}
    try:
        classes = sorted(found)
    except TypeError as error:
        raise InputError(
            "Labels must be all of one kind, numbers or texts, not a mixture."
        ) from error
    number = {value: index for index, value in enumerate(classes)}
    codes = np.full(num_nodes, UNKNOWN, np.int32)
    codes[has] = [number[values[node]] for node in np.flatnonzero(has)]
    _check_classes(classes, codes)
    return classes, codes


def _check_classes(classes: Sequence, codes: np.ndarray) -> None:
    if not classes:
        raise InputError("No node has a label: label some nodes of each known class.")
    if len(classes) == 1:
        raise InputError(
            f"All labelled nodes are of class {classes[0]!r}: at least two known "
            "classes are needed."
        )
    counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    if counts.min() < 2:
        raise InputError(
            f"Class {classes[int(counts.argmin())]!r} has a single labelled node: "
            "label at least two, one to learn from and one to hold out."
        )
    if (codes >= 0).all():
        raise InputError(
            "Every node has a label, so there is nothing to find: give nodes without "
            "one, with the label -1."
        )


def _as_list(given: Any) -> list:
    array = given if isinstance(given, np.ndarray) else np.array(list(given), object)
    if array.ndim != 1:
        raise InputError(f"Labels must be one per node, not of shape {array.shape}.")
    return array.tolist()


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and value in ("", "-1")):
        return True
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return False
    return value == UNKNOWN or value != value  # NaN differs from itself


def _check_finite(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise InputError(
            "Features must be finite numbers, but there is NaN or infinity among them."
        )


def _from_array(given: Any) -> np.ndarray:
    array = np.asarray(given)
    if array.size == 0:
        return np.zeros((0, 2), np.int64)
    if array.ndim == 2 and array.shape[1] != 2 and array.shape[0] == 2:
        array = array.T
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(
            f"Edges must be pairs of row numbers, [E, 2], not of shape {array.shape}."
        )
    if not np.issubdtype(array.dtype, np.integer):
        if not np.issubdtype(array.dtype, np.floating) or (array % 1 != 0).any():
            raise InputError("Edges must be pairs of whole numbers.")
        array = array.astype(np.int64)
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
