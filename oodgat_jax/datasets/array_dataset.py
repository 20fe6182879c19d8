"""Arrays, tables and other libraries' graphs -> a Dataset."""

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from oodgat_jax.datasets import feature_tables, other_libraries
from oodgat_jax.datasets.arrays import NO_NAMES, as_array, as_mask, as_pairs, entries
from oodgat_jax.datasets.loading import tidy_edges
from oodgat_jax.types import Dataset, InputError

LABELED = 30  # nodes of each known class that a split of the paper labels
MOST_TEST = 1000
MOST_CLASSES = 1000  # labels below this, or below N, are class numbers as they are


def from_arrays(
    features: Any,
    edges: Any = None,
    labels: Any = None,
    *,
    id_classes: Sequence,
    name: str = "own",
    test_size: int | None = None,
    directed: bool = False,
    exposure: Any = None,
) -> Dataset:
    """Returns a data set from arrays, or from another library's graph.

    Args:
      features: [N, F], dense, scipy sparse or a table of pandas, polars or Arrow; or a
        graph that holds edges and labels too: PyTorch Geometric's `Data`, DGL's with
        `feat` and `label`, networkx's with attributes of its nodes.
      edges: pairs [E, 2] or [2, E], a scipy sparse matrix [N, N] or a networkx graph.
      labels: one class per node, a number or a string; -1, None, NaN or "" where there
        is none.
      id_classes: the known classes; all others are OOD.
      name: how tables and records call it.
      test_size: ID test nodes of a split, and as many OOD ones; by default what is
        left after labeling, at most 1,000.
      directed: whether an edge carries information in its direction alone.
      exposure: nodes known to be OOD, [N] bool or their numbers: examples for methods
        that learn from some; they are not drawn for validation or test.
    """
    _check_arguments(id_classes, name, test_size, directed)
    if edges is None and labels is None:
        features, edges, labels = other_libraries.unpack(features)
    matrix = feature_tables.complete(features)
    num_nodes = matrix.shape[0]
    pairs = as_pairs(edges, num_nodes)
    codes, known = _codes(labels, num_nodes, id_classes)
    senders, receivers = tidy_edges(pairs[:, 0], pairs[:, 1], num_nodes, directed)
    exposed = None if exposure is None else as_mask(exposure, num_nodes)
    free = codes if exposed is None else np.where(exposed, -1, codes)
    return Dataset(
        name=name,
        features=matrix,
        senders=senders,
        receivers=receivers,
        labels=codes,
        id_classes=known,
        test_size=_most_test(free, known) if test_size is None else int(test_size),
        exposure=exposed,
    )


def _check_arguments(id_classes: Any, name: Any, test_size: Any, directed: Any) -> None:
    if isinstance(id_classes, str) or not hasattr(id_classes, "__iter__"):
        raise InputError(f"id_classes must be a list of classes, not {id_classes!r}.")
    if not isinstance(name, str) or not name or set(name) & set("/\\\n\0"):
        raise InputError(f"name must be text that a file can have, not {name!r}.")
    if test_size is not None and not isinstance(test_size, numbers.Integral):
        raise InputError(f"test_size must be a whole number, not {test_size!r}.")
    if not isinstance(directed, bool | np.bool_):
        raise InputError(f"directed must be True or False, not {directed!r}.")


def _codes(
    labels: Any, num_nodes: int, id_classes: Sequence
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Returns the class number of every node, -1 for none, and the known classes."""
    shape = as_array(labels).shape
    if shape != (num_nodes,):
        raise InputError(
            f"Labels must be one per node, [{num_nodes}], not of shape {shape}."
        )
    values = [_label(value) for value in _listed(labels)]
    classes = _classes({value for value in values if value is not None}, num_nodes)
    number = {name: at for at, name in enumerate(classes)}
    codes = np.array([number.get(str(value), -1) for value in values], np.int32)
    known = [_position(classes, name) for name in _listed(id_classes)]
    present = set(np.unique(codes[codes >= 0]).tolist())
    if len(set(known)) < 2 or not set(known) < present:
        raise InputError(
            f"id_classes must name at least two and not all of the classes of the "
            f"labels, but are {list(id_classes)}."
        )
    return codes, tuple(sorted(set(known)))


def _classes(labels: set[int | str], num_nodes: int) -> list[str]:
    """Returns the names of classes 0, 1, ...: small numbers stay as they are."""
    whole = [label for label in labels if isinstance(label, int)]
    if len(whole) < len(labels):
        return sorted(map(str, labels))
    most = max(whole, default=0)
    few = most < max(MOST_CLASSES, num_nodes)
    return [str(number) for number in (range(most + 1) if few else sorted(whole))]


def _listed(given: Any) -> list:
    """Returns the entries as Python's; None where an array is masked."""
    if isinstance(given, np.ma.MaskedArray):
        return given.tolist()
    found = entries(given)
    if found is not None:
        return found
    if hasattr(given, "detach") or hasattr(given, "__array__"):
        return as_array(given).tolist()
    return [value.item() if hasattr(value, "item") else value for value in given]


def _label(value: Any) -> int | str | None:
    """Returns a label as a whole number or a string; None if it stands for none."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return None if value < 0 else value
    if not isinstance(value, bool | float | str):
        raise InputError(f"Labels must be numbers or strings, not {value!r:.50}.")
    if str(value).strip().lower() in NO_NAMES:
        raise InputError(
            f"A label is '{value}', which stands for a missing value elsewhere: give "
            "-1 where there is no label."
        )
    return None if value in ("", "-1") else str(value)


def _position(classes: Sequence[str], name: Any) -> int:
    wanted = str(_label(name))
    if wanted not in classes:
        raise InputError(f"id_classes names {name!r}, which no label is.")
    return classes.index(wanted)


def _most_test(codes: np.ndarray, known: Sequence[int]) -> int:
    inside = int(np.isin(codes, known).sum())
    outside = int((codes >= 0).sum()) - inside
    return max(
        1, min(inside, outside, MOST_TEST + LABELED * len(known)) - LABELED * len(known)
    )
