"""Writes a large graph as CSV, to measure reading, fitting and predicting.

  python tests/support/large_tables.py --nodes=1000000 --edges=5000000 --folder=large
  cd large
  /usr/bin/time -v oodgat --nodes=nodes.csv --edges=edges.csv --members=1 \
      --set=max_steps=2 --save=model
  /usr/bin/time -v oodgat --model=model --nodes=nodes.csv --edges=edges.csv

Nodes of six classes have features around a center of their class; one in ten of the
first four classes is labeled, and most edges join nodes of a class.
"""

import argparse
import pathlib
import sys

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv

BLOCK = 100_000  # rows written at a time


def names(word: str, numbers: np.ndarray) -> pa.Array:
    """Returns text such as node-7."""
    return compute.binary_join_element_wise(word, pa.array(numbers).cast("string"), "")


def write_nodes(path: pathlib.Path, labels: np.ndarray, width: int, draw) -> None:
    """Writes the nodes, a label for some of the first four classes."""
    centers = draw.normal(size=(6, width))
    fields = [("id", "string"), ("label", "string")]
    schema = pa.schema([*fields, *((f"x{k}", pa.float64()) for k in range(width))])
    with csv.CSVWriter(path, schema) as writer:
        for start in range(0, len(labels), BLOCK):
            some = labels[start : start + BLOCK]
            values = centers[some] + draw.normal(size=(len(some), width))
            shown = (some < 4) & (draw.random(len(some)) < 0.1)
            label = compute.if_else(pa.array(shown), names("class ", some), "")
            columns = [names("node-", start + np.arange(len(some))), label]
            columns += [pa.array(column) for column in values.round(4).T]
            writer.write(pa.record_batch(columns, schema=schema))


def write_edges(path: pathlib.Path, labels: np.ndarray, count: int, draw) -> None:
    """Writes the edges; four in five join nodes of one class."""
    order = np.argsort(labels, kind="stable")
    begins = np.searchsorted(labels[order], np.arange(7))
    schema = pa.schema([("source", "string"), ("target", "string")])
    with csv.CSVWriter(path, schema) as writer:
        for start in range(0, count, BLOCK):
            size = min(BLOCK, count - start)
            sources = draw.integers(len(labels), size=size)
            lows, highs = begins[labels[sources]], begins[labels[sources] + 1]
            inside = order[lows + (draw.random(size) * (highs - lows)).astype(int)]
            anywhere = draw.integers(len(labels), size=size)
            targets = np.where(draw.random(size) < 0.8, inside, anywhere)
            columns = [names("node-", sources), names("node-", targets)]
            writer.write(pa.record_batch(columns, schema=schema))


def main() -> None:
    """Writes nodes.csv and edges.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    labels = draw.integers(6, size=given.nodes)
    write_nodes(given.folder / "nodes.csv", labels, given.features, draw)
    write_edges(given.folder / "edges.csv", labels, given.edges, draw)


if __name__ == "__main__":
    sys.exit(main())
