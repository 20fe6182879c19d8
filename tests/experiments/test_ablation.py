"""The ablation: its rows, its table, and a row trained."""

import pytest
from support.binaries import call
from support.example_records import record

from experiments import ablation
from experiments.support import paper_results
from oodgat_jax.methods import METHODS
from oodgat_jax.records import read_records

REGULARIZERS = METHODS["oodgat"].regularizers


def rows(table):
    return [[getattr(cell, "text", cell) for cell in row] for row in table.rows]


def test_the_papers_seven_rows():
    titles = [ablation.title(row) for row in ablation.subsets(REGULARIZERS)]
    assert len(titles) == 7
    for title in titles:
        found = paper_results.figure("ablation", title, "amazon-computers", "auroc")
        assert found is not None
    printed = METHODS["oodgat-printed"].regularizers
    assert [ablation.title(row) for row in ablation.subsets(printed)] == titles


def test_rows_of_other_numbers_of_regularizers():
    assert ablation.subsets(["a"]) == [(), ("a",)]
    assert ablation.subsets(["a", "b"]) == [(), ("a",), ("b",), ("a", "b")]
    assert len(ablation.subsets(["a", "b", "c", "d"])) == 9


def test_table_in_the_papers_order_with_its_figures():
    records = [
        record("amazon-computers", detector, (0.9, 0.9), regularizers=list(row))
        for row in reversed(ablation.subsets(REGULARIZERS))
        for detector in ("ENT", "ATT")
    ]
    found = rows(ablation.draw(records))
    titles = [ablation.title(row) for row in ablation.subsets(REGULARIZERS)]
    assert [row[2] for row in found] == 2 * titles
    assert [row[1] for row in found] == 7 * ["oodgat-ATT"] + 7 * ["oodgat-ENT"]
    assert found[1][4] == "90.0 ± 0.0 (90.0)"
    assert found[8][4] == "90.0 ± 0.0"


def test_the_note_counts_the_runs_of_rows_that_are_shown():
    old, new = (
        record("amazon-computers", "ATT", areas, regularizers=[])
        for areas in ((0.9,), (0.9, 0.8))
    )
    assert "over 2 runs" in ablation.STUDY.note([old, new])
    assert "over 1 run," in ablation.STUDY.note([new, old])


def test_a_row_is_trained(tmp_path, cache):
    tiny = ["--splits=1", "--seeds=1", "--set=max_steps=11", "--set=hidden=8"]
    tiny += ["--set=heads=1", "--rows=ce"]
    code, _, err = call("ablation", *tiny, f"--out={tmp_path}", cache=cache)
    assert code == 0, err
    found = read_records(tmp_path / ablation.STUDY.file)
    trained = [(r["detector"], r["regularizers"]) for r in found]
    assert trained == [("ENT", []), ("ATT", [])]
    assert "consistency" not in found[0]["hyperparameters"]


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("--method=gcn", "no method with regularizers 'gcn': choose from"),
        ("--rows=con", "There is no row 'con': choose from ce, ce+con"),
        ("--set=unheard=1", "no hyper-parameter 'unheard'"),
    ],
)
def test_wrong_input_is_one_sentence(argument, sentence, tmp_path, cache):
    arguments = ["--dataset=digits", argument, f"--out={tmp_path}"]
    code, out, err = call("ablation", *arguments, cache=cache)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
