"""The binary of the post-hoc table: trained, tuned, recorded, drawn again."""

import numpy as np
import pytest
from support.binaries import call

from experiments import end_to_end, post_hoc
from experiments.support import main_table, paper_results, study
from oodgat_jax.detectors import DETECTORS, GRIDS
from oodgat_jax.records import read_records
from oodgat_jax.types import InputError

TINY = ["--splits=1", "--seeds=2", "--set=max_steps=11", "--set=hidden=8"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("post_hoc")


@pytest.fixture(scope="module")
def ending(folder, cache):
    """One detector, which is tuned, on one method."""
    arguments = [*TINY, "--detectors=energy", f"--out={folder}"]
    return call("post_hoc", *arguments, cache=cache)


def test_records(folder, ending):
    assert ending[0] == 0, ending[2]
    records = read_records(folder / post_hoc.STUDY.file)
    keys = [(r["method"], r["detector"], r["selection"]) for r in records]
    assert keys == [("gat", "energy", "validation"), ("gat", "energy", "oracle")]
    for record in records:
        assert record["model_seeds"] == [0, 1]
        assert record["detector_settings"] in GRIDS["energy"]
    chosen, oracle = (np.mean(r["metrics"]["auroc"]) for r in records)
    assert oracle >= chosen


def test_its_training_is_a_row_of_the_main_table(folder, ending):
    assert ending[0] == 0, ending[2]
    (record,) = read_records(folder / main_table.FILE)
    assert (record["method"], record["detector"]) == ("gat", "ENT")
    assert record["hyperparameters"]["max_steps"] == 11


def test_the_table_is_drawn_again_without_training(folder, ending, cache):
    before = (folder / post_hoc.STUDY.file).read_bytes()
    code, out, _ = call("post_hoc", "--from_records", f"--out={folder}", cache=cache)
    assert (code, out) == (0, ending[1])
    assert (folder / post_hoc.STUDY.file).read_bytes() == before
    lines = out.splitlines()
    assert (lines[0], lines[4].split()[0]) == ("digits", "energy")
    page = (folder / "post_hoc.md").read_text(encoding="utf-8")
    assert "| digits " in page
    drawn = study.markdown(post_hoc.STUDY, *study.read(post_hoc.STUDY, folder))
    assert drawn == page
    assert "\\toprule" in (folder / "post_hoc.tex").read_text(encoding="utf-8")


def test_what_is_recorded_is_not_measured_again(folder, ending, cache):
    before = (folder / post_hoc.STUDY.file).read_bytes()
    arguments = [*TINY, "--detectors=energy", f"--out={folder}"]
    code, out, err = call("post_hoc", *arguments, cache=cache)
    assert (code, out) == (0, ending[1])
    assert "gat on digits is recorded already." in err
    assert (folder / post_hoc.STUDY.file).read_bytes() == before


def test_wrong_input_is_one_sentence(tmp_path, cache):
    code, out, err = call(
        "post_hoc", "--from_records", f"--out={tmp_path}", cache=cache
    )
    assert (code, out) == (2, "")
    assert err.startswith("There are no records at")
    assert err.count("\n") == 1


def test_names_are_checked_before_the_training():
    rows = post_hoc.choose(["ODIN"])
    assert [row.title for row in rows] == ["ODIN"]
    with pytest.raises(InputError, match="no detector 'ODDIN'"):
        post_hoc.choose(["ODDIN"])
    with pytest.raises(InputError, match="no data set 'corra'"):
        end_to_end.plan(["corra"], ["gat"], [])
    with pytest.raises(InputError, match="no hyper-parameter 'unheard'"):
        end_to_end.plan(["digits"], ["gat"], ["unheard=1"])


def test_what_has_no_settings_is_not_tuned():
    (row,) = [row for row in post_hoc.ROWS if row.detector == "ATT"]
    assert post_hoc.select(None, row) == {"fixed": {}}


def test_a_setting_goes_to_the_methods_that_know_it():
    settings = ["consistency=7", "lr=0.5"]
    plan = end_to_end.plan(["digits"], ["gat", "oodgat"], settings)
    recipes = {method: recipe for _, method, recipe in plan}
    assert recipes["oodgat"]["consistency"] == 7.0
    assert "consistency" not in recipes["gat"]
    assert recipes["gat"]["lr"] == recipes["oodgat"]["lr"] == 0.5


def test_rows_are_known_detectors_and_known_rows_of_the_paper():
    for row in post_hoc.ROWS:
        assert row.detector in DETECTORS
        figure = paper_results.figure("post_hoc", row.paper, "cora", "auroc")
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
    assert post_hoc.known(records) == ["cora", "digits"]
    table = post_hoc.draw(records, ["cora"])
    odin, att = ([getattr(c, "text", c) for c in row] for row in table.rows)
    ours, oracle, half = "70.0 ± 10.0", "90.0 ± 0.0", "50.0 ± 0.0"
    assert odin == ["cora", "ODIN", ours, half, oracle, half, "90.7", "37.2"]
    assert att == ["cora", "OODGAT-ATT", "100.0 ± 0.0", half, "", "", "94.1", "25.0"]


def test_no_record_of_a_data_set():
    with pytest.raises(InputError, match="no records of cora"):
        post_hoc.draw([], ["cora"])
