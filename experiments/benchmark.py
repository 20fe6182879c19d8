"""Measures how fast training is: ms a step and run, memory, compile time, GFLOP/s.

  python -m experiments.benchmark
  python -m experiments.benchmark --datasets=cora,coauthor-cs --variants=sparse
  python -m experiments.benchmark --sizes=10000,20000,40000
  python -m experiments.benchmark --datasets=cora --peer='python their_train.py cora'
  python -m experiments.benchmark --scale --sizes=100000,1000000 --devices=1,2,4,8

Every measurement is a process of its own, so that its memory and its compile time are
its own. "ms" is the time of a step divided by the runs that go at the same time, taken
while all devices are busy with runs under way, validation included. Variants:

  sparse     products in the CSR kernel, runs on one device per core
  segment    segment operations, runs on one device per core
  one        sparse, one device, runs one after the other
  vmap       segment operations, one device, all runs in one `vmap`

The last columns compare with what a plain dense product and a plain copy of memory
reach in the same process: the share of the former's GFLOP/s.

--peer runs your command right after our own measurement of each data set. It must
print `ms_per_step: X`; the ratio is added to the table. Records are appended to
OUT/benchmark.jsonl.

--scale measures instead what a step of a spread graph costs each device, for every
size and every number of simulated devices: memory, bytes moved and time; see
docs/scale.md. Records are appended to OUT/scale.jsonl.
"""

import concurrent.futures
import datetime
import itertools
import multiprocessing
import pathlib
import re
import subprocess
import sys
import time
from typing import NamedTuple

import jax
import numpy as np
from absl import flags

from experiments.support import machine, scale
from oodgat_jax import datasets, experiment, graphs, methods, splits, tables, training
from oodgat_jax.cli import app
from oodgat_jax.datasets import streaming
from oodgat_jax.graphs.sparse import SparseFeatures
from oodgat_jax.methods import recipes
from oodgat_jax.records import append_lines, versions
from oodgat_jax.registry import check_names
from oodgat_jax.types import Dataset, InputError

FLAGS = flags.FLAGS
SHARED = ("datasets", "method", "data_dir", "out")
OWN: app.Definitions = {
    "sizes": (
        flags.DEFINE_list,
        [],
        "Nodes of generated graphs to measure, with 20 edges per node each.",
        {},
    ),
    "variants": (
        flags.DEFINE_list,
        ["sparse", "segment", "one", "vmap"],
        "What to measure; see above.",
        {},
    ),
    "runs": (
        flags.DEFINE_integer,
        9,
        "Runs that go at the same time.",
        {"lower_bound": 1},
    ),
    "seconds": (
        flags.DEFINE_float,
        20.0,
        "About how long to measure each.",
        {"lower_bound": 0.1},
    ),
    "scale": (
        flags.DEFINE_bool,
        False,
        "Measure graphs spread over devices, of the --sizes.",
        {},
    ),
    "devices": (
        flags.DEFINE_list,
        ["1", "2", "4", "8"],
        "With --scale: numbers of simulated devices.",
        {},
    ),
    "steps": (
        flags.DEFINE_integer,
        3,
        "With --scale: steps to time; 0 only compiles, for shapes of graphs that are "
        "never made.",
        {"lower_bound": 0},
    ),
    "peer": (flags.DEFINE_string, None, "Command that prints ms_per_step: X.", {}),
}

EDGES_PER_NODE = 20
PEER_TIMEOUT = 3600
LEAST_CHECKS = 6  # so that most calls of a run do not start it
NO_PATIENCE = 1_000_000  # no run stops before the last step


class Job(NamedTuple):
    """One measurement, in a process of its own."""

    dataset: str  # a name, or the number of nodes of a generated graph
    variant: str
    method: str
    runs: int
    seconds: float
    data_dir: str | None


class Variant(NamedTuple):
    """How the runs are spread."""

    kernel: str
    devices: int | None  # None: one per core
    batched: bool


VARIANTS = {
    "one": Variant("sparse", 1, False),
    "segment": Variant("segment", None, False),
    "sparse": Variant("sparse", None, False),
    "vmap": Variant("segment", 1, True),
}
HEADER = (
    "data set",
    "variant",
    "ms",
    "runs/min",
    "GB",
    "compile s",
    "ns/edge",
    "GFLOP/s",
    "of matmul",
)


def main() -> None:
    """Measures every data set and size in every variant, then prints the table."""
    folder = app.out_folder(FLAGS.out)
    if FLAGS.scale:
        _scale(folder)
        return
    rows = []
    for job in _jobs():
        print(f"measuring {job.variant} on {job.dataset} ...", file=sys.stderr)
        record = _in_process(job)
        if FLAGS.peer and job.variant == "sparse":
            record["peer_ms_per_step"] = peer_ms(FLAGS.peer)
        _append(folder / "benchmark.jsonl", record)
        rows.append(record)
    print(table(rows))


def _scale(folder: pathlib.Path) -> None:
    sizes = _numbers("sizes", scale.SMALLEST) or [scale.SMALLEST]
    devices = _numbers("devices", 1)
    rows = []
    for job in scale.jobs(sizes, devices, FLAGS.method, FLAGS.steps):
        count = job.devices or "one, whole"
        print(f"measuring {job.nodes} nodes, devices: {count} ...", file=sys.stderr)
        rows.append(scale.in_process(job))
        _append(folder / "scale.jsonl", rows[-1])
    print(tables.as_text(scale.draw(rows)))


def _numbers(flag: str, lowest: int) -> list[int]:
    for text in FLAGS[flag].value:
        if not text.isdigit() or int(text) < lowest:
            raise InputError(f"--{flag} takes numbers from {lowest}, not '{text}'.")
    return [int(text) for text in FLAGS[flag].value]


def table(records: list[dict]) -> str:
    """The measurements as aligned text."""
    header = HEADER
    if any("peer_ms_per_step" in record for record in records):
        header = (*HEADER, "peer ms", "times faster")
    rows = [_row(record, len(header)) for record in records]
    return tables.as_text(tables.Table(header, rows, ("",) * len(header)))


def measure(job: Job) -> dict:
    """Trains for about `job.seconds` and returns what was seen."""
    variant = VARIANTS[job.variant]
    training.use_cores(variant.devices)
    dataset = _dataset(job)
    graph = graphs.build(dataset, variant.kernel)
    runs, task, recipe = _prepare(dataset, job)
    slots = job.runs if variant.batched else None

    def seconds(steps: int, runs: training.Run, watch: Watch | None = None) -> float:
        schedule = training.Schedule(steps, patience=NO_PATIENCE)
        began = time.perf_counter()
        training.train(task, graph, runs, schedule, slots=slots, progress=watch)
        return time.perf_counter() - began

    few = jax.tree.map(lambda leaf: leaf[: len(jax.local_devices())], runs)
    cold, warm = seconds(11, few), seconds(11, few)
    steps = _steps(job.seconds, warm * job.runs / few.key.shape[0])
    seconds(steps, few)  # compiles this number of steps
    together = min(job.runs, slots or len(jax.local_devices()))
    watch = Watch(together, job.runs)
    seconds(steps, runs, watch)
    ms = watch.ms_per_step()
    peaks = machine.peaks()
    flops = step_flops(graph, recipe, dataset.num_classes)
    return {
        "dataset": dataset.name,
        "method": job.method,
        "variant": job.variant,
        "runs": job.runs,
        "steps": steps,
        "devices": len(jax.local_devices()),
        "nodes": graphs.num_nodes(graph),
        "edges": int(graph.senders.shape[0]),
        "ms_per_step": ms,
        "runs_per_minute": 60e3 / (ms * recipe["max_steps"]),
        "compile_seconds": cold - warm,
        "gflops": flops / ms / 1e6,
        "peak_memory_gb": machine.peak_memory_gb(),
        **peaks._asdict(),
    }


class Watch:
    """Looks at the clock when training begins and whenever it reports.

    Args:
      together: how many runs go at the same time.
      total: how many there are.
    """

    def __init__(self, together: int, total: int):
        self._together = together
        self._seen = [(time.perf_counter(), training.Progress(0, 0, 0, total, 0.0))]

    def __call__(self, progress: training.Progress) -> None:
        """Notes where the runs are."""
        self._seen.append((time.perf_counter(), progress))

    def ms_per_step(self) -> float:
        """Of all runs together, while every device was busy.

        Calls that start runs are left out if there are others: a run of a thousand
        steps is started once.
        """
        busy, under_way, finished_before = [], [], None
        for (began, before), (ended, after) in itertools.pairwise(self._seen):
            if before.total - before.finished < self._together:
                break
            busy.append((ended - began, after.steps - before.steps))
            if before.finished == finished_before:
                under_way.append(busy[-1])
            finished_before = before.finished
        spent, steps = np.sum(under_way or busy, axis=0)
        return 1e3 * spent / steps


def step_flops(graph, recipe: recipes.Recipe, num_classes: int) -> int:
    """Multiplications and additions of one step of a two-layer attention network.

    Forward and backward: two products with the features, four products with the
    graph per layer, three products between the layers.
    """
    heads, hidden = recipe.get("heads", 1), recipe["hidden"]
    nodes, edges = graphs.num_nodes(graph), graph.senders.shape[0]
    sparse = isinstance(graph.nodes, SparseFeatures)
    stored = (graph.nodes.values if sparse else graph.nodes).size
    first = 2 * 2 * stored * heads * hidden
    middle = 3 * 2 * nodes * (heads * hidden) * (heads * num_classes)
    return first + middle + 4 * 2 * edges * heads * (hidden + num_classes)


def peer_ms(command: str) -> float:
    """Runs the peer's command and reads `ms_per_step: X` from what it prints."""
    try:
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, timeout=PEER_TIMEOUT
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"--peer took more than {PEER_TIMEOUT} s: {command}"
        ) from error
    found = re.findall(r"ms_per_step:\s*([0-9.eE+-]+)", done.stdout)
    if done.returncode or not found:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise InputError(
            f"--peer must print 'ms_per_step: X' and end with exit code 0, but it "
            f"ended with {done.returncode}: {last[-1]}"
        )
    return float(found[-1])


def _jobs() -> list[Job]:
    check_names("variant", FLAGS.variants, VARIANTS)
    check_names("data set", FLAGS.datasets, datasets.DATASETS)
    for size in FLAGS.sizes:
        if not size.isdigit() or int(size) < 1000:
            raise InputError(f"--sizes takes numbers of nodes from 1000, not '{size}'.")
    return [
        Job(name, variant, FLAGS.method, FLAGS.runs, FLAGS.seconds, FLAGS.data_dir)
        for name in [*FLAGS.datasets, *FLAGS.sizes]
        for variant in FLAGS.variants
    ]


def _in_process(job: Job) -> dict:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return pool.submit(measure, job).result()


def _dataset(job: Job) -> Dataset:
    if not job.dataset.isdigit():
        return datasets.load(job.dataset, job.data_dir)
    name = f"generated-{job.dataset}-{EDGES_PER_NODE * int(job.dataset)}"
    return streaming.in_memory(streaming.open_streamed(name, job.data_dir))


def _prepare(
    dataset: Dataset, job: Job
) -> tuple[training.Run, training.Task, recipes.Recipe]:
    known = dataset.name if dataset.name in datasets.DATASETS else None
    recipe = recipes.recipe(known, job.method)
    method = methods.METHODS[job.method]
    module = recipes.module(method, recipe, dataset.num_classes)
    drawn = [splits.draw(dataset, seed) for seed in range(job.runs)]
    keys = experiment.keys(range(job.runs))
    runs = experiment.make_runs(method, [recipe] * job.runs, drawn, keys)
    return runs, methods.assemble(method, module), recipe


def _steps(seconds: float, eleven_steps: float) -> int:
    """A number of steps, one more than a multiple of ten, that takes about as long."""
    return 1 + 10 * int(np.clip(seconds / eleven_steps, LEAST_CHECKS, 100))


def _append(path, record: dict) -> None:
    stamp = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    append_lines(path, {**record, "time": stamp, "versions": versions()})


def _row(record: dict, width: int) -> list[tables.Cell]:
    ms = record["ms_per_step"]
    texts = [
        record["dataset"],
        record["variant"],
        f"{ms:.1f}",
        f"{record['runs_per_minute']:.1f}",
        f"{record['peak_memory_gb']:.1f}",
        f"{record['compile_seconds']:.1f}",
        f"{1e6 * ms / record['edges']:.0f}",
        f"{record['gflops']:.1f}",
        f"{100 * record['gflops'] / record['matmul_gflops']:.0f} %",
    ]
    peer = record.get("peer_ms_per_step")
    if width > len(HEADER):
        texts += [f"{peer:.0f}", f"{peer / ms:.1f}"] if peer else ["", ""]
    return [tables.Cell(text) for text in texts]


if __name__ == "__main__":
    app.run(main, SHARED, OWN)
