"""Dropout from a counter-based integer hash, many times cheaper than a cipher.

The bits of position i are a hash of (key, i): no state, the same for a run alone and
among others, and independent of how many values are drawn. Dropout needs decorrelated
bits, not cryptography; `tests/test_dropout.py` checks the statistics.
"""

import jax
import jax.numpy as jnp
import numpy as np

from oodgat_jax.types import AnyArray, Array

_LEVELS = 1 << 24  # float32 holds every whole number up to this one exactly


def bits(key: Array, positions: AnyArray) -> Array:
    """Hashes uint32 positions [...] with a key into uint32 bits [...].

    The multiply-xorshift mixer `lowbias32` (constants found by C. Wellons' search for
    the lowest avalanche bias) on a counter whose start and stride come from the key.
    """
    start, stride = counter(key)
    return _mix(jnp.asarray(positions) * stride + start)


def counter(key: Array) -> tuple[Array, Array]:
    """Returns the key's counter: position i is start + i stride, uint32."""
    first, second = jax.random.key_data(key)[-2:]
    start = _mix(first + _mix(second))  # differs for keys of equal stride, as 2 and 3
    return start, second | 1


def _mix(x: Array) -> Array:
    x = (x ^ (x >> 16)) * np.uint32(0x21F0AAAD)
    x = (x ^ (x >> 15)) * np.uint32(0xD35A2D97)
    return x ^ (x >> 15)


def keep(key: Array, positions: AnyArray, rate: Array | float) -> Array:
    """Factors 1 / (1 - rate) with probability 1 - rate, else 0; rate may be traced."""
    kept = (bits(key, positions) >> 8) < level(rate)
    return jnp.where(kept, 1.0 / (1.0 - rate), 0.0)


def level(rate: Array | float) -> Array:
    """Returns the uint32 below which the first 24 bits of a kept position are."""
    return jnp.asarray((1.0 - rate) * _LEVELS, jnp.uint32)


def dropout(
    key: Array, x: AnyArray, rate: Array | float, rows: AnyArray | None = None
) -> Array:
    """Zeroes entries of x with probability rate and rescales the others.

    Args:
      key: a typed PRNG key.
      x: [M] or [M, D].
      rate: in [0, 1); may be traced.
      rows: numbers [M] of the rows in a larger array whose bits x is to get; by
        default 0, 1, 2, ...
    """
    positions = jax.lax.iota(jnp.uint32, x.size).reshape(x.shape)
    if rows is not None:
        width = x.size // x.shape[0]
        first = jnp.asarray(rows, jnp.uint32).reshape(-1, *[1] * (x.ndim - 1))
        positions = first * np.uint32(width) + positions[0]
    return jnp.asarray(x) * keep(key, positions, rate)
