"""Moves arrays of the host onto a mesh, of one process or several, and back."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from oodgat_jax.training.mesh import GRAPH


def shards_here(mesh: Mesh) -> list[int]:
    """Returns the shards of a graph that this process's devices hold."""
    axis = mesh.axis_names.index(GRAPH)
    here = jax.process_index()
    places = np.argwhere(
        np.vectorize(lambda device: device.process_index == here)(mesh.devices)
    )
    return sorted(set(places[:, axis].tolist()))


def stack_shards(mesh: Mesh, shards: Mapping[int, Any]) -> Any:
    """Stacks trees of numpy arrays, one per shard held here, to [P, ...]."""
    sharding = NamedSharding(mesh, P(GRAPH))
    count = mesh.shape[GRAPH]

    def place(*leaves: np.ndarray) -> jax.Array:
        by_shard = dict(zip(shards, leaves, strict=True))
        shape = (count, *leaves[0].shape)
        return jax.make_array_from_callback(
            shape, sharding, lambda index: by_shard[_first(index)][None]
        )

    return jax.tree.map(place, *shards.values())


def _first(index: Any) -> int:
    """Returns the shard that a slice of the leading axis means."""
    return index[0].start or 0


def put(tree: Any, mesh: Mesh, spec: P | None = None) -> Any:
    """Puts arrays that every process has in full on the devices that the spec says.

    Without a spec all devices get all of them.
    """
    sharding = NamedSharding(mesh, P() if spec is None else spec)
    if jax.process_count() == 1:
        return jax.device_put(tree, sharding)

    def place(leaf: Any) -> jax.Array:
        leaf = np.asarray(leaf)
        return jax.make_array_from_callback(leaf.shape, sharding, lambda i: leaf[i])

    return jax.tree.map(place, tree)


def fetch(tree: Any) -> Any:
    """Fetches arrays from devices as numpy arrays, in full, at every process."""
    leaves, structure = jax.tree.flatten(tree)
    if all(leaf.is_fully_addressable for leaf in leaves):
        return jax.device_get(tree)
    meshes = [leaf.sharding.mesh for leaf in leaves]
    copied = _copy(meshes[0], len(leaves))(leaves)
    return jax.tree.unflatten(structure, jax.device_get(copied))


@functools.lru_cache(maxsize=64)
def _copy(mesh: Mesh, count: int):
    return jax.jit(lambda x: x, out_shardings=[NamedSharding(mesh, P())] * count)


def from_first(number: float) -> float:
    """Returns the first process's number, where processes may differ, as in clocks."""
    if jax.process_count() == 1:
        return number
    return float(multihost_utils.broadcast_one_to_all(np.float32(number)))


def largest(numbers: np.ndarray) -> np.ndarray:
    """Returns the largest of each of the numbers [K] over all processes."""
    if jax.process_count() == 1:
        return np.asarray(numbers)
    return multihost_utils.process_allgather(np.asarray(numbers)).max(axis=0)
