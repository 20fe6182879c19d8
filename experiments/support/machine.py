"""Measures what the machine can do at best: dense products, copies, gathered rows."""

import os
import pathlib
import platform
import re
import resource
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from oodgat_jax import kernels
from oodgat_jax.kernels import calling
from oodgat_jax.training import capacity

GATHERS = 1 << 20  # rows that are read at random
MOST_ROWS = 1 << 21  # to choose from: 256 MB of 128 bytes, far beyond any cache


class Peaks(NamedTuple):
    """Rates over all local devices at once."""

    matmul_gflops: float  # dense float32 product of 1,536 x 1,536 matrices
    copy_gbytes: float  # bytes read and written per second by a scaled copy


def peaks() -> Peaks:
    """Measures both on every local device at the same time; the best of five."""
    devices = jax.local_devices()
    mesh = Mesh(devices, ("all",))
    split = NamedSharding(mesh, P("all"))
    count, side, length = len(devices), 1536, 1 << 24
    matrices = jax.device_put(jnp.ones((count, side, side)), split)
    vectors = jax.device_put(jnp.ones((count, length)), split)
    each = jax.jit(lambda f, x: f(x), static_argnums=0, out_shardings=split)
    product = _seconds(lambda: each(_square, matrices))
    copy = _seconds(lambda: each(_scale, vectors))
    return Peaks(
        matmul_gflops=2e-9 * count * side**3 / product,
        copy_gbytes=8e-9 * count * length / copy,
    )


def gather_gbytes(rows: int, width: int) -> float | None:
    """Measures how fast rows of a float32 matrix are read in a random order.

    Every local device reads a matrix of its own, all of them at the same time; the best
    of five. None without the native kernels, one of which is made for that.

    Args:
      rows: of the matrix, a million of which are read.
      width: of a row, is rounded up to a multiple of 16.
    """
    if jax.default_backend() != "cpu" or not kernels.status().available:
        return None
    rows, width = min(rows, MOST_ROWS), -(-width // 16) * 16
    order = np.random.default_rng(0).integers(rows, size=GATHERS, dtype=np.int32)
    mesh = Mesh(jax.local_devices(), ("all",))
    count = mesh.size
    split, same = (NamedSharding(mesh, spec) for spec in (P("all"), P()))
    matrices = jax.device_put(jnp.ones((count * rows, width)), split)
    chosen = jax.device_put(order, same)

    def gather(matrix, order):
        return calling.call("oodgat_sum_rows", ((width,),), matrix, order)[0]

    each = jax.jit(
        jax.shard_map(
            gather,
            mesh=mesh,
            in_specs=(P("all"), P()),
            out_specs=P("all"),
            check_vma=False,
        )
    )
    return 4e-9 * count * GATHERS * width / _seconds(lambda: each(matrices, chosen))


def describe() -> dict[str, str | int]:
    """Returns what the figures depend on: device, processor, cores."""
    device = jax.local_devices()[0]
    return {
        "device": device.device_kind,
        "platform": device.platform,
        "processor": _processor(),
        "cores": capacity.cores(),
        "system": platform.system(),
    }


def _processor() -> str:
    """Returns the name of the processor as the system tells it."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        found = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text())
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


class OtherWork:
    """Measures how many cores others use, from when it is made on.

    Processes of ours count as ours once they have ended and been waited for.
    """

    def __init__(self) -> None:
        self._began = time.perf_counter(), _busy_seconds(), _own_seconds()

    def cores(self) -> float:
        """Returns the cores in use by others, on average; 0 where it is not known."""
        wall, busy, own = self._began
        spent = _busy_seconds() - busy - (_own_seconds() - own)
        return max(0.0, spent / (time.perf_counter() - wall))


def _busy_seconds() -> float:
    """Returns the time that all cores were busy since the machine started; or 0."""
    stat = pathlib.Path("/proc/stat")
    if not stat.is_file():
        return 0.0
    user, nice, system, _, _, *others = stat.read_text().split("\n")[0].split()[1:9]
    ticks = sum(map(int, (user, nice, system, *others)))
    return ticks / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    return sum(os.times()[:4])


def peak_memory_gb() -> float:
    """Returns the largest resident size of this process so far, in GB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1e9 if sys.platform == "darwin" else 1e6)


def _square(x):
    return x @ x


def _scale(x):
    return 0.5 * x


def _seconds(call: Callable[[], jax.Array], repeats: int = 5) -> float:
    jax.block_until_ready(call())
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - began)
    return min(times)
