"""How many runs fit: devices, slots on a device, memory of a run."""

import os

import jax
import jraph
import numpy as np

from oodgat_jax import graphs


def devices(graph: jraph.GraphsTuple, total: int) -> list[jax.Device]:
    """Local devices, no more than there are runs; on the CPU, than memory allows."""
    found = jax.local_devices()
    most = total
    if found[0].platform == "cpu":
        most = min(total, int(0.7 * _free_bytes() // run_bytes(graph)))
    return found[: max(1, most)]


def slots_per_device(
    graph: jraph.GraphsTuple, total: int, devices: list[jax.Device], rows: int
) -> int:
    """Runs at a time on one device: one on the CPU, else what its memory holds.

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
    """An estimate of one run's memory on a device, the graph included, in bytes.

    The segment path holds messages [E, H, D]; the sparse path only edge values.
    """
    spread = graphs.is_piece(graph)
    pieces = graph.senders.shape[0] if spread else 1
    edges = graph.senders.size // pieces
    nodes = graph.globals.ids.shape[-1] if spread else graphs.num_nodes(graph)
    sparse = graphs.pattern(graph) is not None
    per_edge = 12 * heads if sparse else 3 * heads * (width + 4)
    stored = sum(leaf.size for leaf in jax.tree.leaves(graph)) // pieces
    return 4 * (per_edge * edges + 12 * heads * width * nodes + 2 * stored)


def cores() -> int:
    """Cores that this process may use; not every system can tell that."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _free_bytes() -> int:
    """Free memory of the host; half of all of it where a system tells no more."""
    page = os.sysconf("SC_PAGE_SIZE")
    if "SC_AVPHYS_PAGES" in os.sysconf_names:
        return page * os.sysconf("SC_AVPHYS_PAGES")
    return page * os.sysconf("SC_PHYS_PAGES") // 2
