"""Operations on a graph's nodes and edges, on device."""

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax.graphs import sparse
from oodgat_jax.graphs.context import context, pattern, sources
from oodgat_jax.types import AnyArray, Array


def num_nodes(graph: jraph.GraphsTuple) -> int:
    """Returns N, as a static number."""
    return graph.nodes.shape[0]


def is_self_loop(graph: jraph.GraphsTuple) -> Array:
    """Returns which edges are self-loops: [E] bool."""
    return graph.senders == graph.receivers


def take(x: AnyArray, ids: AnyArray) -> Array:
    """Returns x[ids] along the first axis, without bounds checks: ids are valid."""
    return (
        jnp.asarray(x)
        .at[ids]
        .get(mode="promise_in_bounds", wrap_negative_indices=False)
    )


def sum_by(ids: AnyArray, values: Array, size: int, is_sorted: bool = True) -> Array:
    """Sums values [M, ...] that share an id -> [size, ...]; ids known to be valid."""
    return jax.ops.segment_sum(
        values, ids, size, indices_are_sorted=is_sorted, mode="promise_in_bounds"
    )


def sum_edges(graph: jraph.GraphsTuple, values: Array) -> Array:
    """Sums edge values [E, ...] over the edges into each node -> [N, ...]."""
    return sum_by(graph.receivers, values, num_nodes(graph))


def degree(graph: jraph.GraphsTuple) -> Array:
    """Counts the neighbors each node receives from, itself aside: [N] float32."""
    return sum_edges(graph, jnp.where(is_self_loop(graph), 0.0, 1.0))


def aggregate(graph: jraph.GraphsTuple, weights: Array, x: Array) -> Array:
    """Computes out_i = sum_j weights_ij x_j: weights [E], x [N, D] -> [N, D].

    It is differentiable in both; with a sparse kernel no array [E, D] is made unless
    the gradient of the weights is wanted.
    """
    x = sources(graph, x)
    if pattern(graph) is not None:
        return sparse.matmul(weights, pattern(graph), x)
    return sum_edges(graph, weights[:, None] * take(x, graph.senders))


def symmetric_weights(graph: jraph.GraphsTuple) -> Array:
    """Returns GCN's D^-1/2 (A + I) D^-1/2, D the degree with the self-loop: [E]."""
    scale = jax.lax.rsqrt(degree(graph) + 1.0)
    return scale[graph.receivers] * sources(graph, scale)[graph.senders]


def mean_weights(graph: jraph.GraphsTuple) -> Array:
    """Returns D^-1 A without self-loops: [E]; zeros for a node without neighbors."""
    scale = 1.0 / jnp.maximum(degree(graph), 1.0)
    return jnp.where(is_self_loop(graph), 0.0, scale[graph.receivers])


def propagate(
    graph: jraph.GraphsTuple,
    values: Array,
    rounds: int,
    alpha: Array | float,
    keep_isolated: bool = True,
) -> Array:
    """Averages values v [N] with those of neighbors, `rounds` times.

        v <- alpha v + (1 - alpha) D^-1 A v

    A node without neighbors keeps its value, or has alpha times it after each round.
    """
    weights = mean_weights(graph)
    held = (degree(graph) == 0) & keep_isolated

    def spread(_: int, now: Array) -> Array:
        mean = aggregate_one(graph, weights, now)
        return jnp.where(held, now, alpha * now + (1 - alpha) * mean)

    return jax.lax.fori_loop(0, rounds, spread, values)


def aggregate_one(graph: jraph.GraphsTuple, weights: Array, x: Array) -> Array:
    """Aggregates one number per node: [N] -> [N]."""
    return aggregate(graph, weights, x.astype(jnp.float32)[:, None])[:, 0]


def without_edges(graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
    """Returns the nodes of a graph without their edges: self-loops are all that is
    left, so that a network sees each node alone."""
    nodes = jnp.arange(num_nodes(graph), dtype=jnp.int32)
    here = context(graph)._replace(pattern=None, native=None, send=None)
    return graph._replace(
        senders=nodes,
        receivers=nodes,
        n_edge=jnp.array([nodes.shape[0]], jnp.int32),
        globals=here._replace(edge_ids=here.node_ids),
    )


def component(graph: jraph.GraphsTuple) -> Array:
    """Returns which of the joined graphs each node is of, in the order of `n_node`:
    [N] int32. A sharded graph counts as one."""
    nodes = jnp.arange(num_nodes(graph))
    return jnp.searchsorted(jnp.cumsum(graph.n_node)[:-1], nodes, side="right")
