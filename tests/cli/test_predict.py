"""The command oodgat: tables in, predictions out, one sentence for every mistake."""

import csv
import importlib.metadata
import os
import pathlib
import re
import shlex

import numpy as np
import pytest
import scipy.sparse
from support import binaries, forking, synthetic

from oodgat_jax.datasets.readers import tables
from oodgat_jax.report import projection
from oodgat_jax.types import InputError

SETTINGS = {"max_steps": 11, "hidden": 8, "heads": 2}
QUICK = (*(f"--set={name}={value}" for name, value in SETTINGS.items()), "--members=2")


def oodgat(folder, *flags):
    command = "-m", "oodgat_jax.cli.predict", *flags
    return forking.run(*command, cwd=folder, env=os.environ | binaries.QUICK)


@pytest.fixture(scope="module")
def made():
    return synthetic.generate(200, 1600, 8, signal=2.0, seed=3)


def write_tables(folder, made, labels=True, bom=False):
    """nodes.csv with ids n0, n1, ...; every tenth node is labeled, classes 0 to 3."""
    with open(folder / "nodes.csv", "w", encoding="utf-8-sig" if bom else None) as file:
        names = [f"x{k}" for k in range(8)]
        writer = csv.writer(file)
        writer.writerow(["id", *(["label"] if labels else []), *names])
        for node, row in enumerate(made.features):
            known = made.labels[node] < 4 and node < 100
            label = [f"ä{made.labels[node]}" if known else ""]
            writer.writerow([f"n{node}", *(label if labels else []), *row.tolist()])
    with open(folder / "edges.csv", "w") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        pairs = zip(made.senders, made.receivers, strict=True)
        writer.writerows((f"n{a}", f"n{b}") for a, b in pairs)


@pytest.fixture(scope="module")
def done(made, tmp_path_factory):
    """A folder in which the command ran, and what it said."""
    folder = tmp_path_factory.mktemp("own")
    write_tables(folder, made, bom=True)
    flags = ("--nodes=nodes.csv", "--edges=edges.csv", "--out=out/p.csv")
    return folder, oodgat(folder, *flags, "--save=model", *QUICK)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_tables_in_predictions_out(made, done):
    folder, ran = done
    assert ran.returncode == 0, ran.stderr
    rows = read(folder / "out" / "p.csv")
    assert [row["id"] for row in rows] == [f"n{node}" for node in range(200)]
    assert list(rows[0]) == [
        *("id", "prediction", "score", "spread"),
        *("p_ä0", "p_ä1", "p_ä2", "p_ä3"),
    ]
    assert {row["prediction"] for row in rows} <= {"unknown", "ä0", "ä1", "ä2", "ä3"}
    unknown = sum(row["prediction"] == "unknown" for row in rows)
    assert f"200 nodes, 8 features; {unknown} (" in ran.stdout
    assert "Only 16 labeled nodes could be held out, too few to say" in ran.stdout
    assert "confidence" not in ran.stdout
    assert (folder / "out" / "p.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "p.csv",
        "p.png",
    ]


def test_a_saved_model_predicts_without_labels(made, done, tmp_path):
    folder, _ = done
    write_tables(tmp_path, made, labels=False)
    flags = ("--nodes=nodes.csv", "--edges=edges.csv", "--out=again.npz")
    ran = oodgat(tmp_path, f"--model={folder / 'model'}", *flags)
    assert ran.returncode == 0, ran.stderr
    before = read(folder / "out" / "p.csv")
    with np.load(tmp_path / "again.npz") as file:
        np.testing.assert_allclose(
            file["score"], [float(row["score"]) for row in before], atol=1e-5
        )
        shown = ["unknown" if name == "-1" else name for name in file["prediction"]]
    assert shown == [row["prediction"] for row in before]


def test_npz_in(made, tmp_path):
    labels = np.where((made.labels < 4) & (np.arange(200) < 100), made.labels, -1)
    sparse = scipy.sparse.csr_array(made.features)
    np.savez(
        tmp_path / "graph.npz",
        data=sparse.data,
        indices=sparse.indices,
        indptr=sparse.indptr,
        shape=sparse.shape,
        edges=np.stack([made.senders, made.receivers], 1),
        labels=labels,
    )
    quick = [flag for flag in QUICK if "heads" not in flag]  # mlp has none
    ran = oodgat(tmp_path, "--nodes=graph.npz", "--method=mlp", *quick)
    assert ran.returncode == 0, ran.stderr
    predicted = {row["prediction"] for row in read(tmp_path / "predictions.csv")}
    assert predicted <= {"unknown", "0", "1", "2", "3"}


NODES = "id,label,a,b\nx,k,1,2\ny,k,2,1\nz,l,3,3\nu,l,3,4\nv,,0,0\n"
EDGES = "source,target\nx,y\nz,v\n"
MISTAKES = {
    "no id column": ("name,a\nx,1\n", EDGES, (), "no column 'id' (it has name, a)"),
    "no source": (NODES, "from,target\nx,y\n", (), "no column 'source'"),
    "no features": ("id,label\nx,k\n", EDGES, (), "no column of features"),
    "text among numbers": (NODES + "w,,red,1\n", EDGES, (), "line 7: column 'a'"),
    "NaN": (NODES + "w,,nan,1\n", EDGES, (), "'nan', which is not a finite number"),
    "infinity": (NODES + "w,,1e999,1\n", EDGES, (), "'1e999'"),
    "empty cell": (NODES + "w,,,1\n", EDGES, (), "holds ''"),
    "too many cells": (NODES + "w,,1,2,3\n", EDGES, (), "line 7 has 5 cells"),
    "too few cells": (NODES + "w,,1\n", EDGES, (), "line 7 has 3 cells"),
    "edge to nowhere": (NODES, EDGES + "x,nobody\n", (), "line 4: the edge names node"),
    "id twice": (NODES + "x,,1,1\n", EDGES, (), "line 7: node 'x' is there twice"),
    "column twice": ("id,a,a\nx,1,1\n", EDGES, (), "two columns 'a'"),
    "one class": (NODES.replace(",l,", ",k,"), EDGES, (), "class 'k'"),
    "single node": (NODES.replace("u,l", "u,"), EDGES, (), "'l' has a single"),
    "all labeled": (NODES.replace("v,,", "v,k,"), EDGES, (), "Every node has a label"),
    "no labels": ("id,a\nx,1\n", EDGES.replace("z,v", "x,x"), (), "node 'y'"),
    "label column": (NODES, EDGES, ("--label_column=kind",), "column 'label' holds"),
    "empty file": ("", EDGES, (), "nodes.csv is empty"),
    "only a header": ("id,a\n", EDGES, (), "no row after its header"),
    "open quote": ('id,a\n"x,1\n', EDGES, (), "is not a table"),
    "other encoding": (NODES.replace("x,k", "é,k").encode("latin-1"), EDGES, (), "utf"),
    "no encoding": (NODES, EDGES, ("--encoding=klingon",), "'klingon'"),
    "delimiter": (NODES, EDGES, ("--delimiter=ab",), "one character, not 'ab'"),
    "one column for both": (NODES, EDGES, ("--source_column=target",), "two columns"),
    "no verdict": (NODES, EDGES, ("--verdict=",), "--verdict needs a word"),
    "nothing to ignore": (NODES, EDGES, ("--ignore=c",), "no column 'c'"),
    "no such nodes": (NODES, EDGES, ("--nodes=none.csv",), "none.csv cannot be read"),
    "no such edges": (NODES, EDGES, ("--edges=none.csv",), "none.csv cannot be read"),
    "no edges flag": (NODES, EDGES, ("--edges=",), "--edges"),
    "no nodes flag": (NODES, EDGES, ("--nodes=",), "--nodes"),
    "no such model": (NODES, EDGES, ("--model=none",), "none is not a saved model"),
    "model and save": (NODES, EDGES, ("--model=m", "--save=n"), "--save"),
    "other suffix": (NODES, EDGES, ("--out=p.xlsx",), "'p.xlsx'"),
    "out is nodes": (NODES, EDGES, ("--out=./nodes.csv",), "overwrite --nodes"),
    "out is edges": (NODES, EDGES, ("--out=edges.csv",), "overwrite --edges"),
    "picture is nodes": (NODES, EDGES, ("--picture=nodes.csv",), "must end in .png"),
    "threshold": (NODES, EDGES, ("--threshold=high",), "'high'"),
    "setting": (NODES, EDGES, ("--set=speed",), "'speed' is not a setting"),
    "npz of pickles": (
        NODES,
        EDGES,
        ("--nodes=bad.npz", "--edges="),
        "bad.npz is not an npz",
    ),
    "not an npz": (
        NODES,
        EDGES,
        ("--nodes=text.npz", "--edges="),
        "text.npz is not an npz",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_every_mistake_is_one_sentence(tmp_path, name, monkeypatch):
    """In this process, as each start of Python would take seconds."""
    nodes, edges, flags, sentence = MISTAKES[name]
    raw = nodes if isinstance(nodes, bytes) else nodes.encode()
    (tmp_path / "nodes.csv").write_bytes(raw)
    (tmp_path / "edges.csv").write_text(edges)
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "bad.npz", features=np.array([{}], object))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as raised:
        run_main(["--nodes=nodes.csv", "--edges=edges.csv", *flags])
    text = str(raised.value)
    assert sentence in text
    assert "\n" not in text
    assert not (tmp_path / "predictions.csv").exists()
    assert (tmp_path / "nodes.csv").read_bytes() == raw
    assert (tmp_path / "edges.csv").read_text() == edges


def run_main(arguments):
    """`predict.main` with fresh flags."""
    from absl import flags

    from oodgat_jax.cli import predict, predict_flags

    values = flags.FlagValues()
    given = predict_flags.define(None, values)
    values(["oodgat", *arguments])
    predict.main(given)


def test_a_mistake_ends_with_exit_code_2(tmp_path):
    ran = oodgat(tmp_path, "--nodes=none.csv", "--edges=none.csv")
    assert ran.returncode == 2
    assert ran.stderr.strip().count("\n") == 0
    assert "none.csv cannot be read" in ran.stderr


def test_columns_by_name_and_tabs(tmp_path):
    (tmp_path / "n.tsv").write_text("who\tkind\tnote\ta\nx\tk\thi\t1\n")
    (tmp_path / "e.tsv").write_text("from\tto\nx\tx\n")
    columns = tables.Columns("who", "kind", "from", "to", ("note",))
    nodes = tables.read_nodes(tmp_path / "n.tsv", columns)
    assert (nodes.ids, nodes.labels, nodes.names) == (["x"], ["k"], ["a"])
    edges = tables.read_edges(tmp_path / "e.tsv", nodes.ids, columns)
    assert edges.tolist() == [[0, 0]]


def test_help_describes_the_format():
    ran = oodgat(".", "--help")
    assert ran.returncode == 0
    assert "nodes.csv has a row per node" in ran.stdout
    assert "--label_column" in ran.stdout


TUTORIAL = pathlib.Path(__file__).parent.parent.parent / "docs" / "own_graph.md"


def test_the_tutorial_runs(tmp_path, monkeypatch):
    """Its Python and its commands, in order, with fewer steps and units.

    Both in this process, which compiles once what they have in common.
    """
    text = TUTORIAL.read_text(encoding="utf-8")
    parts = re.findall(
        r"<!-- run -->\n```python\n(.*?)```|```\n(oodgat .*?)\n```", text, re.DOTALL
    )
    assert len(parts) == 8
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(projection, "TSNE_MOST", 200)
    names: dict = {}
    for code, command in parts:
        if code:
            fewer = code.replace("members=2,", f"members=2, settings={SETTINGS},")
            exec(fewer, names)
        else:
            flags = shlex.split(command)[1:]
            more = () if "--model=model" in flags else QUICK
            ending = binaries.call_module(
                "oodgat_jax.cli.predict", *flags, *more, cache=tmp_path / "cache"
            )
            assert ending[0] == 0, ending
    first, again = (tmp_path / name for name in ("predictions.csv", "again.csv"))
    assert first.read_text() == again.read_text()
    assert names["model"].report_.unlabeled == (~names["labeled"]).sum()


def test_the_command_is_installed():
    entry = importlib.metadata.entry_points(group="console_scripts", name="oodgat")
    assert [point.value for point in entry] == ["oodgat_jax.cli.predict:console"]


def test_a_large_table_is_read_whole(tmp_path):
    draw = np.random.default_rng(0)
    pairs = draw.integers(5_000, size=(200_000, 2))
    lines = "\n".join(f"n{a},n{b}" for a, b in pairs)
    (tmp_path / "edges.csv").write_text(f"source,target\n{lines}\n")
    ids = [f"n{node}" for node in range(5_000)]
    np.testing.assert_array_equal(tables.read_edges(tmp_path / "edges.csv", ids), pairs)
