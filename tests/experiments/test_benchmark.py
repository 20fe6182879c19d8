"""The benchmark: what a worker measures, how it is recorded, what is refused."""

import json

import numpy as np
import pytest
from support import binaries, compiling, synthetic

from experiments.support import peers, speed, step_time
from oodgat_jax import graphs, kernels, splits, training
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
    monkeypatch.setenv("XLA_FLAGS", compiling.FLAGS)  # of its workers
    monkeypatch.setenv(*next(iter(binaries.QUICK.items())))
    flags = "--variants=sparse", "--runs=2", "--seconds=0.1", f"--out={tmp_path}"

    def call(*more):
        return binaries.call("benchmark", *flags, *more, cache=cache)

    return call


def test_a_plug_ins_method_on_a_generated_graph_beside_a_peer(call, tmp_path):
    given = "--datasets=", "--sizes=1000", "--peer=echo ms_per_step: 1e6", "--rounds=1"
    code, out, err = call(*given, "--plugin=registers_mine", "--method=mine")
    assert code == 0, err
    assert "times faster" in out
    (record,) = read_lines(tmp_path / "benchmark.jsonl")
    assert record["method"] == "mine"
    assert record["dataset"] == "generated-1000-20000"
    assert record["nodes"] == 1000
    assert record["ms_per_step"] > 0
    assert record["peak_memory_gb"] > 0.05
    assert 0 <= record["others_cores"] <= record["machine"]["cores"]
    assert record["matmul_gflops"] > record["gflops"] > 0
    if kernels.status().available:
        assert record["gather_gbytes"] > 0
    assert record["peer_ms_per_step"] == 1e6
    assert len(record["peer"]["ratios"]) == 1
    assert "versions: python" in out


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--variants=fast"], "'fast'"),
        (["--datasets=atlantis"], "'atlantis'"),
        (["--sizes=ten"], "'ten'"),
        (["--sizes=10"], "'10'"),
        (["--method=mien"], "'mien'"),
        (["--method=mlp", "--peer=pyg"], "'mlp'"),
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
        peers.ask(command)


def test_a_peer_is_read():
    command = "echo about: fast; echo ms_per_step: 12.5; echo cpu_ms_per_step: 20"
    assert peers.ask(command) == (12.5, 20.0, "fast")
    assert peers.ask("echo ms_per_step: 1e3") == (1000.0, None, "")


def test_rounds_of_ours_and_theirs_alternate():
    order = []

    def ours():
        order.append("ours")
        return peers.Answer(2.0 * len(order), 1.0)

    def theirs():
        order.append("theirs")
        return peers.Answer(20.0, 7.0)

    found = peers.alternate(ours, theirs, 2)
    assert order == ["ours", "theirs", "ours", "theirs"]
    assert found.ratios == [10.0, pytest.approx(20 / 6)]
    assert found.cpu_ratios == [7.0, 7.0]
    assert found.record("mine")["peer"]["name"] == "mine"


def test_a_peer_gets_the_graph_the_split_and_the_recipe(tmp_path):
    dataset = synthetic.generate(1000, 4000, 16)
    split = splits.draw(dataset, 0)
    peers.write(str(tmp_path / "data.npz"), dataset, split, {"lr": 0.01})
    found = np.load(tmp_path / "data.npz")
    senders, receivers = found["edges"]
    graph = graphs.build(dataset, "segment")
    np.testing.assert_array_equal(senders, graph.senders)
    np.testing.assert_array_equal(receivers, graph.receivers)
    np.testing.assert_array_equal(found["train"], split.train)
    x = np.zeros(found["shape"], np.float32)
    x[found["rows"], found["columns"]] = found["values"]
    np.testing.assert_array_equal(x, dataset.features)
    assert json.loads(str(found["recipe"])) == {"lr": 0.01}


def _record(dataset, ms, method="oodgat", peer=None, theirs=(), **more):
    record = {"dataset": dataset, "method": method, "variant": "auto"}
    record |= {"kernel": "native", "runs": 9, "devices": 2, "nodes": 5, "edges": 10}
    record |= {"ms_per_step": ms, "peak_memory_gb": 1.0, "compile_seconds": 2.0}
    record |= {"machine": {"processor": "P", "cores": 2}, "others_cores": 0.25}
    record |= {"time": "2026-01-02T03:04:05+00:00"}
    if peer:
        ours = [peers.Answer(ms)] * len(theirs)
        record |= peers.Rounds(ours, [peers.Answer(t) for t in theirs]).record(peer)
    return record | more


def test_only_measurements_of_one_run_are_divided():
    old = {"dataset": "cora", "method": "oodgat", "variant": "sparse"}
    old |= {"runs": 9, "ms_per_step": 1.0, "edges": 10, "nodes": 5, "devices": 2}
    found = [
        old,
        _record("cora", 2.0, peer="pyg", theirs=[20.0, 24.0, 28.0]),
        _record("cora", 4.0, peer=speed.AUTHORS, theirs=[100.0]),
        _record("generated-5-10", 3.0),
    ]
    (_, beside), (_, alone) = speed.draw(found)
    assert [row[2:6] for row in beside.rows] == [
        ["PyG", "2.0", "24", "12.0 (10.0-14.0)"],
        [speed.AUTHORS, "4.0", "100", "25.0 (25.0-25.0)"],
    ]
    assert [row[0] for row in alone.rows] == ["generated, 5 nodes, 10 edges"]
    assert speed.summary(found).rows == [["cora", "4.0", "100", "25.0"]]
    note = speed.note(found)
    assert "P, 2 cores, 2026-01-02; other work took 0.2 of the cores" in note


def test_without_a_peer_there_is_no_ratio():
    (only,) = speed.draw([_record("cora", 2.0)])
    assert only[0] == "Ours alone"
    assert speed.summary([_record("cora", 2.0)]).rows == []


def test_flops_of_a_step():
    dataset = synthetic.generate(1000, 4000, 16)
    graph = graphs.build(dataset, "sparse")
    edges = graph.senders.shape[0]
    flops = step_time.step_flops(graph, {"heads": 2, "hidden": 8}, 4)
    features = 2 * 2 * 1000 * 16 * 16
    between = 3 * 2 * 1000 * 16 * 8
    assert flops == features + between + 4 * 2 * edges * 2 * (8 + 4)


def test_gathers_of_a_step():
    dataset = synthetic.generate(1000, 4000, 16)
    graph = graphs.build(dataset, "sparse")
    edges = graph.senders.shape[0]
    recipe = {"heads": 2, "hidden": 8, "attention_dropout": 0.75}
    gathers = step_time.step_gathers(graph, recipe, 4)
    a_layer = edges * 2 * (2 * 0.25 + 0.1)  # rows, forward and backward; validation
    assert gathers == (pytest.approx(a_layer * 4 * (8 + 4)), 2 * 1000, 8)


def test_the_report_has_both_limits():
    best = {"gflops": 30.0, "matmul_gflops": 90.0, "runs_per_minute": 1.0}
    old = _record("cora", 2.0, **best)
    new = old | {"gathered_gbytes": 3.0, "gather_gbytes": 12.0}
    header, *_, without, with_limit = speed.table([old, new]).splitlines()
    assert header.endswith("of gather")
    assert without.endswith("33 %")
    assert with_limit.split()[-6:] == ["30.0", "33", "%", "3.0", "25", "%"]


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
    monkeypatch.setattr(step_time.time, "perf_counter", lambda: next(clock))
    watch = step_time.Watch(together=2, total=total)
    for steps, finished in seen:
        watch(training.Progress(steps, finished, 0, total, 1.0))
    assert watch.ms_per_step() == pytest.approx(ms)
