"""A user's tables: every format is read alike, every mistake names its place."""

import bz2
import gzip
import importlib.util
import lzma
import sys

import numpy as np
import pytest
import scipy.sparse

from oodgat_jax.datasets.readers import graph_files, tables, text_tables
from oodgat_jax.types import InputError

HAS_ARROW = importlib.util.find_spec("pyarrow") is not None
needs_arrow = pytest.mark.skipif(not HAS_ARROW, reason="needs pyarrow")
needs_networkx = pytest.mark.skipif(
    importlib.util.find_spec("networkx") is None, reason="needs networkx"
)
NODES = (
    "id,label,a,b,color\n"
    "x,k,1.5,2,red\n"
    "y,,,1,blue\n"
    "z,l,-3e-2,NaN,\n"
    '"u,v", l ,7,0,red\n'
    "ä,,1e3,4,green\n"
)
EDGES = 'source,target,weight\nx,y,0.5\nz,"u,v",1\nä,ä,2\n'
PAIRS = [[0, 1], [2, 3], [4, 4]]
COLOR = tables.Columns(ignore=("a", "b"), categorical=("color",))
COLUMNS = tables.Columns(categorical=("color",), may_lack=True)
PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def zstandard(content):
    import pyarrow as pa

    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as packed:
        packed.write(content)
    return out.getvalue().to_pybytes()


def as_arrow(path, text, **types):
    """Writes the table of a text in the format of the path's name."""
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    options = csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    table = csv.read_csv(pa.BufferReader(text.encode()), convert_options=options)
    write = parquet.write_table if path.suffix == ".parquet" else feather.write_feather
    write(table, path)


FORMATS = ["n.csv", "n.tsv", "n.csv.gz", "n.csv.bz2", "n.csv.xz"]
ARROW_FORMATS = ["n.csv.zst", "n.parquet", "n.feather", "n.parquet.gz"]


def write(folder, name, text=NODES):
    path = folder / name
    if ".tsv" in name:
        text = text.replace('"u,v"', "u;v").replace(",", "\t").replace("u;v", "u,v")
    if ".parquet" in name or ".feather" in name:
        plain = path.with_suffix("") if path.suffix in PACKERS else path
        as_arrow(plain, text)
        if plain != path:
            path.write_bytes(gzip.compress(plain.read_bytes()))
    else:
        packers = {**PACKERS, ".zst": zstandard}
        pack = packers.get(path.suffix, lambda content: content)
        path.write_bytes(pack(text.encode()))
    return path


@pytest.mark.parametrize("large", [0, tables.LARGE])
@pytest.mark.parametrize(
    "name", [*FORMATS, *(pytest.param(n, marks=needs_arrow) for n in ARROW_FORMATS)]
)
def test_every_format_is_read_alike(tmp_path, monkeypatch, name, large):
    monkeypatch.setattr(tables, "LARGE", large)
    nodes = tables.read_nodes(write(tmp_path, name), COLUMNS)
    assert nodes.ids == ["x", "y", "z", "u,v", "ä"]
    assert nodes.labels == ["k", "", "l", "l", ""]
    assert nodes.names == ["a", "b"]
    expected = [[1.5, 2], [np.nan, 1], [-0.03, np.nan], [7, 0], [1000, 4]]
    np.testing.assert_array_equal(nodes.features, np.array(expected, np.float32))
    color = nodes.texts["color"]
    assert color.values == ["blue", "green", "red"]
    assert color.codes.tolist() == [2, 0, -1, 2, 1]
    edges = write(tmp_path, name.replace("n.", "e."), EDGES)
    assert tables.read_edges(edges, nodes.ids).tolist() == PAIRS
    assert tables.unused_columns(edges) == ["weight"]


@needs_arrow
def test_both_readers_of_csv_agree_bit_for_bit(tmp_path):
    """Quotes, line ends in cells, white space; odd numbers go to the slower reader."""
    from oodgat_jax.datasets.readers import arrow_tables

    draw = np.random.default_rng(0)
    numbers = draw.normal(size=(3000, 2)) * 10.0 ** draw.integers(-30, 30, (3000, 2))
    rows = [
        f'"n\n{k}", k{k % 3} , {a!r},{b:.3g}'
        for k, (a, b) in enumerate(numbers.tolist())
    ]
    path = tmp_path / "n.csv"
    path.write_text("id,label,a,b\n" + "\r\n".join(rows) + "\n\n", newline="")
    columns, form = tables.Columns(), tables.Format()
    fast = arrow_tables.read_nodes_csv(path, columns, form)
    slow = text_tables.read_nodes(path, columns, form)
    assert fast is not None
    assert (fast.ids, fast.labels) == (slow.ids, slow.labels)
    np.testing.assert_array_equal(fast.features, slow.features)
    path.write_text("id,a\nx,\u0661\n")  # a digit to Python alone
    assert arrow_tables.read_nodes_csv(path, columns, form) is None


MISTAKES = {
    "underscore": ("y,,,1,blue", "y,,1_000,1,blue", "line 3: column 'a' holds '1_000'"),
    "text": ("1.5", "one", "line 2: column 'a' holds 'one'"),
    "infinite": ("1e3", "1e39", "line 6: column 'a' holds '1e39'"),
    "too long": ("1e3,", "1e3,1,", "line 6 has 6 cells, but the header has 5"),
    "twice": ("ä,", "x,", "line 6: node 'x' is there twice"),
}


@pytest.mark.parametrize("large", [0, tables.LARGE])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_text_names_line_and_column(tmp_path, monkeypatch, name, large):
    monkeypatch.setattr(tables, "LARGE", large)
    old, new, sentence = MISTAKES[name]
    path = write(tmp_path, "n.csv.gz", NODES.replace(old, new))
    with pytest.raises(InputError, match=sentence) as raised:
        tables.read_nodes(path, COLUMNS)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("large", [0, tables.LARGE])
def test_missing_values_and_text_say_what_to_do(tmp_path, monkeypatch, large):
    monkeypatch.setattr(tables, "LARGE", large)
    path = write(tmp_path, "n.csv")
    with pytest.raises(InputError, match=r"line 2: column 'color' .*--categorical=col"):
        tables.read_nodes(path)
    with pytest.raises(InputError, match=r"line 3: column 'a' holds ''.*--missing=mea"):
        tables.read_nodes(path, tables.Columns(ignore=("color",)))
    with pytest.raises(InputError, match=r"line 4: the categorical .* --missing=zero"):
        tables.read_nodes(
            path, tables.Columns(ignore=("a", "b"), categorical=("color",))
        )
    with pytest.raises(InputError, match="no column 'size' to encode"):
        tables.read_nodes(path, tables.Columns(categorical=("size",)))


@needs_arrow
@pytest.mark.parametrize("name", ["n.parquet", "n.feather"])
def test_a_mistake_in_arrow_names_row_and_column(tmp_path, name):
    path = write(tmp_path, name)
    with pytest.raises(InputError, match="row 2: column 'a' holds ''"):
        tables.read_nodes(path)
    with pytest.raises(InputError, match=r"row 1: column 'color' holds the text 'red'"):
        tables.read_nodes(path, tables.Columns(ignore=("a", "b")))
    with pytest.raises(InputError, match="row 3: the categorical column 'color' is em"):
        tables.read_nodes(
            path, tables.Columns(ignore=("a", "b"), categorical=("color",))
        )
    twice = write(tmp_path, name, NODES.replace("ä,", "x,"))
    with pytest.raises(InputError, match="row 5: node 'x' is there twice"):
        tables.read_nodes(twice, COLUMNS)
    edges = write(tmp_path, name.replace("n.", "e."), EDGES)
    with pytest.raises(InputError, match="row 2: the edge names node 'z'"):
        tables.read_edges(edges, ["x", "y", "u,v", "ä"])
    path.write_bytes(b"hello")
    with pytest.raises(InputError, match=f"is not a {path.suffix[1:]} table"):
        tables.read_nodes(path)


@needs_arrow
def test_ids_and_labels_may_be_numbers(tmp_path):
    import pyarrow as pa

    path = tmp_path / "n.parquet"
    text = "id,label,a\n1,1,0.5\n2,,1\n3,2,1\n"
    as_arrow(path, text, label=pa.float64())  # as pandas writes whole numbers with gaps
    nodes = tables.read_nodes(path)
    assert (nodes.ids, nodes.labels) == (["1", "2", "3"], ["1", "", "2"])
    as_arrow(path, text, id=pa.float64())
    with pytest.raises(InputError, match="'id' is of type double, where text or whole"):
        tables.read_nodes(path)


def test_a_damaged_or_huge_archive_is_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "n.csv.gz"
    path.write_bytes(gzip.compress(NODES.encode())[:-20])
    with pytest.raises(InputError, match="cannot be unpacked"):
        tables.read_nodes(path, COLUMNS)
    monkeypatch.setenv("OODGAT_MAX_UNPACKED_MB", "1")
    path.write_bytes(gzip.compress(NODES.encode() + b"\n" * (3 << 20)))
    with pytest.raises(InputError, match="unpacks to more than 1 MB"):
        tables.read_nodes(path, COLUMNS)


def test_without_the_extra_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "networkx", None)
    sentence = r"only with {}: install it with pip install 'oodgat-jax\[tables\]'"
    with pytest.raises(InputError, match=sentence.format("pyarrow")):
        tables.read_nodes(tmp_path / "n.parquet")
    with pytest.raises(InputError, match=sentence.format("networkx")):
        tables.read_edges(tmp_path / "e.graphml", ["x"])


def test_features_of_scipy_and_a_table_of_ids(tmp_path):
    matrix = scipy.sparse.random_array((5, 9), density=0.3, rng=0)
    nodes = tables.read_nodes(write(tmp_path, "n.csv"), bare=True)
    path = tmp_path / "x.npz"
    for form in ("csr", "csc"):
        scipy.sparse.save_npz(path, matrix.asformat(form))
        found = tables.read_features(path, nodes)
        np.testing.assert_allclose(found.features.toarray(), matrix.toarray())
        assert (found.ids, found.labels) == (nodes.ids, nodes.labels)
    scipy.sparse.save_npz(path, matrix.tocoo())
    with pytest.raises(InputError, match=r"no array 'features'|of format 'coo'"):
        tables.read_features(path, nodes)
    scipy.sparse.save_npz(path, scipy.sparse.csr_array(matrix.toarray()[:3]))
    with pytest.raises(InputError, match="3 nodes, but the table of nodes has 5 rows"):
        tables.read_features(path, nodes)


def test_an_edge_list_is_read(tmp_path):
    path = tmp_path / "e.edgelist"
    path.write_text("# comment\nx y 0.5\n\nz u 1\n")
    ids = ["x", "y", "z", "u"]
    assert tables.read_edges(path, ids).tolist() == [[0, 1], [2, 3]]
    assert tables.unused_columns(path) == ["3"]
    with pytest.raises(InputError, match="line 4: the edge names node 'u'"):
        tables.read_edges(path, ids[:3])
    path.write_text("x y\nz\n")
    with pytest.raises(InputError, match="line 2 names one node"):
        tables.read_edges(path, ids)


@needs_networkx
def test_graphml_holds_a_graph_or_its_edges(tmp_path):
    import networkx as nx

    graph = nx.Graph()
    graph.add_node("x", label="k", a=1.5, color="red")
    graph.add_node("y", a=2.0, color="blue")
    graph.add_edge("x", "y", weight=3.0)
    path = tmp_path / "g.graphml"
    nx.write_graphml(graph, path)
    columns = tables.Columns(categorical=("color",))
    nodes, edges = graph_files.read_graphml(path, columns)
    assert (nodes.ids, nodes.labels, nodes.names) == (["x", "y"], ["k", ""], ["a"])
    assert nodes.features.tolist() == [[1.5], [2.0]]
    assert nodes.texts["color"].codes.tolist() == [1, 0]
    assert edges.tolist() == [[0, 1]]
    assert tables.read_edges(path, ["y", "x"]).tolist() == [[1, 0]]
    with pytest.raises(InputError, match="names node 'y'"):
        tables.read_edges(path, ["x"])
    with pytest.raises(InputError, match="node 'x': column 'color' holds the text"):
        graph_files.read_graphml(path, tables.Columns())
    graph.add_node("z")
    nx.write_graphml(graph, path)
    with pytest.raises(InputError, match="node 'z': column 'a' holds ''"):
        graph_files.read_graphml(path, tables.Columns(ignore=("color",)))
    path.write_text("<graphml")
    with pytest.raises(InputError, match="is not GraphML"):
        graph_files.read_graphml(path, columns)
