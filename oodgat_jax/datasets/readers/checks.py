"""Checks the readers share: whatever is wrong with a file becomes an InputError."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import scipy.sparse

from oodgat_jax.types import InputError


def bad(path: Path, problem: str) -> InputError:
    """Returns the error for a file whose content is not what its format promises."""
    return InputError(f"{path} {problem}; replace it with the published file.")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns any failure to read `path` into an InputError that names it.

    Parsers of foreign bytes fail in more ways than can be listed, so everything is
    caught here; the original error stays attached as the cause.
    """
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(
            f"{path} does not exist; put the published file there."
        ) from error
    except Exception as error:
        raise bad(path, f"cannot be read ({type(error).__name__}: {error})") from error


def integers(values: object, path: Path, what: str) -> np.ndarray:
    """Returns values as a flat int64 array; refuses fractions, text and nesting."""
    # Lists in lists may be few bytes of a pickle and gigabytes of an array.
    if isinstance(values, list) and any(type(value) is not int for value in values):
        raise bad(path, f"holds {what} that are not a flat list of integers")
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise bad(path, f"holds {what} that are not a flat list of integers")
    return array.astype(np.int64)


def within(values: np.ndarray, low: int, high: int, path: Path, what: str) -> None:
    """Refuses integers outside low..high."""
    wrong = values[(values < low) | (values > high)]
    if wrong.size:
        raise bad(path, f"holds {what} {wrong[0]}, outside {low}..{high}")


def finite(features: np.ndarray, path: Path) -> None:
    """Refuses features that are NaN or infinite."""
    if not np.isfinite(features).all():
        raise bad(path, "holds features that are not finite numbers")


def csr(parts: Mapping[str, np.ndarray], path: Path) -> scipy.sparse.csr_array:
    """Builds a float32 CSR array from `data`, `indices`, `indptr` and `shape`."""
    rows, columns = (int(size) for size in parts["shape"])
    data = np.asarray(parts["data"])
    if data.dtype.kind not in "fiub":
        raise bad(path, f"holds matrix values of type {data.dtype}")
    places = [integers(parts[part], path, part) for part in ("indices", "indptr")]
    matrix = scipy.sparse.csr_array(
        (data.astype(np.float32), *places), shape=(rows, columns)
    )
    matrix.check_format(full_check=True)
    finite(matrix.data, path)
    matrix.sum_duplicates()
    return matrix
