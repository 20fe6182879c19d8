"""Figures far from the paper's: which are listed, and what is said of each."""

import math

import numpy as np
import pytest
from support.binaries import call
from support.example_records import record

from experiments import differences
from experiments.support import paper_results
from oodgat_jax.records import append_records

PAPER = paper_results.figure("end_to_end", "gat", "cora", "auroc") / 100
RULE = paper_results.figure("end_to_end", "gat", "cora", "fpr95") / 100
NINE = {
    "split_seeds": [split for split in (1, 2, 3) for _ in range(3)],
    "model_seeds": [0, 1, 2] * 3,
}


def made(study="end_to_end", metric="auroc", runs=(PAPER + 0.1,) * 9, **more):
    """Records of a study, of GAT on Cora, with one metric that the paper has."""
    found = record("cora", "ENT", runs, method="gat", **NINE) | more
    values = {metric: list(runs), **more.get("metrics", {})}
    return {study: [found | {"metrics": values}]}


def whys(records):
    """Difference and reason of each row."""
    return [tuple(row[-2:]) for row in differences.draw(records).rows]


@pytest.mark.parametrize("gap", [0.019, -0.019, 0.0])
def test_what_is_near_is_not_listed(gap):
    assert whys(made(runs=(PAPER + gap,) * 9)) == []


@pytest.mark.parametrize(
    ("gap", "shown"), [(0.0204, []), (0.0206, ["+2.1"]), (-0.05, ["-5.0"])]
)
def test_two_points_are_those_that_are_shown(gap, shown):
    assert [why[0] for why in whys(made(runs=(PAPER + gap,) * 9))] == shown


def test_nothing_is_said_where_nothing_is_known():
    assert whys(made()) == [("+10.0", "not explained")]


def test_the_rule_of_fpr95_is_a_reason_where_it_brings_ours_near():
    for gap, why in ((0.01, f"rule: {100 * RULE + 1:.1f}"), (0.03, "not explained")):
        by_rule = {"fpr95_paper": [RULE + gap] * 9}
        found = made(metric="fpr95", runs=(RULE + 0.1,) * 9, metrics=by_rule)
        assert whys(found) == [("+10.0", why)]


def test_records_without_the_papers_rule_go_by_ours():
    assert whys(made(metric="fpr95", runs=(RULE + 0.1,) * 9)) == [
        ("+10.0", "not explained")
    ]


def test_what_varies_more_than_it_differs_is_spread():
    far, near = np.array([-0.01, 0, 0.01]), np.array([-0.09, 0, 0.09])
    for between, kind in ((far, "not explained"), (near, "spread")):
        runs = PAPER + 0.06 + np.repeat(between, 3)
        ((_, why),) = whys(made(runs=runs.tolist()))
        assert why.startswith(kind)


def test_the_error_of_a_mean_tells_splits_and_seeds_apart():
    def error(splits, seeds):
        runs = 0.5 + np.add.outer(splits, seeds).ravel()
        found = made(runs=runs.tolist())["end_to_end"][0]
        figure = differences.Figure("", "", "cora", "", "auroc", found, 0.0)
        return differences.standard_error(figure)

    thirds, none = np.array([-0.03, 0, 0.03]), np.zeros(3)
    assert error(none, none) == 0
    assert error(thirds, none) == pytest.approx(3 / math.sqrt(3))
    assert error(none, thirds) == pytest.approx(3 / math.sqrt(9))


def test_one_run_cannot_be_told_from_chance():
    one = {"split_seeds": [1], "model_seeds": [0]}
    ((_, why),) = whys(made(runs=(PAPER + 0.1,), **one))
    assert why.startswith("spread")


def test_the_papers_main_table_speaks_for_the_base_of_its_second():
    main = paper_results.figure("end_to_end", "gat", "amazon-computers", "auroc")
    second = paper_results.figure("post_hoc", "gat", "amazon-computers", "auroc")
    assert abs(main - second) > differences.POINTS
    found = made("post_hoc", runs=(main / 100,) * 9, selection="fixed")
    found["post_hoc"][0]["dataset"] = "amazon-computers"
    gap = f"{main - second:+.1f}"
    assert whys(found) == [(gap, f"paper: {main:.1f} in its main table")]


def test_what_was_measured_is_said():
    found = made("post_hoc", detector="CaGCN", selection="oracle")
    ((_, why),) = whys(found)
    assert why == "measured: its calibration"
    rows = {("post_hoc", row.title) for row in differences.post_hoc.ROWS}
    assert set(differences.MEASURED) <= rows


def test_every_table_is_read():
    tables_of = {
        "gkde": made("gkde", method="gkde", detector="vacuity"),
        "edge_removal": made(
            "edge_removal", "accuracy", method="gcn", removed_inter_edges=0.5
        ),
        "ablation": made("ablation", method="oodgat", detector="ATT", regularizers=[]),
    }
    tables_of["ablation"]["ablation"][0]["dataset"] = "amazon-computers"
    for study, records in tables_of.items():
        (row,) = differences.draw(records).rows
        assert row[0] == next(
            source.title for source in differences.STUDY.beside if source.name == study
        )


def test_the_note_counts_all_and_each_kind():
    records = (
        made()["end_to_end"] + made(runs=(PAPER,) * 9, dataset="digits")["end_to_end"]
    )
    note = differences.STUDY.note(records, [], [], [], [])
    assert note.startswith("1 of 1 figures")
    assert "1 not explained." in note


def test_the_binary_reads_a_folder(tmp_path, cache):
    runs = np.full(9, PAPER + 0.1)
    more = {"fpr95_paper": runs.tolist()}
    row = record("cora", "ENT", runs, method="gat", **NINE)
    row["metrics"] |= more
    append_records(tmp_path / "end_to_end.jsonl", row)
    code, out, err = call("differences", f"--records_dir={tmp_path}", cache=cache)
    assert code == 0, err
    assert "Main table" in out
    assert "not explained" in out
