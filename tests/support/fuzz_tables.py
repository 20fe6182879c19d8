"""Tables of nodes and edges for `fuzz_files`: CSV, Parquet, Arrow, and their changes.

A file's bytes are changed, or its content: a column gets another type, name or odd
entries, a cell of a CSV something odd. CSV goes through both readers; what both of them
read must be the same.
"""

import pathlib

import numpy as np

from oodgat_jax.datasets.readers import tables, text_tables
from oodgat_jax.types import InputError
from support import fuzz_readers

Random = np.random.Generator
COLUMNS = tables.Columns(categorical=("color",), may_lack=True)
CELLS = (
    *("", "nan", "NA", "1_000", "inf", "1e999", "-0", "0x10", "é", "1,5", '"', '"x"y'),
    *("\n", "\r", "\0", "1" * 5000, "=1+1", " 7 ", "\u0661", "true", "None", "n3"),
)


def content(random: Random) -> dict[str, list[list[str]]]:
    """Rows of nodes and of edges, with their headers."""
    nodes = [["id", "label", "a", "b", "color"]]
    for row in range(20):
        values = [f"{value:.3g}" for value in random.normal(size=2)]
        nodes.append([f"n{row}", ("k", "l", "")[row % 3], *values, "rgb"[row % 3]])
    edges = [["source", "target", "weight"]]
    edges += [[f"n{a}", f"n{b}", "0.5"] for a, b in random.integers(20, size=(40, 2))]
    return {"nodes": nodes, "edges": edges}


def make_csv(folder: pathlib.Path) -> None:
    """Two CSV tables."""
    for name, rows in content(np.random.default_rng(0)).items():
        _write(folder / f"{name}.csv", rows)


def _write(path: pathlib.Path, rows: list[list[str]]) -> None:
    text = "\n".join(",".join(row) for row in rows) + "\n"
    path.write_text(text, newline="")


def change_csv(folder: pathlib.Path, random: Random) -> None:
    """Changes bytes, or some cells, of one of the tables."""
    path = folder / ("nodes.csv", "edges.csv")[int(random.integers(2))]
    if random.random() < 0.5:
        path.write_bytes(fuzz_readers.mutate(path.read_bytes(), random))
        return
    rows = [line.split(",") for line in path.read_text().splitlines()]
    for _ in range(random.integers(1, 4)):
        row = rows[int(random.integers(len(rows)))]
        row[int(random.integers(len(row)))] = CELLS[int(random.integers(len(CELLS)))]
    _write(path, rows)


def read_csv(folder: pathlib.Path) -> None:
    """Reads the tables with both readers."""
    from oodgat_jax.datasets.readers import arrow_tables

    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    form = tables.Format()
    fast = arrow_tables.read_nodes_csv(nodes, COLUMNS, form)
    found = text_tables.read_nodes(nodes, COLUMNS, form)
    if fast is not None:
        assert (fast.ids, fast.labels) == (found.ids, found.labels)
        assert str(fast.texts) == str(found.texts)
        np.testing.assert_array_equal(_dense(fast), _dense(found))
    pairs = arrow_tables.read_edges_csv(edges, found.ids, COLUMNS, form)
    expected = text_tables.read_edges(edges, found.ids, COLUMNS, form)
    if pairs is not None:
        np.testing.assert_array_equal(pairs, expected)


def _dense(nodes: tables.Nodes) -> np.ndarray:
    features = nodes.features
    return features if isinstance(features, np.ndarray) else features.toarray()


def _tables(random: Random) -> dict:
    import pyarrow as pa

    found = {}
    for name, (header, *rows) in content(random).items():
        columns = [list(column) for column in zip(*rows, strict=True)]
        found[name] = pa.table(dict(zip(header, columns, strict=True)))
    nodes = found["nodes"]
    for at, name in enumerate("ab", 2):
        nodes = nodes.set_column(at, name, nodes[name].cast(pa.float64()))
    return found | {"nodes": nodes}


def make_arrow(suffix: str):
    """Returns a function that writes two tables of a format."""

    def make(folder: pathlib.Path) -> None:
        for name, table in _tables(np.random.default_rng(0)).items():
            _save(folder / f"{name}{suffix}", table)

    return make


def _save(path: pathlib.Path, table) -> None:
    from pyarrow import feather, parquet

    write = parquet.write_table if path.suffix == ".parquet" else feather.write_feather
    write(table, path)


def change_arrow(suffix: str):
    """Returns a function that changes bytes, or a column, of one of the tables."""

    def change(folder: pathlib.Path, random: Random) -> None:
        name = ("nodes", "edges")[int(random.integers(2))]
        path = folder / f"{name}{suffix}"
        if random.random() < 0.6:
            path.write_bytes(fuzz_readers.mutate(path.read_bytes(), random))
            return
        table = _tables(random)[name]
        at = int(random.integers(table.num_columns))
        names = (table.column_names[at], "", "id", "a.b", "label", "é")
        column = odd_column(table.num_rows, random)
        chosen = names[int(random.integers(len(names)))]
        _save(path, table.set_column(at, chosen, column))

    return change


def odd_column(rows: int, random: Random):
    """A column of some type, with entries that are missing or odd."""
    import pyarrow as pa

    ones = [1.0] * rows
    kinds = (
        pa.array([1.5, float("inf"), float("nan"), None] * (rows // 4), pa.float64()),
        pa.array(np.arange(rows), pa.int64()),
        pa.array([2**63] * rows, pa.uint64()),
        pa.array([True, None] * (rows // 2)),
        pa.array(["n1", "", None, "1_0"] * (rows // 4)),
        pa.array(["x", "y"] * (rows // 2)).dictionary_encode(),
        pa.array([b"\xff"] * rows),
        pa.array([[1.0, 2.0]] * rows),
        pa.array([{"a": 1}] * rows),
        pa.array([None] * rows),
        pa.array(ones, pa.float16()),
        pa.array(ones).cast(pa.decimal128(38, 3)),
        pa.array([0] * rows, pa.timestamp("s")),
        pa.array([0] * rows, pa.duration("ms")),
    )
    return kinds[int(random.integers(len(kinds)))]


def read_arrow(suffix: str):
    """Returns a function that reads both tables as a fit would."""

    def read(folder: pathlib.Path) -> None:
        found = tables.read_nodes(folder / f"nodes{suffix}", COLUMNS)
        tables.read_edges(folder / f"edges{suffix}", found.ids, COLUMNS)
        try:
            tables.read_nodes(folder / f"nodes{suffix}")
        except InputError:
            return

    return read
