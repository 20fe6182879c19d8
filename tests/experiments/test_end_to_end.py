import numpy as np
import pytest
from support import binaries

from experiments import end_to_end, tune
from experiments.support import main_table, paired, study, tuned
from oodgat_jax import tables
from oodgat_jax.methods import recipes
from oodgat_jax.records import check, read_records
from oodgat_jax.types import InputError


def record(method, detector, auroc, validation=1.0, **hyperparameters):
    count = len(auroc)
    values = dict.fromkeys(tables.COLUMNS, auroc)
    return {
        "dataset": "cora",
        "method": method,
        "detector": detector,
        "metrics": values,
        "split_seeds": [123] * count,
        "model_seeds": list(range(count)),
        "steps_run": [11] * count,
        "hyperparameters": hyperparameters,
        "split_digest": "0",
        "versions": {},
        "seconds": 1.0,
        "validation": [validation] * count,
        "failed_runs": [],
    }


def test_table_marks_the_best_and_shows_the_paper():
    records = [record("gcn", "ENT", [0.8, 0.9]), record("oodgat", "ATT", [0.9, 1.0])]
    text = study.markdown(end_to_end.STUDY, records)
    assert "85.0 ± 5.0 (88.9)" in text
    assert "**95.0 ± 5.0 (93.6)**" in text
    assert "over 2 runs" in text


def test_settings_that_are_not_the_recipes_are_marked():
    records = [
        record("gcn", "ENT", [0.8, 0.9], lr=0.01),
        record("gat", "ENT", [0.8, 0.9], lr=0.01, weight_decay=0.0, heads=1),
    ]
    text = study.markdown(end_to_end.STUDY, records)
    assert "| GCN    |" in text
    assert "| GAT *  |" in text
    assert "not the recipe's: GAT on cora weight_decay 0, heads 1." in text
    assert "*, settings" not in study.markdown(end_to_end.STUDY, records[:1])


def test_paired_difference_leaves_failed_runs_out():
    mean, low, high, p = paired.difference([0.9, 0.8, np.nan], [0.7, 0.7, 0.1])
    assert mean == pytest.approx(15.0)
    assert 10.0 - 1e-6 <= low < mean < high <= 20.0 + 1e-6
    assert p == 1.0  # two runs are too few


def test_comparison_needs_the_same_runs():
    ours = record("oodgat", "ATT", [0.9] * 6)
    theirs = record("gcn", "ENT", [0.8] * 6)
    (row,) = main_table.comparison_table([ours, theirs]).rows
    assert row == ["cora", "GCN", "", "+10.0 (+10.0 to +10.0)"]
    few = [record("oodgat", "ATT", [0.9]), record("gcn", "ENT", [0.8])]
    (row,) = main_table.comparison_table(few).rows
    assert row == ["cora", "GCN", "", "+10.0 (+10.0 to +10.0) n.s."]
    other = theirs | {"model_seeds": list(range(5, 11))}
    assert not main_table.comparison_table([ours, other]).rows
    assert end_to_end.PAIRED in study.text(end_to_end.STUDY, [ours, theirs])
    assert end_to_end.PAIRED not in study.text(end_to_end.STUDY, [ours, other])


def test_missing_data_set_is_named():
    with pytest.raises(InputError, match="atlantis"):
        main_table.draw([record("gcn", "ENT", [0.8])], "atlantis")


def test_the_papers_grid_has_48_cells_for_attention_and_16_without():
    for method, count in (("gat", 48), ("gcn", 16)):
        recipe = recipes.recipe("cora", method)
        assert len(tune.grid_cells(recipe, tune.parse_grid([], recipe))) == count


def test_cells_of_a_batch_differ_in_floats_only():
    recipe = recipes.recipe("cora", "gat")
    grid = {"heads": (1, 4), "lr": (0.01, 0.02, 0.03), "dropout": (0.0, 0.5)}
    cells = tune.grid_cells(recipe, grid)
    assert tune.first_batch(cells, 4, "gat") == cells[:4]
    assert tune.first_batch(cells, 100, "gat") == cells[:6]
    assert tune.first_batch(cells[5:], 2, "gat") == cells[5:6]
    assert {cell["heads"] for cell in cells[:6]} == {1}


def test_dropout_of_a_grid_is_that_of_the_input_too():
    recipe = recipes.recipe("cora", "gat")
    cells = tune.grid_cells(recipe, {"dropout": (0.0, 0.3)})
    assert [cell["input_dropout"] for cell in cells] == [0.0, 0.3]
    cells = tune.grid_cells(recipe, {"dropout": (0.1,), "input_dropout": (0.2,)})
    assert (cells[0]["dropout"], cells[0]["input_dropout"]) == (0.1, 0.2)


@pytest.mark.parametrize("axis", ["lr", "lr=", "speed=1", "lr=fast", "heads=1.5"])
def test_a_bad_axis_is_refused(axis):
    with pytest.raises(InputError):
        tune.parse_grid([axis], recipes.recipe("cora", "gat"))


def test_an_axis_is_given_once():
    with pytest.raises(InputError, match="not a new axis"):
        tune.parse_grid(["lr=0.1", "lr=0.2"], recipes.recipe("cora", "gat"))


def test_tuned_chooses_by_validation_not_by_test():
    records = [
        record("gcn", "ENT", [0.9], validation=1.2, lr=0.1),
        record("gcn", "ENT", [0.7], validation=1.5, lr=0.01),
        record("mlp", "ENT", [0.9], validation=1.9, lr=0.5),
    ]
    assert tuned.chosen(records, "cora", "gcn") == {"lr": 0.01}
    assert tuned.chosen(records, "cora", "gat") is None


def test_nothing_is_trained_twice_by_tuning_and_the_main_table(tmp_path, cache):
    few = "--set=max_steps=11", "--set=hidden=8", "--splits=1", "--seeds=2"
    one = "--dataset=digits", "--method=mlp", *few, f"--out={tmp_path}"

    def call(*words):
        code, _, errors = binaries.call(*words, cache=cache)
        assert code == 0, errors
        return errors

    assert "cells 1 to 1 of 1" in call("tune", *one, "--grid=lr=0.02")
    chosen = f"--tuned={tmp_path / tune.STUDY.file}"
    main = "end_to_end", "--datasets=digits", "--methods=mlp", *few, f"--out={tmp_path}"
    assert "is taken from" in call(*main, chosen)
    (taken,) = read_records(tmp_path / main_table.FILE)
    assert taken["hyperparameters"]["lr"] == 0.02
    assert "mlp on digits:" in call(*main)
    assert "cells" not in call("tune", *one, "--grid=lr=0.01,0.02")
    found = read_records(tmp_path / tune.STUDY.file)
    assert [r["hyperparameters"]["lr"] for r in found] == [0.02, 0.01]


@pytest.mark.parametrize("flag", ["--datasets=", "--methods="])
def test_an_empty_list_is_said_to_be_empty(tmp_path, cache, flag):
    code, out, err = binaries.call("end_to_end", flag, f"--out={tmp_path}", cache=cache)
    assert (code, out, err) == (2, "", f"{flag[:-1]} is empty: name at least one.\n")


def test_best_ranks_cells_by_validation():
    cells = [{"lr": 0.1}, {"lr": 0.2}, {"lr": 0.3}]
    records = [
        record("gcn", "ENT", [0.9, 0.9], validation=1.0, lr=0.1),
        record("gcn", "ENT", [0.5, 0.5], validation=1.8, lr=0.2),
    ]
    ranked = tune.best(records, "cora", "gcn", cells, ((123,), (0, 1)))
    assert [pair[1][0]["hyperparameters"]["lr"] for pair in ranked] == [0.2, 0.1]


def test_results_accepts_these_records():
    check(record("gcn", "ENT", [0.9]))


def test_what_was_chosen_stands_beside_the_paper():
    records = [
        record("gat", "ENT", [0.8, 0.9], 1.2, lr=0.1, heads=4),
        record("gat", "ENT", [0.7, 0.8], 1.5, lr=0.01, heads=4),
        record("another", "ENT", [0.7], 1.5, lr=0.01),
    ]
    first, second = tune.draw(records).rows
    assert first[:5] == ["cora", "gat-ENT", "2", "2", "lr 0.01"]
    assert first[6].text == "75.0 ± 5.0 (90.1)"
    assert second[:5] == ["cora", "another-ENT", "1", "1", ""]
    assert second[6].text == "70.0 ± 0.0"


def shown(records):
    """The page of the main table, with single spaces."""
    return " ".join(study.markdown(end_to_end.STUDY, records).split())


def test_tuned_figures_are_shown_once_every_method_is_tuned():
    usual = {m: recipes.recipe("cora", m) for m in ("gcn", "oodgat")}
    starred = usual["gcn"] | {"lr": 0.5}
    tuned_gcn = record("gcn", "ENT", [0.83], **usual["gcn"] | {"lr": 0.1})
    tuned_ours = record("oodgat", "ATT", [0.95], **usual["oodgat"])
    records = [
        record("gcn", "ENT", [0.81], **usual["gcn"]),
        record("gcn", "ENT", [0.82], **starred),  # because of its test figure
        record("oodgat", "ATT", [0.91], **usual["oodgat"]),
    ]
    assert "| GCN * | 82.0" in shown(records)
    some = [*records, tuned_gcn | {"tuned": True}]
    assert [title for title, _ in main_table.titled(some)] == ["cora"]
    assert main_table.tuned_on(some) == ""
    every = [*some, tuned_ours | {"tuned": True}]
    text = shown(every)
    tuned_part, plain_part = text.split("**cora, settings of the authors' code**")
    assert tuned_part.startswith("**cora, tuned**")
    assert "| GCN | 83.0" in tuned_part
    assert "| GCN | 81.0" in plain_part
    assert "82.0" not in text
    assert "| OODGAT-ATT | **95.0" in tuned_part
    assert "Tuned: every row" in text
    assert main_table.tuned_on(every).startswith(" On cora validation has chosen")
    assert "*, settings" not in text
    # Other methods, of other tables, need no tuning.
    assert main_table.is_tuned([*every, record("oodgat-plus", "ATT", [0.9])], "cora")


def test_the_note_names_orders_that_are_not_significant():
    runs = {"auroc": [0.9, 0.91, 0.92, 0.93, 0.94, 0.95]}
    ours = record("oodgat", "ATT", runs["auroc"])
    ours["split_seeds"] = [123] * 3 + [1] * 3
    behind = [value - 0.05 for value in runs["auroc"]]
    even = [value + move for value, move in zip(behind, [0.1, 0.0] * 3, strict=True)]
    same = {"split_seeds": ours["split_seeds"]}
    records = [
        record("gcn", "ENT", behind) | same,
        record("gat", "ENT", even) | same,
        ours,
    ]
    text = main_table.note(records)
    assert "correction for all 2 comparisons), but for GAT on cora." in text
    assert "points between splits and by" in text
    assert ", but for" not in main_table.note([records[0], ours])
