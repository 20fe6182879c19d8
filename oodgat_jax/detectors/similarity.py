"""Scores that are spread along edges between nodes of like scores."""

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs
from oodgat_jax.detectors.basic import energy
from oodgat_jax.graphs import reductions
from oodgat_jax.types import Array, Detector, Predict, Split


def similarity_propagation(
    rounds: int = 2,
    alpha: Array | float = 0.5,
    sharpness: Array | float = 5.0,
    temperature: Array | float = 1.0,
) -> Detector:
    """Returns energies averaged with those of neighbors that have like energies.

        w_ij = exp(-sharpness |E_i - E_j| / (max E - min E)), on edges
        E   <- alpha E + (1 - alpha) sum_j w_ij E_j / sum_j w_ij, `rounds` times

    The weights are those of the first energies. This is after EDBD (2025), whose exact
    formulas are not public: an edge between nodes of unlike energies is weakened. With
    a sharpness of 0 it is GNNSafe. A node without neighbors keeps its energy.

    Args:
      rounds: K >= 0.
      alpha: a node's weight on itself, in [0, 1]; may be traced.
      sharpness: how fast weights fall, >= 0; may be traced.
      temperature: T of the energy; may be traced.
    """

    def detector(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        first = energy(temperature)(predict, graph, split)
        weights = _like(graph, first, sharpness)
        total = graphs.sum_edges(graph, weights)
        scale = 1.0 / jnp.where(total > 0, total, 1.0)

        def spread(_: int, now: Array) -> Array:
            mean = scale * graphs.aggregate_one(graph, weights, now)
            return jnp.where(total > 0, alpha * now + (1 - alpha) * mean, now)

        return jax.lax.fori_loop(0, rounds, spread, first)

    return detector


def _like(graph: jraph.GraphsTuple, values: Array, sharpness: Array | float) -> Array:
    """Computes w for all edges, 0 for self-loops: [E]."""
    everywhere = reductions.whole(values)
    here = reductions.without_padding(jnp.ones_like(values, bool))
    real = reductions.whole(jnp.asarray(here))
    high = jnp.max(everywhere, where=real, initial=-jnp.inf)
    low = jnp.min(everywhere, where=real, initial=jnp.inf)
    mine = graphs.take(values, graph.receivers)
    theirs = graphs.take(graphs.sources(graph, values), graph.senders)
    gap = jnp.abs(mine - theirs) / jnp.maximum(high - low, 1e-12)
    return jnp.where(graphs.is_self_loop(graph), 0.0, jnp.exp(-sharpness * gap))
