"""Measures how memory, communication and step time scale with devices and size.

One measurement is one process with a number of simulated devices on the axis `graph`,
and one training step of a method on a generated graph (`datasets.generated`). "whole"
is the graph on one device, not sharded. Memory and bytes moved are XLA's account of the
compiled step, per device; with no steps to time, the graph is not even made.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from experiments.support import machine, step_time
from oodgat_jax import experiment, graphs, methods, splits, tables, training
from oodgat_jax.datasets import streaming
from oodgat_jax.datasets.generated import Communities
from oodgat_jax.methods import recipes
from oodgat_jax.sharding import cost, layout, shards
from oodgat_jax.training import mesh as meshes
from oodgat_jax.training import placement

EDGES_PER_NODE = 20
TEST_SIZE = 1000  # ID test nodes, and as many OOD ones
SMALLEST = 20_000  # nodes of a graph with enough communities of every kind
HEADER = (
    "nodes",
    "edges",
    "devices",
    "kernel",
    "MB a device",
    "of whole",
    "halo / own nodes",
    "MB moved a step",
    "s a step",
    "CPU ns / edge",
)


class Job(NamedTuple):
    """One measurement."""

    nodes: int
    devices: int  # along `graph`; 0: the whole graph on one device
    method: str
    steps: int  # to time; 0: shapes alone
    kernel: str = "auto"


def jobs(
    sizes: Sequence[int],
    devices: Sequence[int],
    method: str,
    steps: int,
    kernels: Sequence[str] = ("auto",),
) -> list[Job]:
    """Returns a job per size and kernel, for the whole graph and on all devices."""
    return [
        Job(nodes, count, method, steps, kernel)
        for nodes in sizes
        for count in (0, *devices)
        for kernel in kernels
    ]


def measure(job: Job) -> dict:
    """Compiles one step for the job's devices, takes some if asked, and reports."""
    training.use_cores(max(job.devices, 1))
    source = Communities(job.nodes, EDGES_PER_NODE * job.nodes)
    prepare = _made if job.steps else _shaped
    mesh = meshes.build({"runs": 1, "graph": max(job.devices, 1)})
    graph, edges, halo = prepare(source, job, mesh)
    program, runs = _program(source, job, mesh)
    if job.steps:
        runs = program.place(runs)
        states = program.start(graph, runs)
    else:
        states = _on(mesh, jax.eval_shape(program.start, graph, runs), P("runs"))
    compiled = program.step.lower(graph, runs, states).compile()
    found = cost.cost(compiled, max(job.devices, 1))
    seconds = cpu_seconds = None
    if job.steps:
        taken = _seconds(compiled, graph, runs, states, job.steps)
        seconds, cpu_seconds = taken
    return {
        **job._asdict(),
        "kernel": step_time.kernel_of(graph),
        "edges": edges,
        "halo": halo,
        "memory": found.memory,
        "cost": found._asdict(),
        "moved": found.moved,
        "seconds_per_step": seconds,
        "cpu_seconds_per_step": cpu_seconds,
        "peak_memory_gb": machine.peak_memory_gb(),
    }


def draw(records: Sequence[dict]) -> tables.Table:
    """Draws the latest measurement of each size, number of devices and kernel."""
    latest = {(r["nodes"], r["devices"], _kernel(r)): r for r in records}
    whole = {
        (nodes, kernel): r["memory"]
        for (nodes, devices, kernel), r in latest.items()
        if not devices
    }
    return tables.Table(HEADER, [_row(latest[key], whole) for key in sorted(latest)])


def _kernel(record: dict) -> str:
    return record.get("kernel", "sparse")  # what there was before it was recorded


def _row(record: dict, whole: dict[tuple[int, str], int]) -> list[tables.Cell]:
    seconds, memory = record["seconds_per_step"], record["memory"]
    cpu = record.get("cpu_seconds_per_step")
    of_whole = whole.get((record["nodes"], _kernel(record)))
    share = memory / of_whole if of_whole else None
    texts = [
        f"{record['nodes']:,}",
        f"{record['edges']:,}",
        str(record["devices"] or "whole"),
        _kernel(record),
        f"{memory / 1e6:,.0f}",
        "" if share is None else f"{100 * share:.0f} %",
        f"{record['halo']:.2f}",
        f"{record['moved'] / 1e6:,.1f}",
        "" if seconds is None else f"{seconds:.2f}",
        "" if cpu is None else f"{1e9 * cpu / record['edges']:.0f}",
    ]
    return [tables.Cell(text) for text in texts]


def _made(source: Communities, job: Job, mesh):
    """Returns the graph on its devices, its edges, and halo rows per own node."""
    if not job.devices:
        graph = graphs.build(streaming.in_memory(source.open()), job.kernel)
        graph = placement.put(graph, mesh)
        return graph, graph.senders.shape[0], 0.0
    placed = shards.shard_stream(source.open(), mesh, job.kernel)
    to, context = placed.layout, placed.graph.globals
    edges = int(np.asarray(context.num_edges.addressable_shards[0].data)[0])
    halo = np.prod(context.send.shape[1:]) / to.size
    return placed.graph, edges, halo


def _shaped(source: Communities, job: Job, mesh):
    """Returns the same with shapes for arrays; parts are made one by one to count."""
    to = layout.even(job.nodes, max(job.devices, 1))
    counts, needs = [], []
    for shard in range(to.num_shards):
        part = source.read(*to.starts[shard : shard + 2].tolist())
        counts.append(len(part.senders))
        needs.append(shards.sizes(to, shard, part))
    fit, width = shards.Sizes(*np.max(needs, 0)), source.num_features
    if not job.devices:
        graph = _whole_shapes(job.nodes, sum(counts), width, job.kernel)
        return _on(mesh, graph, P()), sum(counts), 0.0
    one = shards.shapes(to, fit, width, graphs.uses_sparse(job.kernel))
    if graphs.uses_native(job.kernel):
        one = one._replace(globals=one.globals._replace(native=graphs.Native()))
    graph = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((to.num_shards, *x.shape), x.dtype), one
    )
    halo = to.num_shards * fit.halo / to.size
    return _on(mesh, graph, P("graph")), sum(counts), halo


def _whole_shapes(nodes: int, edges: int, features: int, kernel: str):
    """Returns the shapes of `graphs.build` for a symmetric graph."""
    tiny = graphs.from_edges(
        np.ones((2, features), np.float32),
        np.array([0, 1]),
        np.array([1, 0]),
        kernel,
    )
    # The tiny graph has 2 nodes and 4 edges, and pointers of 3.
    grown = {2: nodes, 3: nodes + 1, 4: edges}

    def grow(leaf):
        first = grown.get(leaf.shape[0], leaf.shape[0])
        return jax.ShapeDtypeStruct((first, *leaf.shape[1:]), leaf.dtype)

    return jax.tree.map(grow, tiny)


def _program(source: Communities, job: Job, mesh):
    """Returns the program of one run, and the run: arrays, or shapes of them."""
    method, recipe = methods.METHODS[job.method], recipes.recipe(None, job.method)
    task = methods.assemble(method, recipes.module(method, recipe, source.num_id))
    schedule = training.Schedule(max_steps=1000)
    program = training.program_on(task, schedule, mesh, 1, job.devices > 0)
    graph: Any = source.open(TEST_SIZE)
    drawn = [splits.draw(graph, 0)]
    runs = experiment.make_runs(method, [recipe], drawn, experiment.keys([0]))
    if job.devices:
        to = layout.even(job.nodes, job.devices)
        runs = runs._replace(split=to.split_to_shards(runs.split))
    if job.steps:
        return program, runs
    by_node = P("runs", "graph") if job.devices else P("runs")
    specs = P("runs"), by_node, P("runs"), by_node  # of the fields of a Run
    shaped = (
        _on(mesh, jax.eval_shape(lambda x=x: x), spec)
        for x, spec in zip(runs, specs, strict=True)
    )
    return program, training.Run(*shaped)


def _on(mesh, tree, spec: P):
    sharding = NamedSharding(mesh, spec)
    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), tree
    )


def _seconds(compiled, graph, runs, states, steps: int) -> tuple[float, float]:
    """Returns the medians of a step's wall time and of its CPU time."""
    times = []
    for _ in range(steps):
        began, busy = time.perf_counter(), time.process_time()
        states = jax.block_until_ready(compiled(graph, runs, states))
        times.append((time.perf_counter() - began, time.process_time() - busy))
    wall, cpu = np.median(times, axis=0)
    return float(wall), float(cpu)
