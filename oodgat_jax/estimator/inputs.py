"""What people have as edges and labels -> checked arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oodgat_jax.datasets import arrays
from oodgat_jax.types import InputError

UNKNOWN = -1  # an unlabelled node, and a node of no known class


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
            "Labels must be all of one kind, numbers or strings, not a mixture."
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
