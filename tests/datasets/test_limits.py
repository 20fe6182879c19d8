"""Small files that claim to hold gigabytes, and indices that point nowhere."""

import gzip
import io
import pickle
import resource
import zipfile

import numpy as np
import pytest
import scipy.sparse
from support import forking

from oodgat_jax.datasets import limits
from oodgat_jax.datasets.readers import npz, ogb, planetoid, tables
from oodgat_jax.types import InputError

GIGABYTE = 1 << 30


@pytest.fixture(autouse=True)
def forget():
    yield
    limits._chosen.clear()


def save(path, **replaced):
    """A user's graph in CSR form, with some arrays replaced."""
    matrix = scipy.sparse.csr_array(np.eye(6, 4, dtype=np.float32))
    names = ("data", "indices", "indptr", "shape")
    content = {name: np.asarray(getattr(matrix, name)) for name in names}
    content |= {"edges": np.array([[0, 1]]), "labels": np.array([0, 0, 1, 1, -1, -1])}
    np.savez_compressed(path, **(content | replaced))


WRONG = {
    "index too large": {"indices": np.array([0, 1, 2, 4])},
    "index far too large": {"indices": np.array([0, 1, 2, 2**40])},
    "index below zero": {"indices": np.array([0, 1, 2, -1])},
    "index of fractions": {"indices": np.array([0.0, 1, 2, 3])},
    "too few indices": {"indices": np.array([0, 1])},
    "indptr too large": {"indptr": np.array([0, 1, 2, 3, 4, 4, 2**40])},
    "indptr below zero": {"indptr": np.array([0, -5, 2, 3, 4, 4, 4])},
    "indptr falling": {"indptr": np.array([0, 3, 2, 3, 4, 4, 4])},
    "indptr too short": {"indptr": np.array([0, 1, 4])},
    "indptr of no end": {"indptr": np.array([1, 1, 2, 3, 4, 4, 4])},
    "shape of trillions": {"shape": np.array([6, 2**40])},
    "shape of more rows": {"shape": np.array([2**40, 4])},
    "shape below zero": {"shape": np.array([6, -4])},
    "shape of one": {"shape": np.array([6])},
    "data of text": {"data": np.array(["a", "b", "c", "d"])},
    "data of two axes": {"data": np.ones((2, 2))},
    "features of one axis": {"features": np.ones(6)},
    "features of no axis": {"features": np.float32(3)},
    "complex features": {"features": np.ones((6, 2), complex)},
    "labels of two axes": {"labels": np.ones((6, 1))},
    "too few ids": {"ids": np.array(["a"])},
    "ids twice": {"ids": np.array(["a"] * 6)},
    "characters that do not exist": {"ids": np.array([2**21] * 6, "u4").view("U1")},
    "half characters": {"labels": np.array([0xD800] * 6, "u4").view("U1")},
    "names of two axes": {"feature_names": np.array([["a", "b", "c", "d"]])},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_npz_is_one_sentence(tmp_path, name):
    save(tmp_path / "graph.npz", **WRONG[name])
    with pytest.raises(InputError, match=r"graph\.npz") as raised:
        tables.read_npz(tmp_path / "graph.npz")
    assert "\n" not in str(raised.value)


def test_a_right_npz_is_read(tmp_path):
    save(tmp_path / "graph.npz", feature_names=np.array(["a", "b", "c", "d"]))
    nodes, edges = tables.read_npz(tmp_path / "graph.npz")
    np.testing.assert_array_equal(nodes.features.toarray(), np.eye(6, 4))
    assert (nodes.names, nodes.ids[5]) == (["a", "b", "c", "d"], "5")
    assert edges.tolist() == [[0, 1]]


def header(shape):
    """An npy file whose header promises this shape and which ends there."""
    out = io.BytesIO()
    content = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, content)
    return out.getvalue()


@pytest.mark.parametrize("shape", [(2**20, 2**20), (-1, 4), (3,)])
def test_an_array_is_no_larger_than_its_bytes(tmp_path, shape):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("features.npy", header(shape))
    with pytest.raises(ValueError, match=r"shape|header"):
        npz.read(tmp_path / "a.npz")


def test_what_unpacks_to_gigabytes_is_refused_and_can_be_allowed(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, features=np.zeros(4 << 20, np.float32))
    monkeypatch.setenv(limits.VARIABLE, "8")
    with pytest.raises(InputError, match=r"more than 8 MB: .*--max_unpacked_mb"):
        npz.read(path)
    limits.set_unpacked_mb(16 + 1)
    assert npz.read(path)["features"].size == 4 << 20
    monkeypatch.setenv(limits.VARIABLE, "lots")
    limits._chosen.clear()
    with pytest.raises(InputError, match="whole number of megabytes, not 'lots'"):
        npz.read(path)


def test_a_large_file_may_be_as_large_as_it_is(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", features=np.zeros(4 << 20, np.float32))
    monkeypatch.setenv(limits.VARIABLE, "1")
    assert npz.read(tmp_path / "a.npz")["features"].nbytes == 16 << 20


def doubled(depth):
    """[[..], [..]] with the same list twice at every depth, as a small pickle."""
    nested = []
    for _ in range(depth):
        nested = [nested, nested]
    return pickle.dumps({0: nested}, protocol=2)


def many_copies(count):
    """list(l) of one list again and again."""
    items = b"(" + b"K\x01" * count + b"l"
    copies = b"c__builtin__\nlist\nh\x00\x85R" * count
    return b"\x80\x02" + items + b"q\x00" + b"(" + copies + b"t."


LIMITED = """
import pathlib, resource, sys
from oodgat_jax.datasets.readers import planetoid
from oodgat_jax.types import InputError
path = pathlib.Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
try:
    planetoid._links(path, 9)
except InputError as error:
    print(error)
# Not ru_maxrss, which a process has from the one that started it.
status = pathlib.Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else ["VmHWM: 0 kB"]
print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize(
    "content",
    [
        doubled(40),
        many_copies(20_000),
    ],
    ids=["doubled", "copied"],
)
def test_a_small_pickle_takes_little_memory(tmp_path, content):
    path = tmp_path / "ind.cora.graph"
    path.write_bytes(content)
    done = forking.run("-c", LIMITED, path)
    assert done.returncode == 0, done.stderr
    sentence, peak = done.stdout.splitlines()
    assert "ind.cora.graph" in sentence
    assert int(peak) < 1 << 20  # kilobytes


def test_lists_stored_once_and_named_often_are_refused(tmp_path):
    neighbors = list(range(9)) * 100
    content = pickle.dumps(dict.fromkeys(range(9), neighbors), protocol=2)
    (tmp_path / "graph").write_bytes(content)
    with pytest.raises(InputError, match="more neighbors than bytes"):
        planetoid._links(tmp_path / "graph", 9)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "node-label.csv.gz"
    path.write_bytes(gzip.compress(b"1," * (40 << 20)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="a line of more than 16 MB"):
        list(ogb._blocks(path, np.float64))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < GIGABYTE >> 10


def test_lines_beyond_those_announced_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(ogb, "CHUNK", 100)
    (tmp_path / "n.csv.gz").write_bytes(gzip.compress(b"1\n" * 100_000))
    with pytest.raises(InputError, match="does not hold one number"):
        ogb._single(tmp_path / "n.csv.gz")
    with pytest.raises(InputError, match="holds 50 nodes where 7 were announced"):
        ogb._labels(tmp_path / "n.csv.gz", 7)


def test_a_gz_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(limits.VARIABLE, "1")
    (tmp_path / "n.csv.gz").write_bytes(gzip.compress(b"1\n" * (4 << 20)))
    with pytest.raises(InputError, match="more than 1 MB"):
        list(ogb._blocks(tmp_path / "n.csv.gz", np.int64))
