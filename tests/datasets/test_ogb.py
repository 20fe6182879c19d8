"""Graphs in OGB's file layout, from small files made here."""

import gzip

import numpy as np
import pytest

from oodgat_jax.datasets import streaming
from oodgat_jax.datasets.readers import ogb
from oodgat_jax.types import InputError

EDGES = [(0, 1), (2, 1), (3, 0), (3, 4), (4, 4), (5, 2)]
FEATURES = np.arange(12, dtype=np.float32).reshape(6, 2) / 4
LABELS = ["0", "1", "2", "nan", "3", "0"]


def write(folder, name, lines):
    path = folder / "raw" / f"{name}.csv.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "ogbn_tiny"
    write(folder, "num-node-list", [6])
    write(folder, "num-edge-list", [len(EDGES)])
    write(folder, "edge", [f"{a},{b}" for a, b in EDGES])
    write(folder, "node-feat", [",".join(map(str, row)) for row in FEATURES])
    write(folder, "node-label", LABELS)
    return folder


def edges_into(part):
    return set(zip(part.senders.tolist(), part.receivers.tolist(), strict=True))


def test_labels_and_classes(folder):
    graph = ogb.open_folder(folder)
    assert graph.name == "ogbn-tiny"
    assert graph.labels.tolist() == [0, 1, 2, -1, 3, 0]
    assert graph.id_classes == (0, 1)
    assert ogb.open_folder(folder, [3, 1]).id_classes == (1, 3)


def test_a_part_is_its_nodes_and_the_edges_into_them(folder):
    part = ogb.open_folder(folder).read(1, 4)
    np.testing.assert_array_equal(part.features, FEATURES[1:4])
    loops = {(1, 1), (2, 2), (3, 3)}
    assert edges_into(part) == loops | {(0, 1), (2, 1), (1, 2), (5, 2), (0, 3), (4, 3)}


def test_directed_edges_go_as_stored(folder):
    part = ogb.open_folder(folder, directed=True).read(1, 4)
    assert edges_into(part) == {(1, 1), (2, 2), (3, 3), (0, 1), (2, 1), (5, 2)}


def test_parts_make_the_whole_however_files_are_cut(folder, monkeypatch):
    whole = streaming.in_memory(ogb.open_folder(folder))
    monkeypatch.setattr(ogb, "CHUNK", 5)  # characters: lines are cut in two
    graph = ogb.open_folder(folder)
    pieces = [graph.read(0, 2), graph.read(2, 6)]
    np.testing.assert_array_equal(
        np.concatenate([part.features for part in pieces]), whole.features
    )
    found = {edge for part in pieces for edge in edges_into(part) if len(set(edge)) > 1}
    ends = (whole.senders.tolist(), whole.receivers.tolist())
    assert found == set(zip(*ends, strict=True))


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("edge", ["0,1", "2,9", "0,1", "0,1", "0,1", "0,1"], "node 9"),
        ("edge", ["0,1"], "1 edges where 6"),
        ("edge", ["0,1,2"], "3 numbers"),
        ("node-feat", ["1,2", "3,4"], "2 nodes where 6"),
        ("node-feat", ["1,2", "3,x"], "cannot be read"),
        ("node-feat", ["1,nan"] * 6, "not finite"),
        ("num-edge-list", ["1", "2"], "one number"),
    ],
)
def test_what_does_not_fit_is_named(folder, name, lines, message):
    write(folder, name, lines)
    with pytest.raises(InputError, match=message) as error:
        ogb.open_folder(folder).read(0, 6)
    assert f"{name}.csv.gz" in str(error.value)


def test_wrong_labels_classes_and_missing_files_are_named(folder):
    with pytest.raises(InputError, match="some, and not all"):
        ogb.open_folder(folder, [0, 1, 2, 3])
    write(folder, "node-label", ["0.5"] * 6)
    with pytest.raises(InputError, match="whole numbers"):
        ogb.open_folder(folder)
    (folder / "raw" / "node-label.csv.gz").unlink()
    with pytest.raises(InputError, match="does not exist"):
        ogb.open_folder(folder)
