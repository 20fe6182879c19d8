"""The command oodgat in hostile hands: nothing lost, nothing false, no traceback."""

import contextlib
import functools
import json
import os
import pathlib
import re
import shutil

import numpy as np
import pytest
from absl import flags
from support import own_tables
from support.own_tables import FIT, TABLES, read, write

from oodgat_jax.estimator import OODGATClassifier
from oodgat_jax.types import InputError

COLUMNS = [f"x{k}" for k in range(6)]

run = functools.partial(own_tables.run, None)


def write_tables():
    """Writes two tables to the current folder; returns the rows of the nodes."""
    rows, ends = own_tables.rows(len(COLUMNS))
    write("nodes.csv", ["id", "label", *COLUMNS], rows)
    write("edges.csv", ["source", "target"], ends)
    return rows


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder with two tables; the tests run in it."""
    monkeypatch.chdir(tmp_path)
    return write_tables()


@pytest.fixture
def untrained(monkeypatch):
    """Whoever trains fails: what is refused is refused before that."""

    def fit(*arguments, **more):
        raise AssertionError("trained")

    monkeypatch.setattr(OODGATClassifier, "fit", fit)


# --- Outputs are checked before training ---------------------------------------


def make_foreign():
    os.mkdir("foreign")
    open("foreign/thesis.tex", "w").close()


OUTPUTS = {
    "save into a foreign folder": (["--save=foreign"], "other files"),
    "save to a file": (["--save=edges.csv"], "is a file"),
    "save to a link to nowhere": (["--save=link"], "link to nowhere"),
    "save below a file": (["--save=edges.csv/model"], "cannot be written"),
    "save where predictions go": (["--save=m", "--out=m/p.csv"], "a model alone"),
    "picture of another kind": (["--picture=p.docx"], "--picture must end in .png"),
    "picture without suffix": (["--picture=p"], "--picture must end in"),
    "picture below a file": (["--picture=edges.csv/p.png"], "cannot be written"),
    "out below a file": (["--out=edges.csv/p.csv"], "cannot be written"),
    "no out": (["--out="], "--out must name a file"),
    "name of out too long": ([f"--out={300 * 'a'}.csv"], "cannot be written"),
    "name of picture too long": ([f"--picture={300 * 'a'}.png"], "cannot be written"),
    "name of save too long": ([f"--save={300 * 'a'}"], "cannot be written"),
    "out is a folder": (["--out=folder.csv"], "names the folder"),
    "picture is a folder": (["--picture=folder.png"], "names the folder"),
    "out is a link to the nodes": (["--out=same.csv"], "overwrite --nodes"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_are_checked_before_training(made, untrained, name):
    make_foreign()
    os.symlink("nowhere", "link")
    os.symlink("nodes.csv", "same.csv")
    os.mkdir("folder.csv")
    os.mkdir("folder.png")
    arguments, sentence = OUTPUTS[name]
    with pytest.raises(InputError, match=sentence):
        run(*FIT, *arguments)


def test_predictions_are_written_before_anything_can_fail(made, monkeypatch):
    def save(self, folder):
        raise InputError("The disk is full.")

    monkeypatch.setattr(OODGATClassifier, "save", save)
    with pytest.raises(InputError, match=r"full; the predictions are in predictions\."):
        run(*FIT, "--save=model")
    assert len(read("predictions.csv")) == 60


# --- A saved model on another table --------------------------------------------


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with tables, predictions and the model that made them; and the rows."""
    folder = tmp_path_factory.mktemp("fitted")
    with contextlib.chdir(folder):
        rows = write_tables()
        run(*FIT, "--save=model")
    return folder, rows


@pytest.fixture
def saved(fitted, tmp_path, monkeypatch):
    """A copy of that folder, in which the test runs; returns the rows."""
    shutil.copytree(fitted[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return fitted[1]


def test_swapped_columns_are_matched_by_name(saved):
    write("swapped.csv", ["id", *COLUMNS[::-1]], [[r[0], *r[:1:-1]] for r in saved])
    arguments = ("--model=model", "--edges=edges.csv", "--out=again.csv")
    run(*arguments, "--nodes=swapped.csv")
    assert read("again.csv") == read("predictions.csv")


def test_renamed_and_extra_columns_are_named(saved, capsys):
    arguments = ("--model=model", "--nodes=other.csv", "--edges=edges.csv")
    write("other.csv", ["id", "y", *COLUMNS[1:]], [[r[0], *r[2:]] for r in saved])
    with pytest.raises(InputError, match="needs the features 'x0'"):
        run(*arguments, "--out=again.csv")
    write("other.csv", ["id", "y", *COLUMNS], [[r[0], 7, *r[2:]] for r in saved])
    run(*arguments, "--out=again.csv")
    assert "The features 'y' are left out" in capsys.readouterr().err
    assert read("again.csv") == read("predictions.csv")


def test_columns_without_names_are_said_to_be_matched_by_order(saved, capsys):
    features = np.array([row[2:] for row in saved], np.float32)
    np.savez("graph.npz", features=features, edges=np.zeros((0, 2), int))
    run("--model=model", "--nodes=graph.npz", "--out=again.csv")
    assert "has names of features" in capsys.readouterr().err


IDLE = ["--method=gcn", "--members=3", "--set=lr=0.1", "--directed", "--seed=0",
        "--scale=none"]  # fmt: skip


@pytest.mark.parametrize("flag", IDLE)
def test_flags_that_do_nothing_with_a_model_are_refused(saved, flag):
    with pytest.raises(InputError, match="does nothing with --model"):
        run("--model=model", *TABLES, "--out=again.csv", flag)


def test_flags_that_do_nothing_elsewhere_are_refused(made):
    np.savez("graph.npz", features=np.ones((3, 2)), edges=np.zeros((0, 2), int))
    for flag in ("--edges=edges.csv", "--id_column=id", "--ignore=a"):
        with pytest.raises(InputError, match="does nothing with an npz"):
            run("--nodes=graph.npz", flag)
    for flag in ("--verdict=alien", "--noescape"):
        with pytest.raises(InputError, match="does nothing with an npz for --out"):
            run(*FIT, "--out=p.npz", flag)
    with pytest.raises(InputError, match=r"--keep does nothing with --threshold=0\.5"):
        run(*FIT, "--threshold=0.5", "--keep=0.9")


def test_a_saved_model_takes_another_threshold(saved, capsys):
    def unknown(*arguments):
        run("--model=model", *TABLES, "--out=again.csv", *arguments)
        return sum(row["prediction"] == "unknown" for row in read("again.csv"))

    assert unknown("--threshold=-100") == 60
    assert unknown("--threshold=100") == 0
    assert unknown("--threshold=quantile", "--keep=0.1") > unknown("--keep=0.99")
    with pytest.raises(InputError, match="no threshold nan"):
        unknown("--threshold=nan")


def test_a_saved_model_says_nothing_of_its_fit(saved, capsys):
    run("--model=model", *TABLES, "--out=again.csv")
    said = capsys.readouterr().out
    assert "was not measured" in said
    assert not re.search("held out|confidence|At least", said)


# --- Words and tables ----------------------------------------------------------


def replaced(rows, column, old, new):
    return [[*r[:column], r[column].replace(old, new), *r[column + 1 :]] for r in rows]


def test_a_class_called_unknown_is_refused(made, untrained):
    rows = replaced(made, 1, "k0", "unknown")
    write("nodes.csv", ["id", "label", *COLUMNS], rows)
    with pytest.raises(InputError, match=r"A class is called 'unknown'.*--verdict"):
        run(*FIT)


def test_another_word_for_the_verdict(made):
    rows = replaced(made, 1, "k0", "unknown")
    write("nodes.csv", ["id", "label", *COLUMNS], rows)
    run(*FIT, "--verdict=alien", "--threshold=-100")
    assert {row["prediction"] for row in read("predictions.csv")} == {"alien"}


def test_formulas_are_escaped_unless_asked(made):
    rows = replaced(replaced(made, 0, "n0", "=cmd()"), 1, "k0", "@sum")
    rows = replaced(replaced(rows, 0, "n1", "+1+1"), 0, "n2", "-2")
    write("nodes.csv", ["id", "label", *COLUMNS], rows)
    write("edges.csv", ["source", "target"], [])
    run(*FIT, "--threshold=100")
    found = read("predictions.csv")
    begins = {row["id"][:2] for row in found}
    assert begins & {"'=", "'+", "-2"} == {"'=", "'+", "-2"}
    assert not begins & {"=c", "+1"}
    assert "'@sum" in {row["prediction"] for row in found}
    run(*FIT, "--threshold=100", "--noescape")
    assert {row["id"] for row in read("predictions.csv")} == {row[0] for row in rows}
    run(*FIT, "--threshold=100", "--out=p.npz")
    with np.load("p.npz") as file:
        assert file["ids"].tolist() == [row[0] for row in rows]
        assert "@sum" in file["classes"]


@pytest.mark.parametrize("name", ["", " ", "Unnamed: 0"])
def test_an_index_of_pandas_is_not_a_feature(made, untrained, name):
    rows = [[n, *row] for n, row in enumerate(made)]
    write("nodes.csv", [name, "id", "label", *COLUMNS], rows)
    with pytest.raises(InputError, match=r"no name for column 1.*index=False"):
        run(*FIT)


@pytest.mark.parametrize("label", ["nan", "None", "-3"])
def test_labels_that_mean_nothing_are_refused(made, label):
    write("nodes.csv", ["id", "label", *COLUMNS], replaced(made, 1, "k0", label))
    with pytest.raises(InputError, match=f"A label is '?{label}"):
        run(*FIT)


def test_a_wrong_encoding_is_one_sentence(made):
    with pytest.raises(InputError, match="is not written in utf-16"):
        run(*FIT, "--encoding=utf-16")


@pytest.mark.parametrize("seed", ["-1", "1e20", str(10**20)])
def test_a_seed_that_is_none_is_a_wrong_flag(made, seed):
    with pytest.raises(flags.IllegalFlagValueError, match="seed"):
        run(*FIT, f"--seed={seed}")


def test_settings_out_of_reach_are_refused(made):
    with pytest.raises(InputError, match=r"max_steps must be .* at most"):
        run(*FIT, f"--set=max_steps={10**20}")
    with pytest.raises(InputError, match=r"training of one run needs about .*TB"):
        run(*FIT, "--set=hidden=2000000000")


def test_a_feature_of_billions_is_scaled(made):
    rows = [[*row, 1e9 * (n % 7)] for n, row in enumerate(made)]
    write("nodes.csv", ["id", "label", *COLUMNS, "big"], rows)
    run(*TABLES, "--method=gcn", "--members=1", "--set=max_steps=81", "--save=model")
    facts = json.loads(pathlib.Path("model/model.json").read_text())
    assert facts["report"]["accuracy"] > 0.9
    assert facts["scaling"]["deviation"][-1] > 1e8
