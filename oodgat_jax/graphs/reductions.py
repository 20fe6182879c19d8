"""Reductions over all nodes, on one device or over the shards of a graph.

A graph may be sharded over the devices of the mesh axis `graph`, each of which sees its
own nodes, padded to a fixed size. Whatever spans all nodes goes through this module:
inside of `on_shard` it reduces over all shards and leaves the padding out; elsewhere it
is the plain `jnp` operation. So losses, detectors and metrics are written once.

A gradient taken inside counts every device's copy of a loss: with P devices it is P
times the shard's share, of parameters and of features alike. `average` turns that into
the gradient.
"""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from oodgat_jax.types import AnyArray, Array

AXIS = "graph"


class _Shard(NamedTuple):
    """The nodes of this device."""

    ids: AnyArray  # [B] int32, numbers in the whole graph; those of padding come last
    real: AnyArray  # [B] bool, False for padding


_SHARD: contextvars.ContextVar[_Shard | None] = contextvars.ContextVar(
    "shard", default=None
)


@contextlib.contextmanager
def on_shard(ids: AnyArray, real: AnyArray) -> Iterator[None]:
    """Makes reductions traced inside span all shards; this device has one of them.

    Args:
      ids: numbers [B] of the shard's nodes in the whole graph, padding after all nodes.
      real: [B] bool, False for padding.
    """
    token = _SHARD.set(_Shard(ids, real))
    try:
        yield
    finally:
        _SHARD.reset(token)


def without_padding(mask: AnyArray) -> AnyArray:
    """Returns the mask [N] without padding."""
    shard = _SHARD.get()
    return mask if shard is None else mask & shard.real


def add(partial: Array) -> Array:
    """Sums over all devices what each found on its own nodes."""
    return partial if _SHARD.get() is None else lax.psum(partial, AXIS)


def total(values: AnyArray, where: AnyArray | None = None) -> Array:
    """Sums values [N, ...] over all nodes, or over those of a mask [N] -> [...]."""
    if _SHARD.get() is not None:
        where = without_padding(jnp.array(True) if where is None else where)
    if where is not None:
        where = where.reshape(-1, *[1] * (jnp.ndim(values) - 1))
    return add(jnp.sum(values, axis=0, where=where))


def count(values: AnyArray) -> Array | int:
    """Returns N, the number of nodes that values [N, ...] belong to."""
    shard = _SHARD.get()
    return values.shape[0] if shard is None else add(jnp.sum(shard.real))


def mean(values: AnyArray) -> Array:
    """Averages values [N, ...] over all nodes -> [...]."""
    return total(values) / count(values)


def anywhere(flags: AnyArray) -> Array:
    """Returns whether any of the flags [N] holds; those of padding must not."""
    return add(jnp.sum(flags)) > 0 if _SHARD.get() is not None else jnp.any(flags)


def whole(values: Array) -> Array:
    """Gathers values [B, ...] of all devices, in the order of the whole graph.

    Padding comes last: a mask must say where it is.
    """
    shard = _SHARD.get()
    if shard is None:
        return values
    ids, values = (lax.all_gather(x, AXIS, tiled=True) for x in (shard.ids, values))
    return jnp.zeros_like(values).at[ids].set(values, unique_indices=True)


def own(values: Array) -> Array:
    """Returns this device's rows [B, ...] of values of all nodes."""
    shard = _SHARD.get()
    return values if shard is None else values[shard.ids]


def rows(values: Array, ids: Array) -> Array:
    """Returns rows of values [N, ...] by node number in the whole graph: [M, ...]."""
    shard = _SHARD.get()
    if shard is None:
        return values[ids]
    size = shard.ids.shape[0]
    first = lax.axis_index(AXIS) * size
    places = whole(first + jnp.arange(size))[ids] - first
    mine = (places >= 0) & (places < size)
    found = values[jnp.clip(places, 0, size - 1)]
    return add(jnp.where(mine.reshape(-1, *[1] * (values.ndim - 1)), found, 0))


def average(gradient: Any) -> Any:
    """Turns gradients of parameters, one per device, into that of the whole loss."""
    if _SHARD.get() is None:
        return gradient
    return jax.tree.map(lambda leaf: lax.pmean(leaf, AXIS), gradient)
