"""What the machine can hold: cores, devices, runs per device, memory of a run."""

import math
import os
from typing import Any

import jax
import jraph
import numpy as np

from oodgat_jax import graphs
from oodgat_jax.training.host_memory import free_bytes
from oodgat_jax.types import InputError

MOST_DEVICES = 256  # of one process on the CPU, most of them simulated
EDGE_BYTES = 100  # of an edge while a graph is built: both ends, sorting, indices


def devices(graph: jraph.GraphsTuple, total: int) -> list[jax.Device]:
    """Returns the local devices to use: at most one per run and, on the CPU, as many
    as fit in memory."""
    found = jax.local_devices()
    most = total
    if found[0].platform == "cpu":
        most = min(total, int(0.7 * free_bytes() // run_bytes(graph)))
    return found[: max(1, most)]


def slots_per_device(
    graph: jraph.GraphsTuple, total: int, devices: list[jax.Device], rows: int
) -> int:
    """Returns how many runs one device takes at a time: one on the CPU, else what fits.

    Args:
      graph: shared by the runs.
      total: runs in all.
      devices: of this process, all of one kind.
      rows: devices, or rows of devices that share a run, over which the runs go.
    """
    if devices[0].platform == "cpu":
        return 1
    stats = devices[0].memory_stats() or {}
    limit = stats.get("bytes_limit", 8 << 30)
    wanted = -(-total // rows)
    return int(np.clip(0.6 * limit // run_bytes(graph), 1, wanted))


def run_bytes(graph: jraph.GraphsTuple, heads: int = 4, width: int = 32) -> int:
    """Estimates one run's memory on a device, the graph included, in bytes.

    No kernel holds numbers per edge, head and width; the native ones hold none per edge
    either, but some layers, such as GATv2's, take another path. XLA's account of a step
    of OODGAT is 0.8 to 0.9 of this for sparse and segment operations, and half of it
    for native kernels, on a million nodes and on Amazon-Computers.
    """
    sharded = graphs.is_sharded(graph)
    shards = graph.senders.shape[0] if sharded else 1
    edges = graph.senders.size // shards
    nodes = graph.globals.node_ids.shape[-1] if sharded else graphs.num_nodes(graph)
    per_edge = (4 if graph.globals.native is not None else 12) * heads
    stored = sum(leaf.size for leaf in jax.tree.leaves(graph)) // shards
    return 4 * (per_edge * edges + 12 * heads * width * nodes + 2 * stored)


def training_bytes(num_nodes: int, num_edges: int, stored: int, runs: int) -> int:
    """Estimates the memory of a training before its graph is built, in bytes.

    Args:
      num_nodes: N.
      num_edges: both directions counted.
      stored: features that are stored, N F if they are dense.
      runs: of which as many are trained at once as there are cores.
    """
    edges = num_edges + num_nodes  # with a loop at each node
    arrays = 8 * edges + 3 * stored
    per_edge = 4 * (4 if graphs.uses_native("auto") else 12)
    each = per_edge * edges + 12 * 4 * 32 * num_nodes + 2 * stored  # see `run_bytes`
    building = EDGE_BYTES * edges
    return 4 * arrays + max(4 * min(runs, cores()) * each, building)


def check_run(graph: jraph.GraphsTuple) -> None:
    """Raises InputError if one run on a graph does not fit in the host's memory."""
    if jax.default_backend() != "cpu":
        return
    nodes, needed = graphs.num_nodes(graph), run_bytes(graph)
    fitting = int(nodes * free_bytes() / needed)
    advice = f"a part of the graph with about {fitting} nodes would fit"
    what = f"Training on {nodes} nodes and {graph.senders.size} edges"
    check_memory(needed, what, advice)


def check_memory(needed: float, what: str, advice: str) -> None:
    """Raises InputError if more memory is needed than the host has free.

    Args:
      needed: bytes.
      what: the subject of the sentence.
      advice: what to do about it; `{share}` becomes the part that would fit.
    """
    free = free_bytes()
    if needed <= free:
        return
    share = f"{1 / -(-needed // max(free, 1)):.1g}"
    raise InputError(
        f"{what} needs about {readable(needed)} of memory, but {readable(free)} are "
        f"free: {advice.format(share=share)}."
    )


def check_features(shape: tuple[int, int], *, is_dense: bool) -> None:
    """Raises InputError if features [N, F] cannot be held; sparse ones index F."""
    rows, columns = shape
    needed = 12 * rows * columns if is_dense else 32 * (rows + columns)
    fitting = int(columns * free_bytes() / needed)
    advice = f"about {fitting} features would fit, so leave some out"
    check_memory(needed, f"A graph of {rows} nodes with {columns} features", advice)


def check_edges(count: int) -> None:
    """Raises InputError if so many edges cannot be held while a graph is built."""
    fitting = int(free_bytes() // EDGE_BYTES)
    advice = f"about {fitting} edges would fit"
    check_memory(count * EDGE_BYTES, f"A graph of {count} edges", advice)


def check_runs(total: int, num_nodes: int, num_classes: int, detectors: int) -> None:
    """Raises InputError if the splits and scores of so many runs cannot be held."""
    each = num_nodes * (8 + 4 * (num_classes + detectors + 1))
    fitting = int(free_bytes() // each)
    advice = f"about {fitting} runs would fit, so ask for fewer splits or seeds"
    check_memory(total * each, f"Keeping the results of {total} runs", advice)


def check_states(state: Any, total: int, at_once: int) -> None:
    """Raises InputError if the networks of all runs cannot be held.

    Args:
      state: shapes of one run's state.
      total: runs in all; their states are kept on the host.
      at_once: runs on the CPU's devices at a time, with a gradient and an old state.
    """
    leaves = jax.tree.leaves(state)
    each = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
    fitting = int(free_bytes() // each) - 3 * at_once
    advice = (
        f"about {fitting} runs would fit"
        if fitting > 0
        else "make hidden, heads, the number of features or max_steps smaller, in all "
        "to about {share} of what they are"
    )
    runs = "one run" if total == 1 else f"{total} runs"
    check_memory((total + 3 * at_once) * each, f"The training of {runs}", advice)


def check_devices(count: int) -> None:
    """Raises InputError if a process cannot have so many CPU devices."""
    if count > MOST_DEVICES:
        raise InputError(
            f"One process can simulate at most {MOST_DEVICES} devices, not {count}: "
            f"choose a smaller --mesh; this machine has {cores()} cores."
        )


def readable(count: float) -> str:
    """Returns bytes for people, as in 1.5 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB" if count < 1e6 else "a million TB"


def cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_cores(count: int | None = None) -> None:
    """Gives JAX one CPU device per core, so that runs use them all.

    Must come before JAX is used for the first time in the process.
    """
    devices = count or cores()
    try:
        jax.config.update("jax_num_cpu_devices", devices)
    except RuntimeError as error:
        raise InputError(
            "use_cores() came too late: call it before JAX is used for the first time."
        ) from error
