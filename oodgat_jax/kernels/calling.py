"""Calls the compiled kernels with arrays, and describes dropout to them."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from oodgat_jax import dropout
from oodgat_jax.kernels import library
from oodgat_jax.types import AnyArray, Array

Shape = tuple[int, ...]


def call(symbol: str, shapes: Sequence[Shape], *args: Array, **attributes: Any) -> list:
    """Returns the float32 results, of these shapes, of a kernel.

    Under `vmap` the runs of a batch go one after the other.
    """
    results = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    function = jax.ffi.ffi_call(
        library.target(symbol), results, vmap_method="sequential"
    )
    return list(function(*args, **attributes))


def words(key: Array, rate: Array | float, size: Array | int) -> Array:
    """Returns what a kernel needs to know of dropout, uint32 [5].

    Args:
      key: a typed PRNG key.
      rate: in [0, 1); may be traced.
      size: number of positions between two heads.
    """
    start, stride = dropout.counter(key)
    scale = jax.lax.bitcast_convert_type(
        jnp.asarray(1.0 / (1.0 - rate), jnp.float32), jnp.uint32
    )
    size = jnp.asarray(size, jnp.uint32)
    return jnp.stack([start, stride, dropout.level(rate), size, scale])


def numbers(values: AnyArray | None) -> Array:
    """Returns numbers as uint32; none of them for None."""
    if values is None:
        return jnp.zeros(0, jnp.uint32)
    return jnp.asarray(values, jnp.uint32)
