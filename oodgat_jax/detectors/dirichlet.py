"""How much a node's logits differ from its neighbors': Dirichlet energy."""

import jax.numpy as jnp
import jraph

from oodgat_jax import graphs
from oodgat_jax.types import Array, Detector, Predict, Split


def dirichlet_energy(rounds: int = 2, alpha: Array | float = 0.5) -> Detector:
    """Returns minus the Dirichlet energy of nodes, propagated (Bao et al., Graph
    Out-of-Distribution Detection Goes Neighborhood Shaping, "TopoOOD", 2024).

        g_i = f_i / sqrt(1 + d_i)
        E_i = 1 / d_i sum over neighbors j of |g_i - g_j|^2, 0 without neighbors
        E  <- alpha E + (1 - alpha) D^-1 A E, `rounds` times

    The score is -E, as in the published code, where a high energy is one of ID nodes:
    logits of unknown nodes are short, and so are their differences.

    Args:
      rounds: K >= 0; the paper has 2.
      alpha: a node's weight on itself, in [0, 1]; may be traced.
    """

    def detector(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        scale = jnp.sqrt(1.0 + graphs.degree(graph))[:, None]
        g = predict(graph).logits / scale
        weights = graphs.mean_weights(graph)
        # Squares are expanded, so that no array [E, C] is made.
        squares = jnp.sum(g**2, axis=-1)
        mean = graphs.aggregate(graph, weights, g)
        of_neighbors = graphs.aggregate_one(graph, weights, squares)
        energy = squares + of_neighbors - 2.0 * jnp.sum(g * mean, axis=-1)
        energy = jnp.where(graphs.degree(graph) > 0, jnp.maximum(energy, 0.0), 0.0)
        return -graphs.propagate(graph, energy, rounds, alpha, keep_isolated=False)

    return detector
