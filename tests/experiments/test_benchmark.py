"""The benchmark: what a worker measures, how it is recorded, what is refused."""

import pytest
from support import binaries, synthetic

from experiments import benchmark
from experiments.support import speed
from oodgat_jax import graphs, training
from oodgat_jax.records import read_lines
from oodgat_jax.types import InputError

PLUGIN = """
from oodgat_jax.methods import METHODS

METHODS.register("mine", METHODS["mlp"])
"""


@pytest.fixture
def call(cache, tmp_path, monkeypatch):
    """Calls the binary in a folder that has a plug-in."""
    (tmp_path / "registers_mine.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XLA_FLAGS", binaries.QUICK["XLA_FLAGS"])
    flags = "--variants=sparse", "--runs=2", "--seconds=0.1", f"--out={tmp_path}"

    def call(*more):
        return binaries.call("benchmark", *flags, *more, cache=cache)

    return call


def test_a_plug_ins_method_on_a_generated_graph_beside_a_peer(call, tmp_path):
    given = "--datasets=", "--sizes=1000", "--peer=echo ms_per_step: 1e6"
    code, out, err = call(*given, "--plugin=registers_mine", "--method=mine")
    assert code == 0, err
    assert "times faster" in out
    (record,) = read_lines(tmp_path / "benchmark.jsonl")
    assert record["method"] == "mine"
    assert record["dataset"] == "generated-1000-20000"
    assert record["nodes"] == 1000
    assert record["ms_per_step"] > 0
    assert record["peak_memory_gb"] > 0.05
    assert record["matmul_gflops"] > record["gflops"] > 0
    assert record["peer_ms_per_step"] == 1e6


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--variants=fast"], "'fast'"),
        (["--datasets=atlantis"], "'atlantis'"),
        (["--sizes=ten"], "'ten'"),
        (["--sizes=10"], "'10'"),
        (["--method=mien"], "'mien'"),
        (["--scale", "--devices=two"], "'two'"),
        (["--scale", "--devices=0"], "'0'"),
        (["--scale", "--sizes=100"], "'100'"),
    ],
    ids=str,
)
def test_bad_flags_are_named(call, tmp_path, flags, named):
    code, out, err = call(*flags)
    assert (code, out) == (2, "")
    assert named in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("*.jsonl"))


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
    flops = speed.step_flops(graph, {"heads": 2, "hidden": 8}, 4)
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
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(clock))
    watch = speed.Watch(together=2, total=total)
    for steps, finished in seen:
        watch(training.Progress(steps, finished, 0, total, 1.0))
    assert watch.ms_per_step() == pytest.approx(ms)
