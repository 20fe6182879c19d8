"""Killed at any moment and started again, a long command ends with the same records."""

import itertools
import json
import os
import random
import signal
import time

import pytest
from support import binaries, forking

KILLS = 12
# Four cells in three batches: one and one of the first program, two of the second.
GRID = (
    *("--dataset=digits", "--method=mlp", "--splits=1", "--seeds=2"),
    *("--grid=lr=0.01,0.02", "--grid=hidden=4,8", "--set=max_steps=41"),
)
CELLS = 4


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def start(out, cache):
    return binaries.start("tune", *GRID, f"--out={out}", cache=cache)


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def records(out):
    """The lines of the records, without the times."""
    lines = (out / "tune.jsonl").read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    return [json.dumps({k: v for k, v in r.items() if k != "seconds"}) for r in kept]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, cache):
    """Records and table of a run that nobody disturbs."""
    out = tmp_path_factory.mktemp("whole")
    table = finish(start(out, cache))
    assert len(records(out)) == CELLS
    return records(out), table


def test_killed_at_random_moments(tmp_path, cache, whole):
    draw = random.Random(0)
    waits = [0.8 * (part + draw.random()) / KILLS for part in range(KILLS)]
    draw.shuffle(waits)  # each part of the time once, in any order
    waits, kills = itertools.cycle(waits), 0
    while kills < KILLS:
        process = start(tmp_path, cache)
        with process:
            first = process.stderr.readline()  # imports are over, training begins
            time.sleep(next(waits))
            kills += process.poll() is None
            process.send_signal(signal.SIGKILL)
        if "cell" not in first:  # all cells were there: begin anew
            assert records(tmp_path) == whole[0]
            (tmp_path / "tune.jsonl").unlink()
        elif (tmp_path / "tune.jsonl").exists():
            found = records(tmp_path)
            assert found == whole[0][: len(found)]
    assert finish(start(tmp_path, cache)) == whole[1]
    assert records(tmp_path) == whole[0]


def test_an_interrupt_says_how_to_go_on(tmp_path, cache, whole):
    with start(tmp_path, cache) as process:
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("Interrupted: stopped before the end. The")
    assert "Traceback" not in err
    assert finish(start(tmp_path, cache)) == whole[1]
    assert records(tmp_path) == whole[0]


def test_a_reader_who_leaves_early_sees_no_traceback(tmp_path):
    command = "-m", "experiments.findings", f"--records_dir={tmp_path}"
    variables = os.environ | {"OODGAT_CACHE_DIR": str(tmp_path)}
    with forking.start(*command, env=variables) as process:
        process.stdout.close()
        process.wait(timeout=300)
        assert (process.returncode, process.stderr.read()) == (141, "")
