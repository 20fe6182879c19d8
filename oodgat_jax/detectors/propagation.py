"""Scores spread over the graph: a wrapper on any detector, GNNSafe and GRASP."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs, registry
from oodgat_jax.detectors.basic import energy, msp
from oodgat_jax.graphs import reductions
from oodgat_jax.types import AnyArray, Array, Detector, Predict, Split

GRASP_SCORES: dict[str, Callable[[], Detector]] = {
    "MSP": lambda: msp,
    "energy": energy,
}


def propagate(
    detector: Detector, rounds: int = 2, alpha: Array | float = 0.5
) -> Detector:
    """Returns a detector whose scores E are averaged with the neighbors'.

        E <- alpha E + (1 - alpha) D^-1 A E, `rounds` times

    A node without neighbors keeps its own score. On a directed graph a node hears
    from the nodes with an edge to it.

    Args:
      detector: any detector.
      rounds: K >= 0.
      alpha: a node's weight on itself, in [0, 1]; may be traced.
    """

    def propagated(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        weights = graphs.mean_weights(graph)
        alone = graphs.degree(graph) == 0

        def spread(_, scores: Array) -> Array:
            mean = _aggregate(graph, weights, scores)
            return jnp.where(alone, scores, alpha * scores + (1 - alpha) * mean)

        return jax.lax.fori_loop(0, rounds, spread, detector(predict, graph, split))

    return propagated


def gnnsafe(
    rounds: int = 2, alpha: Array | float = 0.5, temperature: Array | float = 1.0
) -> Detector:
    """Returns `propagate` on `energy` (Energy-based OOD Detection for GNNs, 2023)."""
    return propagate(energy(temperature), rounds, alpha)


def grasp(
    rounds: int = 8,
    *,
    score: str = "energy",
    share: float = 0.05,
    top: float = 0.5,
    hold: bool = False,
) -> Detector:
    """Returns GRASP (Revisiting Score Propagation in Graph OOD Detection, 2024).

        h_i = edges to the most confident unlabeled nodes
              / (edges to the least confident ones + 1), for each labeled node i
        G   = the labeled nodes with the highest h
        E  <- D_G^-1 (A + 1_G 1_G') E, `rounds` times, D_G the row sums

    Confidence is the maximum of the softmax. `1_G 1_G'` joins the nodes of G to each
    other and to themselves, and needs no edges: it adds the sum of E over G. Ties are
    broken by node number; shares are rounded down. A node without neighbors keeps
    its own score.

    Choices: labeled means the train mask (the published code adds the validation
    nodes, whose labels are not ours to use). The rows are normalized, so if labeled
    nodes were held at their first scores the edges of G would change nothing
    elsewhere: therefore `hold` is off by default, as in the published code.

    Args:
      rounds: K >= 0.
      score: where E starts, `energy` or `MSP`.
      share: of the unlabeled nodes that are most, and that are least, confident.
      top: share of the labeled nodes that are joined.
      hold: whether labeled nodes keep their first scores.
    """
    registry.check_name("score", score, GRASP_SCORES)
    first_score = GRASP_SCORES[score]()

    def detector(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        outputs = predict(graph)
        train = jnp.asarray(split.train)
        group = _joined(
            graph, jax.nn.softmax(outputs.logits).max(-1), train, share, top
        )
        scores = first_score(lambda _: outputs, graph, split)
        return _spread_joined(graph, scores, group, rounds, train & hold)

    return detector


def _joined(
    graph: jraph.GraphsTuple, confidence: Array, train: Array, share: float, top: float
) -> Array:
    """Returns g as a mask [N]."""
    unlabeled = reductions.without_padding(~train)
    count = jnp.floor(share * reductions.total(unlabeled))
    sure = _rank(-confidence, unlabeled) < count
    unsure = _rank(confidence, unlabeled) < count
    edges = jnp.where(graphs.is_self_loop(graph), 0.0, 1.0)
    ratio = _aggregate(graph, edges, sure) / (_aggregate(graph, edges, unsure) + 1.0)
    return _rank(-ratio, train) < jnp.floor(top * reductions.total(train))


def _rank(values: Array, mask: AnyArray) -> Array:
    """Ranks the nodes of a mask by rising value, N outside: [N]."""
    values, inside = reductions.whole(values), reductions.whole(jnp.asarray(mask))
    size = values.shape[0]
    order = jnp.lexsort((values, ~inside))
    ranks = jnp.zeros(size, jnp.int32).at[order].set(jnp.arange(size, dtype=jnp.int32))
    return jnp.where(mask, reductions.own(ranks), size)


def _spread_joined(
    graph: jraph.GraphsTuple, scores: Array, group: Array, rounds: int, held: Array
) -> Array:
    edges = jnp.where(graphs.is_self_loop(graph), 0.0, 1.0)
    degree = graphs.degree(graph) + jnp.where(group, reductions.total(group), 0)
    still = held | (degree == 0)
    scale = 1.0 / jnp.maximum(degree, 1.0)

    def spread(_, now: Array) -> Array:
        joined = jnp.where(group, reductions.total(now, where=group), 0.0)
        total = _aggregate(graph, edges, now) + joined
        return jnp.where(still, now, scale * total)

    return jax.lax.fori_loop(0, rounds, spread, scores)


def _aggregate(graph: jraph.GraphsTuple, weights: Array, x: Array) -> Array:
    """Aggregates one number per node: [N] -> [N]."""
    return graphs.aggregate(graph, weights, x.astype(jnp.float32)[:, None])[:, 0]
