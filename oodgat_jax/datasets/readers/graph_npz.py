"""Reads a graph, or the features of one, from an npz of plain arrays.

A graph has `features` [N, F], or `data`, `indices`, `indptr` and `shape` as scipy's
`save_npz` writes them for a CSR or CSC matrix; `edges` [E, 2] of row numbers; and, if
they are known, `labels` [N], `ids` [N] and `feature_names` [F]. No array may be larger
than what the file holds of it, see `datasets.limits`.
"""

import pathlib
from collections.abc import Mapping

import numpy as np
import scipy.sparse

from oodgat_jax.datasets.arrays import MOST_FEATURES, as_features
from oodgat_jax.datasets.readers import npz
from oodgat_jax.datasets.readers.table_columns import Nodes
from oodgat_jax.types import InputError

MATRIX_NAMES = {"data", "indices", "indptr", "shape", "format"}
FEATURE_NAMES = {"features", "feature_names", *MATRIX_NAMES}
NAMES = {"edges", "labels", "ids", *FEATURE_NAMES}


def read_npz(path: pathlib.Path, *, may_lack: bool = False) -> tuple[Nodes, np.ndarray]:
    """Reads nodes and edges [E, 2] from one npz; NaN where a feature may be missing."""
    arrays = _arrays(path, NAMES)
    if "edges" not in arrays:
        raise InputError(f"{path} has no array 'edges', pairs of row numbers [E, 2].")
    features = _features(path, arrays, may_lack)
    count, width = features.shape
    ids = _texts(path, arrays, "ids", count) or [str(row) for row in range(count)]
    names = _texts(path, arrays, "feature_names", width)
    labels = None
    if "labels" in arrays:
        if arrays["labels"].shape != (count,):
            raise InputError(
                f"{path} has labels of shape {arrays['labels'].shape} for {count} rows "
                "of features."
            )
        labels = arrays["labels"].tolist()
    return Nodes(ids, features, names, labels), arrays["edges"]


def read_features(
    path: pathlib.Path, num_nodes: int, *, may_lack: bool = False
) -> tuple[np.ndarray | scipy.sparse.csr_array, list[str] | None]:
    """Reads features [N, F], a matrix of scipy or an array, and their names if any."""
    arrays = _arrays(path, FEATURE_NAMES)
    features = _features(path, arrays, may_lack)
    rows, width = features.shape
    if rows != num_nodes:
        raise InputError(
            f"{path} has features of {rows} nodes, but the table of nodes has "
            f"{num_nodes} rows: give one row for each, in the same order."
        )
    return features, _texts(path, arrays, "feature_names", width)


def _arrays(path: pathlib.Path, names: set[str]) -> dict[str, np.ndarray]:
    """Returns the arrays of these names that are there, bytes as text."""
    try:
        found = npz.read(path, names)
        return {
            name: np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
            for name, array in found.items()
        }
    except FileNotFoundError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    except InputError:
        raise
    except Exception as error:  # zip and npy have many kinds for damaged bytes
        raise InputError(f"{path} is not an npz of plain arrays: {error}.") from error


def _features(
    path: pathlib.Path, arrays: Mapping[str, np.ndarray], may_lack: bool
) -> np.ndarray | scipy.sparse.csr_array:
    """Returns the features [N, F] of an npz, dense or sparse."""
    if "features" in arrays:
        features = arrays["features"]
    elif set(arrays) >= MATRIX_NAMES - {"format"}:
        features = _matrix(path, arrays)
    else:
        raise InputError(f"{path} has no array 'features' [N, F].")
    try:
        return as_features(features, may_lack=may_lack)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _matrix(
    path: pathlib.Path, arrays: Mapping[str, np.ndarray]
) -> scipy.sparse.csr_array:
    """Returns a matrix as `scipy.sparse.save_npz` writes it."""
    form = str(arrays["format"]) if "format" in arrays else "csr"
    if form not in ("csr", "csc"):
        raise InputError(
            f"{path} holds a sparse matrix of format '{form}': save it as CSR, with "
            "scipy.sparse.save_npz(path, matrix.tocsr())."
        )
    if form == "csr":
        return _csr(path, arrays, "rows", "columns")
    shape = arrays["shape"][::-1] if arrays["shape"].ndim else arrays["shape"]
    return _csr(path, {**arrays, "shape": shape}, "columns", "rows").T.tocsr()


def _csr(
    path: pathlib.Path, arrays: Mapping[str, np.ndarray], major: str, minor: str
) -> scipy.sparse.csr_array:
    """Returns a checked sparse matrix: every index is inside of its shape."""
    data, indices, indptr, shape = (
        arrays[name] for name in ("data", "indices", "indptr", "shape")
    )
    places = (indices, indptr, shape)
    if any(part.ndim != 1 for part in (data, *places)) or shape.shape != (2,):
        raise InputError(
            f"{path}: data, indices, indptr and shape of a sparse matrix must be lists."
        )
    if any(part.dtype.kind not in "iu" for part in places):
        raise InputError(f"{path}: indices, indptr and shape must be whole numbers.")
    rows, columns = (int(size) for size in shape)
    if rows != len(indptr) - 1:
        raise InputError(
            f"{path}: a matrix of {rows} {major} needs {rows + 1} entries in indptr, "
            f"but there are {len(indptr)}."
        )
    if not 0 < columns <= MOST_FEATURES:
        raise InputError(
            f"{path}: the shape says {columns} {minor}: give at most {MOST_FEATURES}."
        )
    if len(data) != len(indices) or not _is_index(indices, columns):
        raise InputError(
            f"{path}: indices must be one per entry of data, from 0 to {columns - 1}."
        )
    ends = indptr.astype(np.int64)
    if ends[0] != 0 or ends[-1] != len(data) or (np.diff(ends) < 0).any():
        raise InputError(
            f"{path}: indptr must rise from 0 to {len(data)}, the entries of data."
        )
    parts = (data, indices.astype(np.int64), ends)
    return scipy.sparse.csr_array(parts, shape=(rows, columns))


def _is_index(values: np.ndarray, size: int) -> bool:
    return bool(((values >= 0) & (values < size)).all())


def _texts(
    path: pathlib.Path, arrays: Mapping[str, np.ndarray], name: str, count: int
) -> list[str] | None:
    """Returns an array as a list of distinct strings, if it is there."""
    if name not in arrays:
        return None
    if arrays[name].shape != (count,):
        raise InputError(
            f"{path} has {name} of shape {arrays[name].shape} where [{count}] is "
            "needed."
        )
    found = [str(value) for value in arrays[name].tolist()]
    if len(set(found)) < count:
        raise InputError(f"{path} has equal {name}: each must be there once.")
    return found
