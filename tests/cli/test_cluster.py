"""Several processes on this machine: the same numbers, one writer, lost peers."""

import json
import os
import pathlib
import signal
import socket
import time

import numpy as np
import pytest
from support import forking
from support.binaries import PACED, QUICK

TESTS = pathlib.Path(__file__).parent.parent
STEPS = 41  # in which there is time to kill a process
FEW = ["--set=max_steps=11"]
PATIENCE = 600  # seconds for what should take one minute on a free machine
# A process that dies while the other waits for it is missed sooner than users miss it.
MISSED = """
from oodgat_jax.cli import cluster

cluster.HEARTBEAT = 5
"""


def free_port():
    with socket.socket() as server:
        server.bind(("localhost", 0))
        return server.getsockname()[1]


def start(arguments, cwd=None, **variables):
    return forking.start(*arguments, cwd=cwd, env=os.environ | QUICK | variables)


def detect(out, *more):
    """The command, with the method and the sizes that compile in the shortest time."""
    return [
        *("-m", "experiments.detect", "--dataset=generated-2000-20000"),
        *("--method=gcn", "--splits=1", "--seeds=2", f"--out={out}"),
        *(f"--set=max_steps={STEPS}", "--set=check_every=2", "--set=patience=10000"),
        *("--set=hidden=4", *more),
    ]


def pair(out, *more, cwd=None):
    """Two processes with two devices each, and the graph divided among all."""
    where = (f"--coordinator=localhost:{free_port()}", "--num_processes=2")
    where += ("--mesh=graph:4",)
    return [
        start(detect(out, *where, f"--process_id={number}", *more), cwd)
        for number in range(2)
    ]


def only_records(out):
    lines = (out / "results.jsonl").read_text().splitlines()
    return {record["detector"]: record for record in map(json.loads, lines)}


def test_losses_of_two_processes_are_those_of_one_device():
    port = free_port()
    script = ["-m", "support.shard_cases", "2", "steps", "20", "runs:2,graph:2"]
    processes = [
        start(script, cwd=TESTS, SHARD_CASES=f"{port},{number}") for number in range(2)
    ]
    for process in processes:
        out, errors = process.communicate(timeout=PATIENCE)
        assert out.endswith("same\n"), errors


def test_one_of_two_processes_writes_what_one_process_would(tmp_path):
    one = start(detect(tmp_path / "one", *FEW))
    assert one.wait(PATIENCE) == 0, one.stderr.read()
    first, second = pair(tmp_path / "two", *FEW)
    out, errors = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, errors
    assert "2 runs" in out
    assert "2 runs" not in second.communicate(timeout=PATIENCE)[0]
    alone, together = (only_records(tmp_path / name) for name in ("one", "two"))
    assert alone.keys() == together.keys()
    for detector, record in alone.items():
        other = together[detector]
        assert record["best_step"] == other["best_step"]
        np.testing.assert_allclose(other["validation"], record["validation"], atol=1e-4)
        for name, values in record["metrics"].items():
            found = other["metrics"][name]
            np.testing.assert_allclose(found, values, atol=2e-3, err_msg=name)


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def whole_checkpoints(out):
    """Those whose names are bare numbers; orbax writes elsewhere and renames."""
    return [p for p in out.glob("checkpoints/*/*") if p.name.isdecimal()]


def test_a_process_that_dies_is_reported_and_leaves_a_checkpoint(tmp_path):
    (tmp_path / "paced.py").write_text(PACED + MISSED)
    more = ("--checkpoint_seconds=0", "--plugin=paced")
    first, second = pair(tmp_path, *more, cwd=tmp_path)
    wait_for(lambda: any(whole_checkpoints(tmp_path)))
    second.send_signal(signal.SIGKILL)
    second.communicate()
    _, errors = first.communicate(timeout=60)
    assert first.returncode != 0
    assert "another" in errors
    assert "process" in errors
    assert not (tmp_path / "results.jsonl").exists()
    assert any(whole_checkpoints(tmp_path))
    again = start(detect(tmp_path))
    _, errors = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, errors
    assert "Continuing from the last checkpoint" in errors
    (record,) = only_records(tmp_path).values()
    assert record["steps_run"] == [STEPS, STEPS]
    assert not any(tmp_path.glob("checkpoints/*"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--mesh=rows:2"], "--mesh"),
        (["--coordinator=localhost:1"], "--process_id"),
        (["--mesh=graph:2", "--method=gkde"], "--mesh"),
    ],
    ids=["axis", "coordinator", "method"],
)
def test_wrong_flags_are_one_sentence(tmp_path, flags, message):
    graph = "--dataset=generated-2000-20000"
    process = start(["-m", "experiments.detect", graph, f"--out={tmp_path}", *flags])
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert message in errors.splitlines()[-1]
    assert "Traceback" not in errors
