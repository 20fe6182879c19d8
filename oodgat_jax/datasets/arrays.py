"""What people have as features, edges and labels -> checked arrays, and a Dataset.

Objects of other libraries are recognized by what they have, so none is imported: a
PyTorch Geometric `Data` by `x`, `edge_index` and `y`; a DGL graph by `ndata` and
`edges()`; a networkx graph by `nodes` and `edges`; tensors by `detach`.
"""

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from oodgat_jax.datasets.loading import tidy_edges
from oodgat_jax.types import Dataset, InputError

LABELED = 30  # nodes of each known class that a split of the paper labels
MOST_TEST = 1000
MOST_FEATURES = 2**31 - 1
MOST_CLASSES = 1000  # labels below this, or below N, are class numbers as they are
# What other programs write for a missing value; nobody means a class by it.
NO_NAMES = ("nan", "none", "null", "n/a", "<na>")


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
      features: [N, F], dense or scipy sparse; or a PyTorch Geometric `Data` or a DGL
        graph, which holds edges and labels too (DGL: as `feat` and `label`).
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
        features, edges, labels = unpack(features)
    matrix = as_features(features)
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


def unpack(graph: Any) -> tuple[Any, Any, Any]:
    """Returns features, edges and labels of a PyTorch Geometric or DGL graph."""
    if all(hasattr(graph, name) for name in ("x", "edge_index", "y")):
        return graph.x, as_array(graph.edge_index), graph.y
    if hasattr(graph, "ndata") and callable(getattr(graph, "edges", None)):
        missing = [name for name in ("feat", "label") if name not in graph.ndata]
        if missing:
            raise InputError(
                f"The DGL graph has no node data '{missing[0]}': give features, edges "
                "and labels instead."
            )
        ends = [as_array(end) for end in graph.edges()]
        return graph.ndata["feat"], np.stack(ends, 1), graph.ndata["label"]
    raise InputError(
        "Give features, edges and labels, or one graph of PyTorch Geometric (x, "
        "edge_index, y) or DGL (ndata feat and label)."
    )


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


def _check_not_masked(given: Any, what: str) -> None:
    if np.ma.is_masked(given):
        raise InputError(f"{what} must not be masked: fill or remove those entries.")


def as_features(given: Any) -> np.ndarray | scipy.sparse.csr_array:
    """Returns dense or sparse features [N, F] as float32, checked."""
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
    if not np.isfinite(matrix.data if sparse else matrix).all():
        raise InputError(
            "Features must be finite numbers below 3.4e38 in size, but there is NaN or "
            "infinity among them."
        )
    return matrix


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
      given: pairs of row numbers as an array [E, 2] or [2, E]; a scipy sparse matrix
        [N, N] with an entry at (i, j) for an edge i -> j; or a networkx graph. Its
        nodes are row numbers if they are 0..N-1, else the rows in their order.
      num_nodes: N.
    """
    if scipy.sparse.issparse(given):
        pairs = _from_matrix(given, num_nodes)
    elif hasattr(given, "nodes") and hasattr(given, "edges"):
        pairs = _from_networkx(given, num_nodes)
    else:
        _check_not_masked(given, "Edges")
        pairs = _from_array(given)
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
