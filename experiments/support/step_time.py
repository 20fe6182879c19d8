"""Measures how fast training is, in the process that calls it.

"ms" is the time of a step divided by the runs that train at the same time, taken while
all devices are busy with runs under way, validation included.
"""

import itertools
import time
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.support import machine, peers
from oodgat_jax import datasets, experiment, graphs, methods, splits, training
from oodgat_jax.datasets import streaming
from oodgat_jax.graphs.sparse import SparseFeatures
from oodgat_jax.methods import recipes
from oodgat_jax.types import Dataset

EDGES_PER_NODE = 20
LEAST_CHECKS = 6  # so that most calls of a run do not start it
CHECK_EVERY = training.Schedule(1).check_every
NO_PATIENCE = 1_000_000  # no run stops before the last step


class Job(NamedTuple):
    """One measurement, in its own process."""

    dataset: str  # a name, or the number of nodes of a generated graph
    variant: str
    method: str
    runs: int
    seconds: float  # of a round, about
    data_dir: str | None


class Variant(NamedTuple):
    """How runs are placed on devices."""

    kernel: str
    devices: int | None  # None: one per core
    batched: bool


VARIANTS = {
    "auto": Variant("auto", None, False),
    "native": Variant("native", None, False),
    "one": Variant("sparse", 1, False),
    "segment": Variant("segment", None, False),
    "sparse": Variant("sparse", None, False),
    "vmap": Variant("segment", 1, True),
}


class Session:
    """Runs of one job, compiled once and then timed in rounds.

    Must be built before JAX is used in the process.
    """

    def __init__(self, job: Job):
        variant = VARIANTS[job.variant]
        training.use_cores(variant.devices)
        self._job, self._dataset = job, _dataset(job)
        self._graph = graphs.build(self._dataset, variant.kernel)
        self._runs, self._task, self._recipe = _prepare(self._dataset, job)
        self._slots = job.runs if variant.batched else None
        devices = len(jax.local_devices())
        few = jax.tree.map(lambda leaf: leaf[:devices], self._runs)
        cold, warm = self._seconds(11, few), self._seconds(11, few)
        self._compile_seconds = cold - warm
        self._steps = _steps(job.seconds, warm * job.runs / few.key.shape[0])
        self._seconds(self._steps, few)  # compiles this number of steps

    def measure(self) -> peers.Answer:
        """Trains all runs for about `job.seconds`; returns the time of a step.

        CPU time is that of all steps, those that start a run included.
        """
        together = min(self._job.runs, self._slots or len(jax.local_devices()))
        watch, busy = Watch(together, self._job.runs), time.process_time()
        self._seconds(self._steps, self._runs, watch)
        cpu = time.process_time() - busy
        cpu_ms = 1e3 * cpu / (self._job.runs * self._steps)
        return peers.Answer(watch.ms_per_step(), cpu_ms)

    def record(self, ms: float) -> dict[str, Any]:
        """Returns all that is known of the job, given the time of a step."""
        given = self._graph, self._recipe, self._dataset.num_classes
        flops, gathered = step_flops(*given), step_gathers(*given)
        memory = machine.peak_memory_gb()
        return {
            "dataset": self._dataset.name,
            "method": self._job.method,
            "variant": self._job.variant,
            "kernel": kernel_of(self._graph),
            "runs": self._job.runs,
            "steps": self._steps,
            "devices": len(jax.local_devices()),
            "nodes": graphs.num_nodes(self._graph),
            "edges": int(self._graph.senders.shape[0]),
            "ms_per_step": ms,
            "runs_per_minute": 60e3 / (ms * int(self._recipe["max_steps"])),
            "compile_seconds": self._compile_seconds,
            "gflops": flops / ms / 1e6,
            "peak_memory_gb": memory,
            "machine": machine.describe(),
            **machine.peaks()._asdict(),
            "gathered_gbytes": gathered.bytes / ms / 1e6,
            "gather_gbytes": machine.gather_gbytes(gathered.rows, gathered.width),
        }

    def write_for_peer(self, path: str) -> None:
        """Writes the data set, a split and the recipe for a peer to train on."""
        split = splits.draw(self._dataset, 0)
        peers.write(path, self._dataset, split, self._recipe)

    def _seconds(
        self, steps: int, runs: training.Run, watch: "Watch | None" = None
    ) -> float:
        schedule = training.Schedule(steps, patience=NO_PATIENCE)
        began = time.perf_counter()
        training.train(
            self._task,
            self._graph,
            runs,
            schedule,
            slots=self._slots,
            progress=watch,
        )
        return time.perf_counter() - began


class Watch:
    """Looks at the clock when training begins and whenever it reports.

    Args:
      together: how many runs train at the same time.
      total: how many there are.
    """

    def __init__(self, together: int, total: int):
        self._together = together
        self._seen = [(time.perf_counter(), training.Progress(0, 0, 0, total, 0.0))]

    def __call__(self, progress: training.Progress) -> None:
        """Notes where the runs are."""
        self._seen.append((time.perf_counter(), progress))

    def ms_per_step(self) -> float:
        """Returns the time per step and run, while every device was busy.

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
    """Counts multiplications and additions of a step of a two-layer attention network.

    Forward and backward: two products with the features, four products with the
    graph per layer, three products between the layers.
    """
    heads, hidden = int(recipe.get("heads", 1)), int(recipe["hidden"])
    nodes, edges = graphs.num_nodes(graph), graph.senders.shape[0]
    sparse = isinstance(graph.nodes, SparseFeatures)
    stored = (graph.nodes.values if sparse else graph.nodes).size
    first = 2 * 2 * stored * heads * hidden
    middle = 3 * 2 * nodes * (heads * hidden) * (heads * num_classes)
    return first + middle + 4 * 2 * edges * heads * (hidden + num_classes)


class Gathers(NamedTuple):
    """What a step reads row by row, in the order of the edges."""

    bytes: float  # of a step, validation every ten steps included
    rows: int  # of the widest matrix that is read so: a node and head each
    width: int  # of its rows


def step_gathers(graph, recipe: recipes.Recipe, num_classes: int) -> Gathers:
    """Counts the rows that the native kernels gather in a step; see `step_flops`.

    Per layer a row for every edge and head that is kept, forward and backward, and one
    for every edge and head in a validation.
    """
    heads, hidden = int(recipe.get("heads", 1)), int(recipe["hidden"])
    kept = 1.0 - float(recipe.get("attention_dropout", 0.0))
    rows = (2 * kept + 1 / CHECK_EVERY) * graph.senders.shape[0] * heads
    nodes = graphs.num_nodes(graph)
    return Gathers(4 * rows * (hidden + num_classes), nodes * heads, hidden)


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
    """Returns how many steps, a multiple of ten plus one, take about as long."""
    return 1 + 10 * int(np.clip(seconds / eleven_steps, LEAST_CHECKS, 100))


def kernel_of(graph) -> str:
    """Returns the name of the kernel that a graph was built for."""
    if graph.globals.native is not None:
        return "native"
    return "segment" if graph.globals.pattern is None else "sparse"
