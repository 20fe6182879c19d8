"""GEBM: energies of a network and of distances in its hidden layer, on three scales."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs
from oodgat_jax.graphs import reductions
from oodgat_jax.types import AnyArray, Array, Detector, Outputs, Predict, Split

CENTRAL = 0.95  # share of the nodes whose values give a scale
SMALLEST = 1e-6  # variance that a class must exceed in every dimension


def gebm(
    weight: Array | float = 1.0,
    *,
    rounds: int = 10,
    alpha: Array | float = 0.5,
    edges: bool = False,
) -> Detector:
    """Returns GEBM (Fuchsgruber et al., Energy-based Epistemic Uncertainty for Graph
    Neural Networks, 2024).

        m_ic = sum_d (h_id - mu_cd)^2 / var_cd, over the hidden layer h
        e_ic = f_ic - weight (m_ic scaled to the range of f_c)
        D(x): x <- alpha x + (1 - alpha) D^-1 (A + I) x, `rounds` times
        score = -lse_c D(e)_c + D(-lse_c e_c) - lse_c e_c

    mu and var are those of a class's labeled nodes. The scaling maps the central 95 %
    of m_c on those of f_c, both of the network on the graph; m, f and e are then taken
    of the network without edges. A class without labeled nodes has evidence f_c alone.

    Args:
      weight: of the distances, lambda >= 0; may be traced.
      rounds: of diffusion D.
      alpha: a node's weight on itself, in [0, 1]; may be traced.
      edges: whether f and h of the score come from the network with edges too.
    """

    def detector(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        fitted = _fit(graph, predict(graph), split)
        outputs = predict(graph if edges else graphs.without_edges(graph))
        evidence = outputs.logits - weight * _scaled(fitted, outputs.hidden)
        local = -jax.nn.logsumexp(evidence, axis=-1)
        group = -jax.nn.logsumexp(_diffuse(graph, evidence, rounds, alpha), axis=-1)
        return group + _diffuse(graph, local[:, None], rounds, alpha)[:, 0] + local

    return detector


class _Fitted(NamedTuple):
    """What labeled nodes and the graph say; lo and hi bound the central values."""

    means: Array  # [C, D]
    variances: Array  # [C, D]
    present: Array  # [C] bool, classes with a labeled node
    distance: tuple[Array, Array]  # lo, hi of m_c, [C] each
    logit: tuple[Array, Array]  # lo, hi of f_c, [C] each


def _fit(graph: jraph.GraphsTuple, outputs: Outputs, split: Split) -> _Fitted:
    train = jnp.asarray(split.train)
    size = outputs.logits.shape[1]
    member = jax.nn.one_hot(split.labels, size) * train[:, None]  # [N, C]
    counts = reductions.total(member)
    means = reductions.add(member.T @ outputs.hidden) / jnp.maximum(counts, 1)[:, None]
    squares = (outputs.hidden - member @ means) ** 2
    variances = reductions.add(member.T @ squares) / jnp.maximum(counts, 1)[:, None]
    variances = variances + _jitter(variances.min(axis=1))[:, None]
    nodes = _of_training(graph, train)
    distances = _distances(means, variances, outputs.hidden)
    return _Fitted(
        means,
        variances,
        counts > 0,
        _central(distances, nodes),
        _central(outputs.logits, nodes),
    )


def _jitter(smallest: Array) -> Array:
    """Returns the first of 0, 1e-8, 1.1e-7, 1.11e-6 that lifts it above 1e-6: [C]."""
    steps = jnp.array([0.0, 1e-8, 1.1e-7, 1.11e-6])
    enough = smallest[:, None] + steps > SMALLEST
    return steps[jnp.argmax(enough, axis=1)]


def _distances(means: Array, variances: Array, hidden: Array) -> Array:
    """Computes m [N, C], one class at a time: no array [N, C, D] is made."""

    def to_class(fitted: tuple[Array, Array]) -> Array:
        mean, variance = fitted
        return jnp.sum((hidden - mean) ** 2 / variance, axis=-1)

    return jax.lax.map(to_class, (means, variances)).T


def _scaled(fitted: _Fitted, hidden: Array) -> Array:
    (low, high), (floor, ceiling) = fitted.distance, fitted.logit
    distances = _distances(fitted.means, fitted.variances, hidden)
    width = jnp.where(high > low, high - low, 1.0)
    scaled = (distances - low) / width * (ceiling - floor) + floor
    return jnp.where(fitted.present, scaled, 0.0)


def _central(values: Array, nodes: AnyArray) -> tuple[Array, Array]:
    """Returns the lowest and highest of the central values of each column: [C] each."""
    values, inside = reductions.whole(values), reductions.whole(jnp.asarray(nodes))
    rising = jnp.sort(jnp.where(inside[:, None], values, jnp.inf), axis=0)
    count = jnp.sum(inside)
    tail = (1 - CENTRAL) / 2
    first = jnp.floor(tail * count).astype(jnp.int32)
    last = jnp.floor((1 - tail) * count).astype(jnp.int32) - 1
    return rising[first], rising[jnp.maximum(last, first)]


def _of_training(graph: jraph.GraphsTuple, train: Array) -> Array:
    """Returns the nodes of those joined graphs that have labeled nodes: [N] bool."""
    member = jax.nn.one_hot(graphs.component(graph), graph.n_node.shape[0])
    seen = reductions.total(member * train[:, None]) > 0
    return jnp.asarray(
        reductions.without_padding(member @ seen.astype(member.dtype) > 0)
    )


def _diffuse(
    graph: jraph.GraphsTuple, x: Array, rounds: int, alpha: Array | float
) -> Array:
    """Computes D(x) of x [N, C]."""
    scale = 1.0 / (graphs.degree(graph) + 1.0)
    weights = graphs.take(scale, graph.receivers)

    def spread(_: int, now: Array) -> Array:
        return alpha * now + (1 - alpha) * graphs.aggregate(graph, weights, now)

    return jax.lax.fori_loop(0, rounds, spread, x)
