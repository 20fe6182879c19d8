"""Measures what the machine can do at best: dense products and memory copies."""

import resource
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


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
