"""The binary of the post-hoc table: trained, tuned, recorded, drawn again."""

import os
import subprocess
import sys

import numpy as np
import pytest

from experiments import post_hoc, post_hoc_table, published, results
from oodgat_jax.detectors import DETECTORS, GRIDS
from oodgat_jax.types import InputError

TINY = ["--splits=1", "--seeds=2", "--set=max_steps=11", "--set=hidden=8"]


def call(*arguments, cache):
    """Exit code, stdout and stderr of the binary."""
    done = subprocess.run(
        [sys.executable, "-m", "experiments.post_hoc", *arguments],
        capture_output=True,
        check=False,
        text=True,
        env=os.environ | {"OODGAT_CACHE_DIR": str(cache), "OODGAT_DATA_DIR": ""},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("post_hoc")


@pytest.fixture(scope="module")
def ending(folder):
    """A plain score on both methods, and one that is tuned."""
    arguments = [*TINY, "--detectors=ENT,energy", f"--out={folder}"]
    return call(*arguments, cache=folder / "cache")


def test_records(folder, ending):
    assert ending[0] == 0, ending[2]
    records = results.read(folder / post_hoc.FILE)
    keys = [(r["method"], r["detector"], r["selection"]) for r in records]
    assert keys == [
        ("gat", "ENT", "fixed"),
        ("gat", "energy", "validation"),
        ("gat", "energy", "oracle"),
        ("oodgat", "ENT", "fixed"),
    ]
    for record in records:
        assert record["model_seeds"] == [0, 1]
        assert record["detector_settings"] in [{}, *GRIDS["energy"]]
    _, chosen, oracle, _ = (np.mean(r["metrics"]["auroc"]) for r in records)
    assert oracle >= chosen


def test_the_table_is_drawn_again_without_training(folder, ending):
    before = (folder / post_hoc.FILE).read_bytes()
    code, out, _ = call("--from_records", f"--out={folder}", cache=folder / "cache")
    assert (code, out) == (0, ending[1])
    assert (folder / post_hoc.FILE).read_bytes() == before
    titles = [line.split()[1] for line in out.splitlines()[2:5]]
    assert titles == ["GAT", "energy", "OODGAT-ENT"]
    assert "| digits " in (folder / "post_hoc.md").read_text(encoding="utf-8")
    assert "\\toprule" in (folder / "post_hoc.tex").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--datasets=corra"], "no data set 'corra'"),
        (["--detectors=ODDIN"], "no detector 'ODDIN'"),
        (["--set=unheard=1"], "No method has 'unheard=1'"),
        (["--from_records"], "no records at"),
    ],
)
def test_wrong_input_is_one_sentence(arguments, sentence, tmp_path):
    code, out, err = call(*arguments, f"--out={tmp_path}", cache=tmp_path)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_setting_goes_to_the_methods_that_know_it():
    plan = post_hoc.plan(["digits"], post_hoc.choose(None), ["consistency=7", "lr=0.5"])
    recipes = {method: recipe for _, method, recipe in plan}
    assert recipes["oodgat"]["consistency"] == 7.0
    assert "consistency" not in recipes["gat"]
    assert recipes["gat"]["lr"] == recipes["oodgat"]["lr"] == 0.5


def test_rows_are_known_detectors_and_known_rows_of_the_paper():
    for row in post_hoc_table.ROWS:
        assert row.detector in DETECTORS
        figure = published.published("post_hoc", row.paper, "cora", "auroc")
        assert (figure is None) == (row.paper == "")


def record(dataset, method, detector, selection, auroc):
    runs = {"split_seeds": [1, 2], "model_seeds": [0, 0], "steps_run": [5, 5]}
    return {
        "dataset": dataset,
        "method": method,
        "detector": detector,
        "selection": selection,
        "metrics": {"auroc": auroc, "fpr95": [0.5, 0.5]},
        **runs,
    }


def test_ours_oracle_and_paper_side_by_side():
    records = [
        record("digits", "gat", "ODIN", "validation", [0.1, 0.1]),
        record("cora", "gat", "ODIN", "validation", [0.6, 0.8]),
        record("cora", "gat", "ODIN", "oracle", [0.9, 0.9]),
        record("cora", "oodgat", "ATT", "fixed", [0.2, 0.2]),
        record("cora", "oodgat", "ATT", "fixed", [1.0, 1.0]),
    ]
    assert post_hoc_table.known(records) == ["cora", "digits"]
    table = post_hoc_table.draw(records, ["cora"])
    odin, att = ([getattr(c, "text", c) for c in row] for row in table.rows)
    ours, oracle, half = "70.0 ± 10.0", "90.0 ± 0.0", "50.0 ± 0.0"
    assert odin == ["cora", "ODIN", ours, half, oracle, half, "90.7", "37.2"]
    assert att == ["cora", "OODGAT-ATT", "100.0 ± 0.0", half, "", "", "94.1", "25.0"]


def test_no_record_of_a_data_set():
    with pytest.raises(InputError, match="no records of cora"):
        post_hoc_table.draw([], ["cora"])
