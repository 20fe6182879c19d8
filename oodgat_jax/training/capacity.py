"""What the machine can hold: cores, devices, runs per device, memory of a run."""

import os

import jax
import jraph
import numpy as np

from oodgat_jax import graphs
from oodgat_jax.types import InputError


def devices(graph: jraph.GraphsTuple, total: int) -> list[jax.Device]:
    """Returns the local devices to use: at most one per run and, on the CPU, as many
    as fit in memory."""
    found = jax.local_devices()
    most = total
    if found[0].platform == "cpu":
        most = min(total, int(0.7 * _free_bytes() // run_bytes(graph)))
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
    of OODGAT is 0.8 to 0.9 of this for sparse and segment operations, and half of it for
    native kernels, on a million nodes and on Amazon-Computers.
    """
    sharded = graphs.is_sharded(graph)
    shards = graph.senders.shape[0] if sharded else 1
    edges = graph.senders.size // shards
    nodes = graph.globals.node_ids.shape[-1] if sharded else graphs.num_nodes(graph)
    per_edge = (4 if graph.globals.native is not None else 12) * heads
    stored = sum(leaf.size for leaf in jax.tree.leaves(graph)) // shards
    return 4 * (per_edge * edges + 12 * heads * width * nodes + 2 * stored)


def cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _free_bytes() -> int:
    """Returns the free memory of the host; half of all where a system tells no more."""
    page = os.sysconf("SC_PAGE_SIZE")
    if "SC_AVPHYS_PAGES" in os.sysconf_names:
        return page * os.sysconf("SC_AVPHYS_PAGES")
    return page * os.sysconf("SC_PHYS_PAGES") // 2


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
