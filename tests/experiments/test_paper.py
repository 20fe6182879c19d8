"""All of the paper by one command: its plan, what is stale, killed and continued."""

import json
import random
import signal
import time
from unittest import mock

import jax
import pytest
from absl import flags
from support import binaries
from support.example_records import record

from experiments import edge_removal, end_to_end, paper, tune
from experiments.support import paper_plan, paper_state, study_flags
from experiments.support.studies import STUDIES
from oodgat_jax.cli import shared_flags
from oodgat_jax.methods import recipes
from oodgat_jax.records import append_records
from oodgat_jax.types import InputError

FEW = (
    *("--datasets=digits", "--quick", "--only=homophily,edge_removal"),
    *("--set=max_steps=11", "--set=hidden=8"),
)
TRAININGS = 4  # the homophily, and three shares of edges
KILLS = 3


@pytest.fixture(scope="module")
def call(cache):
    """Calls the binary with these flags; what other tests have compiled stays."""
    with mock.patch.object(jax, "clear_caches"):
        yield lambda *words: binaries.call("paper", *words, cache=cache)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, call):
    """A folder of records that nobody disturbed, and what was printed."""
    folder = tmp_path_factory.mktemp("whole")
    code, out, err = call(*FEW, f"--out={folder}")
    assert code == 0, err
    return folder, out, err


def lines(folder):
    """Records by file, without what the clock says."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        each = [json.loads(line) for line in path.read_text().splitlines()]
        found[path.name] = [{**record, "seconds": 0} for record in each]
    return found


def test_the_plan_names_every_study_and_writes_nothing(call, tmp_path):
    out = tmp_path / "out"
    words = "--plan", "--quick", "--datasets=digits,cora", f"--out={out}"
    code, shown, err = call(*words)
    assert (code, out.exists()) == (0, False), err
    assert "Left out, since their files are missing: cora (" in err
    rows = [line.split() for line in shown.splitlines()[2:] if line]
    names = [row[0] for row in rows]
    steps = [s.study.name for s in _steps(["digits", "cora"])]
    assert names == [*(n for n in dict.fromkeys(steps) if n != "gkde"), "all"]
    known = {study.name for study in STUDIES}
    assert set(steps) <= known
    assert rows[-1][3:6] == ["0", "0", rows[-1][2]]  # there, stale, missing


def _steps(names):
    found = paper_plan.Names(list(names), ["cora"], [])
    return paper_plan.steps(found, study_flags.RECORDS, quick=True)


@pytest.mark.parametrize("method", end_to_end.TABLE_METHODS)
def test_the_grid_is_a_part_of_the_papers_and_has_every_methods_settings(method):
    recipe = recipes.recipe("cora", method)
    axes = paper_plan.GKDE_GRID if method == "gkde" else paper_plan.GRID
    for name, values in tune.parse_grid(axes, recipe).items():
        assert set(values) <= set(tune.PAPER_GRID[name])
        assert recipe[name] in values


def test_every_step_has_flags_that_exist_and_can_be_chosen():
    every = _steps(["digits", "cora"])
    for step in every:
        own = getattr(step.module, "OWN", {})
        assert step.flags.keys() <= shared_flags.chosen(step.module.SHARED, own).keys()
    names = {step.study.name for step in every}
    about = paper.OWN["only"][2].replace(".", ",").replace(":", ",").split(",")
    assert names <= {word.strip() for word in about}
    assert {s.study.name for s in paper_plan.choose(every, ["gkde"])} == {"gkde"}
    with pytest.raises(InputError, match="no study of the paper 'unheard'"):
        paper_plan.choose(every, ["unheard"])


def test_what_is_made_is_recorded_shown_and_not_made_again(whole, call):
    folder, out, err = whole
    found = lines(folder)
    assert len(found["edge_removal.jsonl"]) == 3
    assert len(found["homophily.jsonl"]) == 1
    assert f"Written: {folder / 'report.html'}" in out
    assert (folder / "report.html").is_file()
    assert "[2 of 4 trainings, " in err
    code, _, err = call(*FEW, f"--out={folder}")
    assert code == 0
    assert err.count("is recorded already") == TRAININGS
    assert "trainings, " not in err
    assert lines(folder) == found


def test_check_lists_what_is_stale_or_missing(whole, call, tmp_path):
    flag = f"--out={tmp_path}"
    code, out, err = call("--check", *FEW, f"--out={whole[0]}")
    assert (code, out) == (0, "All 4 records are of this code.\n"), err
    for path in whole[0].glob("*.jsonl"):
        old = path.read_text()
        if path.name == edge_removal.STUDY.file:
            first, *_ = old.splitlines()
            old = json.dumps(json.loads(first) | {"code": "other"}) + "\n"
        (tmp_path / path.name).write_text(old)
    code, out, _ = call("--check", *FEW, flag)
    assert (code, out.splitlines()) == (
        1,
        [
            "edge_removal: gcn on digits, 0% of inter-edges removed: 1 stale",
            "edge_removal: gcn on digits, 50% of inter-edges removed: 1 missing",
            "edge_removal: gcn on digits, 100% of inter-edges removed: 1 missing",
        ],
    )
    code, out, _ = call("--check", "--accept_stale", *FEW, flag)
    assert (code, "stale" in out, out.count("missing")) == (1, False, 2)


def kinds(folder):
    """What was recorded, in order, by file."""
    keys = ("dataset", "method", "removed_inter_edges")
    return {
        name: [tuple(record.get(key) for key in keys) for record in records]
        for name, records in lines(folder).items()
    }


def test_killed_and_started_again_it_repeats_nothing(whole, cache, tmp_path):
    draw, before = random.Random(1), {}
    for _ in range(KILLS):
        with binaries.start("paper", *FEW, f"--out={tmp_path}", cache=cache) as process:
            for line in process.stderr:  # imports are over, training begins
                if "trainings, " in line or "recorded" in line:
                    break
            time.sleep(draw.uniform(0.0, 2.0))
            process.send_signal(signal.SIGKILL)
        now = lines(tmp_path)
        assert all(now[name][: len(old)] == old for name, old in before.items())
        before = now
    with binaries.start("paper", *FEW, f"--out={tmp_path}", cache=cache) as process:
        _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert all(lines(tmp_path)[name][: len(old)] == old for name, old in before.items())
    assert kinds(tmp_path) == kinds(whole[0])


def test_a_first_look_does_not_go_among_the_projects_records(call):
    code, out, err = call("--quick", f"--out={study_flags.RECORDS}")
    assert (code, out) == (2, "")
    assert err.startswith("--quick is a first look, and ")


def test_time_is_told_by_past_records(tmp_path):
    keys = {"dataset": "cora", "method": "gcn", "split_seeds": [1, 2]}
    keys |= {"hyperparameters": {"max_steps": 500}}
    made = {"method": "gcn", "seconds": 9.0, "hyperparameters": {"max_steps": 1000}}
    log = tmp_path / "log.jsonl"
    slower = {**made, "seconds": 90.0}  # by older code
    append_records(log, record("cora", "A", [0.9] * 9, **slower))
    append_records(log, record("cora", "A", [0.9] * 9, **made))
    append_records(log, record("cora", "B", [0.9] * 9, **made, detector_seconds=4.5))
    past = paper_state.Past(log)
    one, two = ([{**keys, "detector": d} for d in names] for names in ("A", "AB"))
    # By hand: nine runs took 9 s, these are two of half the steps.
    assert past.seconds(one) == pytest.approx(1.0)
    # One training, and two runs of a detector of which nine took 4.5 s.
    assert past.seconds(two) == pytest.approx(1.0 + 1.0)
    assert past.seconds([{**keys, "dataset": "unheard"}]) is None
    states = [paper_state.State("a", "b", 2, 0, 2, None)]
    assert paper_state.time_left(states) == "more than 0 s"


def test_flags_of_a_study_are_there_for_a_while():
    own = {"shade": (flags.DEFINE_string, "blue", "A color.", {})}
    flags.FLAGS.mark_as_parsed()
    with study_flags.given(own, {}):
        assert flags.FLAGS.shade == "blue"
        with study_flags.given(own, {"shade": "red"}):
            assert flags.FLAGS.shade == "red"
        assert flags.FLAGS.shade == "blue"
    assert "shade" not in flags.FLAGS
