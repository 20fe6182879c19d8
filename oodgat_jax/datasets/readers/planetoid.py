"""Reader of the Planetoid files (Cora, Citeseer, Pubmed).

A data set is a handful of Python 2 pickles and one text file. A pickle is a program,
so they go through an unpickler that admits the six names these files need, and gives
inert objects for those of numpy and scipy: no code of theirs sees the foreign state.
"""

import io
import itertools
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from oodgat_jax.datasets.readers import checks
from oodgat_jax.datasets.source import RawGraph, Source


class _Inert:
    """Stands in for a class of the pickle: keeps what it is given, runs nothing."""

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Matrix(_Inert):
    """For scipy.sparse.csr_matrix; the state is a dict."""


class _Array(_Inert):
    """For a numpy array; the state is (version, shape, dtype, fortran, bytes)."""


class _DType(_Inert):
    """For numpy.dtype; the arguments begin with its name, like f4."""


def _dictionary(*factory: object) -> dict:
    """Stands in for defaultdict(list), as which the links are stored."""
    if len(factory) > 1:
        raise pickle.UnpicklingError("it copies a dict")
    return {}


_ADMITTED = {
    ("numpy", "ndarray"): _Inert,
    ("numpy", "dtype"): _DType,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("scipy.sparse.csr", "csr_matrix"): _Matrix,
    ("collections", "defaultdict"): _dictionary,
    ("__builtin__", "list"): _Inert,  # only named, as what a defaultdict makes
}


class _Unpickler(pickle.Unpickler):
    """Admits the names above and refuses every other one."""

    def find_class(self, module: str, name: str) -> object:
        """Returns the admitted object for a name in the pickle."""
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}, which no Planetoid file needs"
            ) from None


def unpickle(path: Path) -> object:
    """Reads a Planetoid pickle without running anything it names."""
    with checks.reading(path):
        data = path.read_bytes()
        _check_memo(data)
        return _Unpickler(io.BytesIO(data), encoding="latin1").load()


def _check_memo(data: bytes) -> None:
    """Refuses to remember objects at places past the end of the file.

    The unpickler makes room for all places up to the largest one, which a damaged file
    can put at billions.
    """
    for opcode, place, _ in pickletools.genops(data):
        if opcode.name.endswith("PUT") and int(place or 0) > len(data):
            raise pickle.UnpicklingError(f"it remembers an object at place {place}")


def _array(content: object, path: Path) -> np.ndarray:
    """Builds the array of numbers that an inert one describes."""
    if not isinstance(content, _Array):
        raise checks.bad(path, "does not hold an array where it should")
    _, shape, described, fortran, data = content.state
    dtype = np.dtype(described.state[1] + described.arguments[0])
    if dtype.kind not in "fiub":
        raise checks.bad(path, f"holds an array of type {dtype}, not of numbers")
    flat = np.frombuffer(data.encode("latin1"), dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def _matrix(path: Path) -> scipy.sparse.csr_array:
    content = unpickle(path)
    with checks.reading(path):
        if not isinstance(content, _Matrix):
            raise checks.bad(path, "does not hold a sparse matrix")
        parts = ("data", "indices", "indptr")
        arrays = {part: _array(content.state[part], path) for part in parts}
        return checks.csr(arrays | {"shape": content.state["_shape"]}, path)


def _labels(path: Path, num_rows: int) -> np.ndarray:
    """Class ids from one-hot rows; -1 for a row of zeros."""
    content = unpickle(path)
    with checks.reading(path):
        one_hot = _array(content, path)
        if one_hot.ndim != 2 or one_hot.shape[0] != num_rows:
            raise checks.bad(path, f"does not hold {num_rows} rows")
        if not np.isin(one_hot, (0, 1)).all() or (one_hot.sum(axis=1) > 1).any():
            raise checks.bad(path, "holds labels that are not one-hot rows")
        return np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)


def _links(path: Path, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns both ends of every link in a dict from node to list of neighbors."""
    graph = unpickle(path)
    with checks.reading(path):
        if not isinstance(graph, dict):
            raise checks.bad(path, "does not hold a dict of neighbor lists")
        # Every neighbor takes a byte at least, unless lists are stored many times.
        if sum(len(ends) for ends in graph.values()) > path.stat().st_size:
            raise checks.bad(path, "holds more neighbors than bytes")
        nodes = checks.integers(list(graph), path, "nodes")
        ends = list(itertools.chain.from_iterable(graph.values()))
        receivers = checks.integers(ends, path, "neighbors")
        senders = np.repeat(nodes, [len(ends) for ends in graph.values()])
        for ids in (senders, receivers):
            checks.within(ids, 0, num_nodes - 1, path, "node")
        return senders, receivers


def _test_index(path: Path, first: int, count: int, num_nodes: int) -> np.ndarray:
    """Reads node ids of the test rows, in the order of the rows."""
    with checks.reading(path):
        lines = path.read_text(encoding="ascii").split()
        index = checks.integers([int(line) for line in lines], path, "node ids")
        if index.size != count or np.unique(index).size != count:
            raise checks.bad(path, f"does not hold {count} distinct node ids")
        checks.within(index, first, num_nodes - 1, path, "node")
        return index


def read(folder: Path, source: Source) -> RawGraph:
    """Reads rows of `allx`, then the test rows at the places `test.index` gives.

    Citeseer's `test.index` leaves out 15 nodes that `graph` nevertheless links: they
    keep their links (which the published 9,104 count) and have zero features and
    label -1. Files `x` and `y` only repeat the first rows of `allx` and `ally`, so
    they are not read.
    """
    paths = {
        part: folder / f"ind.{source.name}.{part}"
        for part in ("allx", "tx", "ally", "ty", "graph", "test.index")
    }
    allx, tx = _matrix(paths["allx"]), _matrix(paths["tx"])
    if allx.shape[1] != tx.shape[1]:
        raise checks.bad(paths["tx"], f"does not have {allx.shape[1]} features")
    first = allx.shape[0]
    index = _test_index(paths["test.index"], first, tx.shape[0], source.nodes)
    labels = np.full(max(source.nodes, first), -1)
    labels[:first] = _labels(paths["ally"], first)
    labels[index] = _labels(paths["ty"], tx.shape[0])
    tx = tx.tocoo()
    tests = scipy.sparse.coo_array(
        (tx.data, (index[tx.row] - first, tx.col)),
        shape=(labels.size - first, tx.shape[1]),
    )
    features = scipy.sparse.csr_array(scipy.sparse.vstack([allx, tests.tocsr()]))
    return RawGraph(features, *_links(paths["graph"], labels.size), labels)
