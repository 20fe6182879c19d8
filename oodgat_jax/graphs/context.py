"""What a graph carries beyond its edges: which kernel to use, and where its nodes are.

`graph.globals` is always a Context. On a graph that is in one place only the choice of
kernel may be set, and all other entries are None. On a graph that is sharded over
devices each device sees a graph of its own nodes and the edges into them; its Context
says which nodes, edges and stored features of the whole graph these are. Receivers are
the device's own nodes. Senders are positions in `sources(graph, x)`: the own nodes,
then the halo.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax.graphs import reductions
from oodgat_jax.graphs.sparse import Pattern
from oodgat_jax.types import AnyArray, Array


class Native(NamedTuple):
    """Says, by being there, that edges go to the native kernels."""


class Context(NamedTuple):
    """The record in `graph.globals`: B nodes and E edges here, P devices."""

    pattern: Pattern | None = None  # [B, B + P M]; None: segment operations
    native: Native | None = None  # native kernels where they serve; needs the pattern
    send: AnyArray | None = None  # [P, M] int32, own nodes that each device asks for
    node_ids: AnyArray | None = (
        None  # [B] int32, in the whole graph; padding comes last
    )
    is_real: AnyArray | None = None  # [B] bool, False for padding
    edge_ids: AnyArray | None = None  # [E] uint32, in the whole graph
    num_edges: AnyArray | None = None  # [] uint32, of the whole graph
    entry_ids: AnyArray | None = None  # [Z] uint32, stored features, if they are sparse


def context(graph: jraph.GraphsTuple) -> Context:
    """Returns the graph's Context."""
    return graph.globals


def pattern(graph: jraph.GraphsTuple) -> Pattern | None:
    """Returns the edges' pattern for sparse products; None: use segment operations."""
    return graph.globals.pattern


def is_sharded(graph: jraph.GraphsTuple) -> bool:
    """Returns whether the graph's arrays are those of shards."""
    return graph.globals.send is not None


@contextlib.contextmanager
def on_device(graph: jraph.GraphsTuple) -> Iterator[jraph.GraphsTuple]:
    """Yields the graph as one device of a `shard_map` sees it.

    Inside, reductions over nodes span all shards.
    """
    if not is_sharded(graph):
        yield graph
        return
    shard = jax.tree.map(lambda leaf: leaf[0], graph)
    with reductions.on_shard(shard.globals.node_ids, shard.globals.is_real):
        yield shard


def sources(graph: jraph.GraphsTuple, x: Array) -> Array:
    """Returns the node values that `graph.senders` indexes: x [N, ...], or on a shard
    the local rows followed by the halo rows [B + P M, ...].

    The halo is one all_to_all, never more than an all-gather. It is linear, and its
    gradient travels back the same way.
    """
    send = graph.globals.send
    if send is None:
        return x
    outgoing = x.at[send].get(mode="promise_in_bounds", wrap_negative_indices=False)
    incoming = jax.lax.all_to_all(outgoing, reductions.AXIS, 0, 0)
    return jnp.concatenate([x, incoming.reshape(-1, *x.shape[1:])])
