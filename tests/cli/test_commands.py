"""oodgat fit, predict, report, review: each its flags, its output, its JSON."""

import json
import pathlib
import re
import sys

import numpy as np
import pytest
import scipy.sparse
from absl import flags
from support import forking, own_tables
from support.own_tables import FIT, TABLES, read, run, write

from oodgat_jax.cli import progress
from oodgat_jax.estimator import OODGATClassifier
from oodgat_jax.training import Progress
from oodgat_jax.types import InputError

COLORS = ("red", "green", "blue")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder with two tables: a gap and a column of text, edges with weights."""
    rows, ends = own_tables.rows(3)
    rows = [[*row, COLORS[n % 3]] for n, row in enumerate(rows)]
    rows[5][3] = ""
    monkeypatch.chdir(tmp_path)
    write("nodes.csv", ["id", "label", "x0", "x1", "x2", "color"], rows)
    write("edges.csv", ["source", "target", "weight"], [(*e, 0.5) for e in ends])
    return rows


PREPARED = ("--missing=mean", "--categorical=color")


def test_from_a_table_to_new_labels(made, capsys):
    """Fits, predicts the same from the saved model, and feeds a review back."""
    run("fit", *FIT, *PREPARED, "--save=model", "--json")
    said = capsys.readouterr()
    facts = json.loads(said.out)
    rows = read("predictions.csv")
    assert facts["nodes"] == 60
    assert facts["features"] == 6
    assert facts["unknown"] == sum(row["prediction"] == "unknown" for row in rows)
    assert sum(facts["classes"].values()) == 60 - facts["unknown"]
    assert facts["report"]["held_out"] > 0
    assert facts["written"] == ["predictions.csv", "predictions.png", "model/"]
    assert "column 'weight' is not used" in said.err
    assert "training takes about" in said.err

    made[0][5] = "mauve"
    write("new.csv", ["id", "x0", "x1", "x2", "color"], [[r[0], *r[2:]] for r in made])
    arguments = ("--model=model", "--nodes=new.csv", "--edges=edges.csv")
    run("predict", *arguments, "--out=again.csv")
    said = capsys.readouterr()
    assert "'mauve' in 1 rows" in said.err
    assert read("again.csv")[1:] == rows[1:]

    run("review", *arguments, "--review_count=4")
    review = read("review.csv")
    assert len(review) == 4
    assert next(iter(review[0])) == "id"
    assert {row["label"] for row in review} == {""}
    assert not pathlib.Path("report.html").exists()
    for row in review[:2]:
        row["label"] = "new class"
    write("filled.csv", list(review[0]), [list(row.values()) for row in review])
    run("fit", *FIT, *PREPARED, "--labels=filled.csv", "--out=more.csv")
    said = capsys.readouterr().err
    assert re.search(r"2 labels.*; new classes 'new class' \(2\)\.", said)
    assert "p_new class" in read("more.csv")[0]


def test_labels_that_cannot_be_meant_are_refused(made, monkeypatch):
    monkeypatch.setattr(OODGATClassifier, "fit", lambda *_, **__: pytest.fail("fitted"))
    cases = {
        "is not among the nodes of nodes.csv": [["nobody", "k0"]],
        "is the word for nodes of no known class": [["n1", "unknown"]],
        "node 'n1' is there twice": [["n1", "k0"], ["n1", "k1"]],
    }
    for sentence, rows in cases.items():
        write("more.csv", ["id", "label"], rows)
        with pytest.raises(InputError, match=sentence):
            run("fit", *FIT, *PREPARED, "--labels=more.csv")
    write("more.csv", ["id", "class"], [["n1", "k0"]])
    with pytest.raises(InputError, match="has no column 'label'"):
        run("fit", *FIT, *PREPARED, "--labels=more.csv")
    with pytest.raises(InputError, match="--out would overwrite --labels"):
        run("fit", *FIT, "--labels=more.csv", "--out=more.csv")
    assert not pathlib.Path("predictions.csv").exists()


def test_features_in_a_matrix_of_scipy(made, capsys):
    matrix = scipy.sparse.random_array((60, 30), density=0.1, rng=0)
    scipy.sparse.save_npz("x.npz", scipy.sparse.csr_array(matrix))
    run("fit", *FIT, "--features=x.npz", "--json")
    assert json.loads(capsys.readouterr().out)["features"] == 30
    with pytest.raises(InputError, match="--ignore does nothing with --features"):
        run("fit", *FIT, "--features=x.npz", "--ignore=color")


def test_a_page_is_written(made):
    run("report", *FIT, *PREPARED, "--report=page.html")
    assert "n59" in pathlib.Path("page.html").read_text(encoding="utf-8")
    assert not pathlib.Path("predictions.csv").exists()


def test_a_command_has_its_own_flags(made):
    with pytest.raises(flags.UnrecognizedFlagError, match="model"):
        run("fit", *FIT, "--model=model")
    with pytest.raises(flags.UnrecognizedFlagError, match="members"):
        run("predict", *TABLES, "--members=1")
    with pytest.raises(InputError, match="a saved model with --model"):
        run("predict", *TABLES)
    with pytest.raises(InputError, match="--picture does nothing with no --out"):
        run("report", *FIT, "--picture=p.png")
    with pytest.raises(InputError, match="--review_count does nothing with no"):
        run(None, *FIT, "--review_count=3")
    with pytest.raises(InputError, match=r"--report must end in \.html"):
        run("report", *FIT, "--report=page.pdf")


def test_an_unknown_command_is_one_sentence(tmp_path):
    ran = forking.run("-m", "oodgat_jax.cli.predict", "fitt", cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "fitt" in ran.stderr


def test_time_left_is_said_once_it_is_known(monkeypatch, capsys):
    clock = iter(np.arange(0.0, 1000.0, 30.0).tolist())
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.Line("fitting", sys.stderr) as line:
        for steps in (10, 40, 70):
            line(Progress(steps, 0, 1, 1, 1.0, left=100 - steps))
    first, *_, last = capsys.readouterr().err.splitlines()[1:]
    assert "left" not in first
    assert "at most" in last
    assert progress.duration(30) == "30 s"
    assert progress.duration(600) == "10 min"
    assert progress.duration(9000) == "2.5 h"
