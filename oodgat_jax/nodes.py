"""Sums, means and ranks over all nodes, wherever the nodes are.

A graph may be spread over the devices of the mesh axis `graph`, each of which sees the
nodes of its block, padded to a fixed size. Whatever spans all nodes goes through this
module: inside of `spread_over` it adds up what the devices hold and leaves the padding
out; elsewhere it is the plain `jnp` operation. So losses, detectors and metrics are
written once.

A gradient taken inside counts every device's copy of a loss: with P devices it is P
times the share of the own block, of parameters and of features alike. `average` turns
that into the gradient.
"""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from oodgat_jax.types import Array

AXIS = "graph"


class _Block(NamedTuple):
    """The nodes of this device."""

    ids: Array  # [B] int32, numbers in the whole graph; those of padding come last
    real: Array  # [B] bool, False for padding


_BLOCK: contextvars.ContextVar[_Block | None] = contextvars.ContextVar(
    "block", default=None
)


@contextlib.contextmanager
def spread_over(ids: Array, real: Array) -> Iterator[None]:
    """What is traced inside sees a block of nodes, the rest being on other devices.

    Args:
      ids: numbers [B] of the block's nodes in the whole graph, padding after all nodes.
      real: [B] bool, False for padding.
    """
    token = _BLOCK.set(_Block(ids, real))
    try:
        yield
    finally:
        _BLOCK.reset(token)


def without_padding(mask: Array) -> Array:
    """The mask [N], where it may hold for padding that is no node."""
    block = _BLOCK.get()
    return mask if block is None else mask & block.real


def add(partial: Array) -> Array:
    """The sum of what each device found on its own nodes."""
    return partial if _BLOCK.get() is None else lax.psum(partial, AXIS)


def total(values: Array, where: Array | None = None) -> Array:
    """Sum of values [N, ...] over all nodes, or over those of a mask [N] -> [...]."""
    if _BLOCK.get() is not None:
        where = without_padding(jnp.array(True) if where is None else where)
    if where is not None:
        where = where.reshape(-1, *[1] * (jnp.ndim(values) - 1))
    return add(jnp.sum(values, axis=0, where=where))


def count(values: Array) -> Array | int:
    """N, the nodes that values [N, ...] belong to."""
    block = _BLOCK.get()
    return values.shape[0] if block is None else add(jnp.sum(block.real))


def mean(values: Array) -> Array:
    """Mean of values [N, ...] over all nodes -> [...]."""
    return total(values) / count(values)


def anywhere(flags: Array) -> Array:
    """Whether any of the flags [N] holds; those of padding must not."""
    return add(jnp.sum(flags)) > 0 if _BLOCK.get() is not None else jnp.any(flags)


def whole(values: Array) -> Array:
    """Values [B, ...] of every device, in the order of the whole graph.

    Padding comes last: a mask must say where it is.
    """
    block = _BLOCK.get()
    if block is None:
        return values
    ids, values = (lax.all_gather(x, AXIS, tiled=True) for x in (block.ids, values))
    return jnp.zeros_like(values).at[ids].set(values, unique_indices=True)


def own(values: Array) -> Array:
    """The part [B, ...] of this device of what is known of all nodes."""
    block = _BLOCK.get()
    return values if block is None else values[block.ids]


def rows(values: Array, ids: Array) -> Array:
    """Rows of values [N, ...] by the nodes' numbers in the whole graph, [M, ...]."""
    block = _BLOCK.get()
    if block is None:
        return values[ids]
    size = block.ids.shape[0]
    first = lax.axis_index(AXIS) * size
    places = whole(first + jnp.arange(size))[ids] - first
    mine = (places >= 0) & (places < size)
    found = values[jnp.clip(places, 0, size - 1)]
    return add(jnp.where(mine.reshape(-1, *[1] * (values.ndim - 1)), found, 0))


def average(gradient: Any) -> Any:
    """A gradient of parameters, taken on every device, as that of the whole loss."""
    if _BLOCK.get() is None:
        return gradient
    return jax.tree.map(lambda leaf: lax.pmean(leaf, AXIS), gradient)
