"""Successive halving: rungs, who goes on, and what is chosen and recorded."""

import json
import math

import pytest
from support import binaries
from support.example_records import record

from experiments import tune
from experiments.support import halving, main_table, study_flags, trainings, tuned
from experiments.support.halving import Rung
from oodgat_jax.methods import METHODS
from oodgat_jax.records import read_records

CELLS = [
    {"lr": lr, "max_steps": 1000, "check_every": 10} for lr in (1.0, 2.0, 3.0, 4.0)
]
LADDER = [Rung(1, 1, 0.3), Rung(1, 2, 1.0)]


def measured(cell, score, rung, number):
    """A record of a cell at a rung of the ladder."""
    splits, seeds = rung.numbers
    runs = len(splits) * len(seeds)
    keys = {"split_seeds": list(splits) * runs, "model_seeds": list(seeds)}
    keys |= {"hyperparameters": halving.at(cell, rung), "failed_runs": []}
    keys |= {"validation": [score] * runs, "method": "gcn"}
    return record("cora", "ENT", [0.5] * runs, **keys, **halving.key(number, 2))


@pytest.fixture
def records():
    """Rung 1, where the second and the fourth cell are ahead."""
    scores = (0.3, 1.2, 0.5, 1.1)
    pairs = zip(CELLS, scores, strict=True)
    return [measured(cell, score, LADDER[0], 1) for cell, score in pairs]


def test_rungs_end_with_all_runs_and_repeat_nothing():
    assert halving.rungs(3, 3) == [Rung(3, 1, 0.3), Rung(3, 1, 1.0), Rung(3, 3, 1.0)]
    assert halving.rungs(3, 1) == [Rung(3, 1, 0.3), Rung(3, 1, 1.0)]
    assert halving.rungs(1, 1) == [Rung(1, 1, 0.3), Rung(1, 1, 1.0)]
    assert Rung(2, 2, 1.0).numbers == ((123, 1), (0, 1))


@pytest.mark.parametrize(("every", "steps"), [(10, 301), (9, 298), (2000, 1000)])
def test_the_last_step_of_a_rung_is_a_check(every, steps):
    cell = {"max_steps": 1000, "check_every": every}
    assert halving.at(cell, LADDER[0])["max_steps"] == steps
    assert halving.at(cell, LADDER[1]) == cell


def test_the_best_by_validation_go_on(records):
    asked = "cora", "gcn", CELLS, LADDER
    assert halving.kept(records, *asked, 1) == CELLS
    assert halving.kept(records, *asked, 2, keep=0.5) == [CELLS[1], CELLS[3]]
    assert halving.kept(records, *asked, 2, keep=0.1) == [CELLS[1]]
    # Without its record, a cell is behind all others.
    assert halving.kept(records[2:], *asked, 2, keep=0.5) == CELLS[2:]


def test_the_methods_own_settings_reach_the_last_rung(records):
    asked = "cora", "gcn", CELLS, LADDER
    found = halving.kept(records, *asked, 2, keep=0.1, own=CELLS[0])
    assert found == [CELLS[0], CELLS[1]]
    assert halving.kept(records, *asked, 2, keep=0.1, own=CELLS[1]) == [CELLS[1]]
    other = {**CELLS[0], "lr": 9.0}  # not of the grid
    assert halving.kept(records, *asked, 2, keep=0.1, own=other) == [CELLS[1]]
    longer = [*LADDER, LADDER[1]]  # the second rung is not the last
    assert CELLS[2] not in halving.kept(records, *asked[:3], longer, 2, 0.1, CELLS[2])


def test_only_the_last_rung_is_chosen_from(records):
    assert tuned.chosen(records, "cora", "gcn") is None
    plain = measured(CELLS[0], 1.9, LADDER[1], 2)
    del plain[tuned.KEY]  # as by a grid without halving
    assert tuned.chosen([*records, plain], "cora", "gcn") == CELLS[0]
    (row,) = tune.draw([*records, plain]).rows  # of the grid, as no rung is the last
    assert row[2] == "1"
    last = [measured(CELLS[n], s, LADDER[1], 2) for n, s in ((1, 0.9), (3, 1.0))]
    assert tuned.chosen([plain, *records, *last], "cora", "gcn") == CELLS[3]
    assert [len(cells) for cells in halving.by_rung(records + last, "cora", "gcn")] == [
        4,
        2,
    ]
    (row,) = tune.draw([*records, *last]).rows
    assert row[:5] == ["cora", "gcn-ENT", "4, 2", "2", "lr 4"]


def test_a_halved_grid_is_recorded_continued_and_taken_into_the_main_table(
    tmp_path, cache
):
    few = "--set=max_steps=41", "--set=hidden=8", "--splits=1", "--seeds=2"
    grid = "--grid=lr=0.001,0.01,0.1", "--grid=weight_decay=0,0.001"
    one = "--datasets=digits", "--methods=mlp", *few, f"--out={tmp_path}"

    def call(name, *words):
        code, out, errors = binaries.call(name, *one, *words, cache=cache)
        assert code == 0, errors
        return out, errors

    out, _ = call("tune", "--halving", *grid, "--keep=0.34")
    log = tmp_path / tune.STUDY.file
    found = read_records(log)
    assert [r[tuned.KEY][0] for r in found] == [1] * 6 + [2] * 3 + [3] * 2
    assert {r["hyperparameters"]["max_steps"] for r in found[:6]} == {11}
    last = max(found[-2:], key=tuned.validation)["hyperparameters"]
    assert "2 cells of 6 by halving" in out
    assert f"lr={last['lr']}" in out.partition("\n")[0]
    _, errors = call("tune", "--halving", *grid, "--keep=0.34")
    assert errors.count("recorded already") == 3
    assert read_records(log) == found
    _, errors = call("end_to_end", f"--tuned={log}")
    assert "is taken from" in errors
    (taken,) = read_records(tmp_path / main_table.FILE)
    assert (taken["tuned"], taken["hyperparameters"]) == (True, last)


@pytest.mark.parametrize(("method", "place"), [("gat", 8), ("oodgat", 4)])
def test_fewer_runs_keep_the_choice_of_the_full_grid_on_cora(method, place):
    """By the committed grids of nine runs; fewer steps cannot be read off them."""
    every = read_records(study_flags.RECORDS / tune.STUDY.file)
    detector = METHODS[method].detectors[0]
    plain = [r for r in every if tuned.KEY not in r and r["detector"] == detector]
    grid = tuned.comparable(plain, "cora", method)
    assert len(grid) == 48
    best = max(grid, key=tuned.validation)

    def ranked(cells, seeds, splits):
        pairs = list(zip(grid[0]["split_seeds"], grid[0]["model_seeds"], strict=True))
        runs = [n for n, (s, m) in enumerate(pairs) if s in splits and m in seeds]
        return sorted(cells, key=lambda r: -sum(r["validation"][n] for n in runs))

    first = ranked(grid, (0,), (123,))
    assert first.index(best) == place
    left = first[: math.ceil(halving.KEEP * len(grid))]
    assert ranked(left, (0,), (123, 1, 2))[0] == best


@pytest.mark.parametrize("method", ["mlp", "gcn", "sage", "gat", "gatv2", "oodgat"])
def test_halving_chooses_what_the_full_grid_does_on_digits(method):
    """By committed records: nine runs of all twelve cells, also those of rungs."""
    every = read_records(study_flags.RECORDS / tune.STUDY.file)
    mine = [r for r in every if (r["dataset"], r["method"]) == ("digits", method)]
    halved = [r for r in mine if tuned.KEY in r]
    whole = [r for r in mine if len(r["split_seeds"]) == 9]
    full = [{k: v for k, v in r.items() if k != tuned.KEY} for r in whole]
    assert len({tuple(r["hyperparameters"].values()) for r in full}) == 12
    assert halved
    choices = [tuned.chosen(each, "digits", method) for each in (halved, full)]
    assert choices[0] == choices[1]


def test_records_of_a_rung_are_found_by_their_keys(records):
    stored = json.loads(json.dumps(records))
    wanted = trainings.wanted(
        halving.at(CELLS[0], LADDER[0]), "cora", "gcn", (123,), (0,), ("ENT",)
    )
    assert trainings.find(stored, [w | halving.key(1, 2) for w in wanted])
    assert not trainings.find(stored, [w | halving.key(2, 2) for w in wanted])
