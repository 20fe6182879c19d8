import json
import subprocess
import sys

import pytest
from support import synthetic

from experiments import benchmark
from oodgat_jax import graphs, training
from oodgat_jax.types import InputError


def run_benchmark(tmp_path, *more):
    command = [
        sys.executable,
        "-m",
        "experiments.benchmark",
        "--variants=sparse",
        "--runs=2",
        "--seconds=0.1",
        f"--out={tmp_path}",
        *more,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_measures_a_generated_graph_beside_a_peer(tmp_path):
    done = run_benchmark(
        tmp_path, "--datasets=", "--sizes=1000", "--peer=echo ms_per_step: 1e6"
    )
    assert done.returncode == 0, done.stderr
    assert "times faster" in done.stdout
    (line,) = (tmp_path / "benchmark.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["dataset"] == "generated-1000-20000"
    assert record["nodes"] == 1000
    assert record["ms_per_step"] > 0
    assert record["peak_memory_gb"] > 0.05
    assert record["matmul_gflops"] > record["gflops"] > 0
    assert record["peer_ms_per_step"] == 1e6


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        ("--variants=fast", "fast"),
        ("--datasets=atlantis", "atlantis"),
        ("--sizes=ten", "ten"),
        ("--sizes=10", "10"),
    ],
)
def test_bad_flags_are_named(tmp_path, flag, named):
    done = run_benchmark(tmp_path, flag)
    assert done.returncode == 2
    assert f"'{named}'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command", ["echo no figure", "echo ms_per_step: 5; false", "no-such-command"]
)
def test_a_peer_without_a_figure_is_refused(command):
    with pytest.raises(InputError, match="ms_per_step"):
        benchmark.peer_ms(command)


def test_a_peer_is_read():
    assert benchmark.peer_ms("echo started; echo ms_per_step: 12.5") == 12.5


def test_flops_of_a_step():
    dataset = synthetic.generate(1000, 4000, 16)
    graph = graphs.build(dataset, "sparse")
    edges = graph.senders.shape[0]
    flops = benchmark.step_flops(graph, {"heads": 2, "hidden": 8}, 4)
    features = 2 * 2 * 1000 * 16 * 16
    between = 3 * 2 * 1000 * 16 * 8
    assert flops == features + between + 4 * 2 * edges * 2 * (8 + 4)


@pytest.mark.parametrize(
    ("total", "times", "seen", "ms"),
    [
        # 100 s were the start, and from 103 s on one run was alone.
        (3, [0, 100, 101, 103, 150], [(20, 0), (40, 0), (80, 2), (120, 3)], 3e3 / 60),
        # The second pair of runs starts in the third call.
        (4, [0, 10, 11, 21, 23], [(20, 0), (40, 2), (60, 2), (80, 4)], 3e3 / 40),
        # There is but one call.
        (2, [0, 2], [(40, 2)], 50),
    ],
    ids=["idle devices", "starts", "one call"],
)
def test_watch_counts_calls_whose_runs_are_all_under_way(
    total, times, seen, ms, monkeypatch
):
    clock = iter(times)
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: next(clock))
    watch = benchmark.Watch(together=2, total=total)
    for steps, finished in seen:
        watch(training.Progress(steps, finished, 0, total, 1.0))
    assert watch.ms_per_step() == pytest.approx(ms)
