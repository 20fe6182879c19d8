"""Graphs in the file layout of OGB's node property prediction, read part by part.

    raw/num-node-list.csv.gz   N
    raw/num-edge-list.csv.gz   number of edges, each stored once
    raw/edge.csv.gz            a line `sender,receiver` per edge
    raw/node-feat.csv.gz       a line of F numbers per node
    raw/node-label.csv.gz      a class per node, nan where there is none
    raw/node_year.csv.gz       a year per node; of ogbn-arxiv, and only if asked for

Files are gone through from the first line to the last, a few megabytes at a time, and
only what belongs to a part is kept. No class of these data sets is unknown by itself:
which are is the caller's choice.
"""

import gzip
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from oodgat_jax import graphs
from oodgat_jax.datasets import limits
from oodgat_jax.datasets.readers.checks import bad, finite, reading, within
from oodgat_jax.types import InputError, Part, StreamedGraph

CHUNK = 1 << 24  # characters that are parsed at a time
MOST_LINE = 1 << 24  # characters of a line


def open_folder(
    folder: str | Path,
    id_classes: Sequence[int] | None = None,
    test_size: int = 1000,
    *,
    directed: bool = False,
) -> StreamedGraph:
    """Opens a graph of that layout, its labels read and the rest left for `read`.

    Args:
      folder: holds `raw`; its name is the graph's name.
      id_classes: the known classes; by default the first half of them.
      test_size: ID test nodes of a split, and as many OOD ones.
      directed: whether edges go one way only, as stored.
    """
    raw = Path(folder) / "raw"
    num_nodes = _single(raw / "num-node-list.csv.gz")
    labels = _labels(raw / "node-label.csv.gz", num_nodes)
    classes = np.unique(labels[labels >= 0]).tolist()
    chosen = tuple(sorted(id_classes or classes[: len(classes) // 2]))
    if not chosen or not set(chosen) < set(classes):
        raise InputError(
            f"The ID classes {list(chosen)} of {folder} must be some, and not all, of "
            f"its {len(classes)} classes."
        )

    def read(start: int, stop: int) -> Part:
        ends = _edges(raw, num_nodes, start, stop, directed)
        features = _rows(raw / "node-feat.csv.gz", num_nodes, start, stop)
        edges = graphs.with_self_loops(*ends, stop - start, start)
        return Part(features, *edges)

    name = Path(folder).name.replace("_", "-")
    return StreamedGraph(name, num_nodes, labels, chosen, test_size, read)


def years(folder: str | Path) -> np.ndarray:
    """Reads the year of every node: [N] int64."""
    raw = Path(folder) / "raw"
    path, num_nodes = raw / "node_year.csv.gz", _single(raw / "num-node-list.csv.gz")
    blocks = _first(_blocks(path, np.int64, 1), num_nodes)
    found = np.concatenate([*blocks, np.empty((0, 1), np.int64)])[:, 0]
    _complete(path, len(found), num_nodes)
    return found


def _edges(
    raw: Path, num_nodes: int, start: int, stop: int, directed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Senders and receivers of the edges into nodes from start to stop."""
    path, kept, total = raw / "edge.csv.gz", [np.empty((0, 2), np.int64)], 0
    expected = _single(raw / "num-edge-list.csv.gz")
    for block in _blocks(path, np.int64, 2):
        total += len(block)
        if total > expected:
            break
        within(block.reshape(-1), 0, num_nodes - 1, path, "node")
        for ends in (block,) if directed else (block, block[:, ::-1]):
            kept.append(ends[(ends[:, 1] >= start) & (ends[:, 1] < stop)])
    if total != expected:
        more = " or more" if total > expected else ""
        raise bad(path, f"holds {total}{more} edges where {expected} were announced")
    senders, receivers = np.concatenate(kept).T
    return senders, receivers


def _rows(path: Path, num_nodes: int, start: int, stop: int) -> np.ndarray:
    """Reads features of the nodes from start to stop, float32."""
    kept, row = [], 0
    for block in _first(_blocks(path, np.float32), num_nodes):
        low, high = np.clip([start - row, stop - row], 0, len(block))
        kept.append(block[low:high])
        row += len(block)
    _complete(path, row, num_nodes)
    features = np.concatenate(kept)
    finite(features, path)
    return features


def _labels(path: Path, num_nodes: int) -> np.ndarray:
    """Reads classes, -1 where there is none: [N] int32."""
    blocks = _first(_blocks(path, np.float64, 1), num_nodes)
    found = np.concatenate([*blocks, np.empty((0, 1))])[:, 0]
    _complete(path, len(found), num_nodes)
    known = np.where(np.isnan(found), -1, found)
    if not np.array_equal(known, np.trunc(known)):
        raise bad(path, "holds classes that are no whole numbers")
    within(known, -1, np.iinfo(np.int32).max, path, "class")
    return known.astype(np.int32)


def _complete(path: Path, rows: int, num_nodes: int) -> None:
    if rows != num_nodes:
        raise bad(path, f"holds {rows} nodes where {num_nodes} were announced")


def _single(path: Path) -> int:
    """Reads the only number of a file."""
    blocks = _first(_blocks(path, np.int64, 1), 1)
    found = np.concatenate([*blocks, np.empty((0, 1), np.int64)])
    if found.shape != (1, 1) or found[0, 0] < 0:
        raise bad(path, "does not hold one number")
    return int(found[0, 0])


def _blocks(path: Path, kind: type, width: int | None = None) -> Iterator[np.ndarray]:
    """Yields whole lines of numbers, some at a time: [lines, width]."""
    with reading(path), gzip.open(path) as file:
        rest, unpacked = b"", 0
        while text := file.read(CHUNK):
            unpacked += len(text)
            limits.check(path, unpacked)
            lines, newline, rest = (rest + text).rpartition(b"\n")
            if newline:
                block = _parse(path, lines, kind, width)
                width = block.shape[1]
                yield block
            elif len(rest) >= MOST_LINE:
                raise bad(path, f"has a line of more than {MOST_LINE >> 20} MB")
        if rest.strip():
            yield _parse(path, rest, kind, width)


def _first(blocks: Iterator[np.ndarray], rows: int) -> Iterator[np.ndarray]:
    """Yields blocks until there are more rows than that, and no further."""
    found = 0
    for block in blocks:
        yield block
        found += len(block)
        if found > rows:
            return


def _parse(path: Path, lines: bytes, kind: type, width: int | None) -> np.ndarray:
    text = io.BytesIO(lines)
    block: np.ndarray = np.loadtxt(text, kind, delimiter=",", comments=None, ndmin=2)
    if width is not None and block.shape[1] != width:
        raise bad(path, f"has lines of {block.shape[1]} numbers, not of {width}")
    return block
