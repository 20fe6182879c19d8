"""GRASP step by step as its authors' code has it."""

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs, registry
from oodgat_jax.detectors.grasp import GRASP_SCORES, rank
from oodgat_jax.graphs import reductions
from oodgat_jax.types import AnyArray, Array, Detector, Predict, Split


def grasp_coded(
    rounds: int = 8,
    alpha: Array | float = 0.0,
    delta: Array | float = 1.001,
    *,
    score: str = "MSP",
    share: float = 0.05,
    top: float = 0.5,
    reselect: bool = False,
) -> Detector:
    """Returns GRASP as coded by its authors (2024), for confidences g, higher = ID.

        h_i = hops to test nodes above the upper percentile of g
              / (those to test nodes below the lower one + 1), for each labeled node i
        G   = the share `top` of the labeled nodes with the highest h
        g  <- alpha g + (1 - alpha) D_G^-1 (A g + delta 1_G sum_G g), `rounds` times
        g  <- max(g, 1) at labeled nodes, before and after each round

    Labeled are the train nodes and the known validation nodes; percentiles are linear
    and strict, so that they choose nobody among equals. A node without neighbors has
    g = 0 after a round. The score is -g; `grasp` explains what it does otherwise.

    Args:
      rounds: K >= 0.
      alpha: a node's weight on itself; may be traced.
      delta: weight of the edges within G; may be traced.
      score: where g starts, `MSP` or `energy` (its negative).
      share: of the test nodes above, and below, the percentiles.
      top: share of the labeled nodes that are joined.
      reselect: whether G is chosen anew after round k, with k + 1 hops; D_G, and what
        the former G had received, stay as they were, as coded.
    """
    registry.check_name("score", score, GRASP_SCORES)

    def detector(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        outputs = predict(graph)
        labeled = jnp.asarray(split.train) | (
            jnp.asarray(split.val) & ~jnp.asarray(split.is_ood)
        )
        trust = jax.nn.softmax(outputs.logits).max(-1)
        group = _chosen(graph, trust, labeled, split.test, share, top, 1)
        first = GRASP_SCORES[score]()(lambda _: outputs, graph, split)
        g = (1.0 if score == "MSP" else 0.0) - first
        degree = graphs.degree(graph) + jnp.where(group, reductions.total(group), 0)
        scale = jnp.where(degree > 0, 1.0 / jnp.maximum(degree, 1.0), 0.0)
        edges = jnp.where(graphs.is_self_loop(graph), 0.0, 1.0)
        g, received = _clamped(g, labeled), jnp.zeros_like(g)
        for hops in range(2, rounds + 2):
            joined = reductions.total(g, where=group) * scale
            received = jnp.where(group, joined, received)
            mean = scale * graphs.aggregate_one(graph, edges, g) + delta * received
            g = _clamped(alpha * g + (1 - alpha) * mean, labeled)
            if reselect and hops <= rounds:
                group = _chosen(graph, g, labeled, split.test, share, top, hops)
        return -g

    return detector


def _clamped(g: Array, labeled: Array) -> Array:
    return jnp.where(labeled, jnp.maximum(g, 1.0), g)


def _chosen(
    graph: jraph.GraphsTuple,
    g: Array,
    labeled: Array,
    test: AnyArray,
    share: float,
    top: float,
    hops: int,
) -> Array:
    """Returns G as a mask [N]."""
    low, high = (_percentile(g, test, part) for part in (share, 1.0 - share))
    sure, unsure = test & (g > high), test & (g < low)
    edges = jnp.where(graphs.is_self_loop(graph), 0.0, 1.0)
    counts = jnp.stack([sure, unsure], axis=1).astype(jnp.float32)
    for _ in range(hops):
        counts = graphs.aggregate(graph, edges, counts)
    ratio = counts[:, 0] / (counts[:, 1] + 1.0)
    return rank(-ratio, labeled) < jnp.floor(top * reductions.total(labeled))


def _percentile(values: Array, mask: AnyArray, part: float) -> Array:
    """Interpolates linearly between the values of a mask, as numpy does."""
    values, inside = reductions.whole(values), reductions.whole(jnp.asarray(mask))
    rising = jnp.sort(jnp.where(inside, values, jnp.inf))
    place = part * jnp.maximum(jnp.sum(inside) - 1, 0)
    below = jnp.floor(place).astype(jnp.int32)
    above = jnp.minimum(below + 1, jnp.maximum(jnp.sum(inside) - 1, 0))
    return rising[below] + (place - below) * (rising[above] - rising[below])
