"""Removing inter-edges: trained once, taken over from the main table, drawn."""

import json
import shutil

import pytest
from support.binaries import call
from support.example_records import record

from experiments import edge_removal
from oodgat_jax.records import append_records, read_records

TINY = ["--splits=1", "--seeds=2", "--set=max_steps=11", "--set=hidden=8"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("edge_removal")


@pytest.fixture(scope="module")
def ending(folder, cache):
    return call("edge_removal", *TINY, f"--out={folder}", cache=cache)


def test_one_record_per_share(folder, ending):
    code, out, err = ending
    assert code == 0, err
    assert "This is digits instead." in err
    records = read_records(folder / edge_removal.STUDY.file)
    assert [r["removed_inter_edges"] for r in records] == [0.0, 0.5, 1.0]
    assert {(r["method"], r["dataset"]) for r in records} == {("gcn", "digits")}
    assert records[0]["metrics"] != records[2]["metrics"]
    assert out.splitlines()[2].split()[:2] == ["digits", "gcn"]


def test_what_is_recorded_is_not_trained_again(folder, ending, cache):
    before = (folder / edge_removal.STUDY.file).read_bytes()
    code, out, err = call("edge_removal", *TINY, f"--out={folder}", cache=cache)
    assert (code, out) == ending[:2]
    assert err.count("is recorded already.") == 3
    assert (folder / edge_removal.STUDY.file).read_bytes() == before


def test_the_whole_graph_is_taken_from_the_main_table(folder, ending, cache, tmp_path):
    assert ending[0] == 0, ending[2]
    whole, *others = read_records(folder / edge_removal.STUDY.file)
    del whole["removed_inter_edges"]
    append_records(tmp_path / "end_to_end.jsonl", whole)
    append_records(tmp_path / edge_removal.STUDY.file, *others)
    code, _, err = call("edge_removal", *TINY, f"--out={tmp_path}", cache=cache)
    assert (code, err.count("is recorded already.")) == (0, 2)
    assert "0% of inter-edges removed is taken from" in err
    taken = read_records(tmp_path / edge_removal.STUDY.file)[-1]
    assert taken == whole | {"removed_inter_edges": 0.0}


def test_the_main_table_may_have_more_seeds(folder, ending, cache, tmp_path):
    assert ending[0] == 0, ending[2]
    whole, *others = read_records(folder / edge_removal.STUDY.file)
    per_run = {name: [123, *whole[name]] for name in ("split_seeds", "best_step")}
    per_run |= {name: [2, *whole[name]] for name in ("model_seeds", "validation")}
    per_run["steps_run"] = [11, *whole["steps_run"]]
    more = {name: [0.0, *values] for name, values in whole["metrics"].items()}
    append_records(tmp_path / "end_to_end.jsonl", whole | per_run | {"metrics": more})
    append_records(tmp_path / edge_removal.STUDY.file, *others)
    code, _, err = call("edge_removal", *TINY, f"--out={tmp_path}", cache=cache)
    assert (code, err.count("is recorded already.")) == (0, 2)
    assert "0% of inter-edges removed is taken from" in err
    taken = read_records(tmp_path / edge_removal.STUDY.file)[-1]
    for name in ("metrics", "model_seeds", "validation"):
        assert taken[name] == whole[name]


def test_drawn_again_without_training(folder, ending, cache, tmp_path):
    shutil.copy(folder / edge_removal.STUDY.file, tmp_path)
    arguments = ["--from_records", f"--out={tmp_path}"]
    code, out, _ = call("edge_removal", *arguments, cache=cache)
    assert (code, out.replace(str(tmp_path), str(folder))) == ending[:2]
    assert "| digits " in (tmp_path / "edge_removal.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--method=gnc"], "no method 'gnc'"),
        (["--datasets=corra"], "no data set 'corra'"),
        (["--set=heads=3"], "no hyper-parameter 'heads'"),
    ],
)
def test_wrong_input_is_one_sentence(arguments, sentence, tmp_path, cache):
    arguments = ["--datasets=digits", *arguments, f"--out={tmp_path}"]
    code, out, err = call("edge_removal", *arguments, cache=cache)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_the_paper_and_the_difference_stand_beside():
    records = [
        record("cora", "ENT", auroc, method="gcn", removed_inter_edges=share)
        for share, auroc in ((0.0, (0.8, 0.9)), (1.0, (0.9, 0.9)))
    ]
    (row,) = edge_removal.draw(records).rows
    texts = [getattr(cell, "text", cell) for cell in row]
    assert texts[:5] == ["cora", "gcn", "85.0 ± 5.0 (92.0)", "", "90.0 ± 0.0 (92.7)"]
    assert texts[5].startswith("+5.0 (")


def test_a_record_is_strict_json(folder, ending):
    assert ending[0] == 0, ending[2]
    for line in (
        (folder / edge_removal.STUDY.file).read_text(encoding="utf-8").splitlines()
    ):
        json.loads(line, parse_constant=pytest.fail)
