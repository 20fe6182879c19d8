"""What people have as edges and labels -> checked arrays."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from oodgat_jax.datasets import arrays
from oodgat_jax.types import InputError

UNKNOWN = -1  # an unlabeled node, and a node of no known class


def edges(
    given: Any, num_nodes: int, directed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Returns senders and receivers [E] from whatever holds edges.

    Args:
      given: see `datasets.arrays.as_pairs`.
      num_nodes: N.
      directed: whether i -> j carries information from i to j alone.
    """
    senders, receivers = arrays.as_pairs(given, num_nodes).T
    if directed:
        return senders, receivers
    return np.append(senders, receivers), np.append(receivers, senders)


def labels(given: Any, num_nodes: int) -> tuple[list, np.ndarray]:
    """Returns the classes, sorted, and every node's class number, -1 for none: [N].

    A node without a label has -1, "-1", "", None or NaN.

    Raises:
      InputError: a label is another negative number, or text that stands for a missing
        value elsewhere, as "nan" or "None".
    """
    values = _as_list(given)
    if len(values) != num_nodes:
        raise InputError(
            f"There are {len(values)} labels for {num_nodes} rows of features: give "
            "one per node, -1 where there is none."
        )
    has = np.array([not is_missing(value) for value in values], bool)
    found = {value for value, labeled in zip(values, has, strict=True) if labeled}
    try:
        classes = sorted(found)
    except TypeError as error:
        raise InputError(
            "Labels must be all of one kind, numbers or strings, not a mixture."
        ) from error
    _check_names(classes)
    number = {value: index for index, value in enumerate(classes)}
    codes = np.full(num_nodes, UNKNOWN, np.int32)
    codes[has] = [number[values[node]] for node in np.flatnonzero(has)]
    _check_classes(classes, codes)
    return classes, codes


def class_array(classes: Sequence) -> np.ndarray:
    """Returns the classes as an array [C] that holds each of them as it is."""
    found = np.array(classes) if _are_simple(classes) else None
    if found is not None and found.tolist() == list(classes):
        return found
    found = np.empty(len(classes), object)
    for at, name in enumerate(classes):
        found[at] = name
    return found


def _are_simple(classes: Sequence) -> bool:
    """Returns whether numpy has a type for them that can also hold -1."""
    most = np.iinfo(np.int64).max
    texts = all(isinstance(name, str) for name in classes)
    return texts or all(
        isinstance(name, bool | int | float) and name <= most for name in classes
    )


def _check_classes(classes: Sequence, codes: np.ndarray) -> None:
    if not classes:
        raise InputError("No node has a label: label some nodes of each known class.")
    if len(classes) == 1:
        raise InputError(
            f"All labeled nodes are of class {classes[0]!r}: at least two known "
            "classes are needed."
        )
    counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    if counts.min() < 2:
        raise InputError(
            f"Class {classes[int(counts.argmin())]!r} has a single labeled node: "
            "label at least two, one to learn from and one to hold out."
        )
    if (codes >= 0).all():
        raise InputError(
            "Every node has a label, so there is nothing to find: give nodes without "
            "one, with the label -1."
        )


def _as_list(given: Any) -> list:
    if isinstance(given, np.ma.MaskedArray) and given.ndim == 1:
        return given.tolist()  # None where it is masked
    found = arrays.entries(given)
    if found is not None:
        return [_as_python(value) for value in found]
    if hasattr(given, "__array__") or hasattr(given, "detach"):
        array = arrays.as_array(given)  # of numpy, pandas, JAX or PyTorch
        if array.ndim != 1:
            raise InputError(
                f"Labels must be one per node, not of shape {array.shape}."
            )
        return array.tolist()
    try:
        return [_as_python(value) for value in given]
    except TypeError as error:
        raise InputError(
            f"Labels must be one per node, not a single {type(given).__name__}."
        ) from error


def _as_python(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()  # a number of numpy, JAX or PyTorch
    if isinstance(value, Hashable):
        return value
    raise InputError(f"Labels must be numbers or strings, not {value!r:.50}.")


def is_missing(value: Any) -> bool:
    """Returns whether a value stands for no label."""
    if value is None or (isinstance(value, str) and value in ("", "-1")):
        return True
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return False
    return bool(value == UNKNOWN or value != value)  # NaN differs from itself


def _check_names(classes: Sequence) -> None:
    for name in classes:
        if isinstance(name, str) and name.strip().lower() in arrays.NO_NAMES:
            raise InputError(
                f"A label is '{name}', which stands for a missing value elsewhere: "
                "leave it empty, or give -1, where there is no label."
            )
        if isinstance(name, float) and math.isinf(name):
            raise InputError(f"A label is {name}: give finite numbers or strings.")
        if _is_negative(name):
            raise InputError(
                f"A label is {name}, but negative labels mean that there is none, and "
                "only -1 is read so: give -1, or another name for the class."
            )


def _is_negative(name: Any) -> bool:
    try:
        return not isinstance(name, bool) and float(name) < 0
    except (TypeError, ValueError, OverflowError):
        return False
