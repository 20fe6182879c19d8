"""Scores spread over the graph: a wrapper on any detector, and GNNSafe."""

import jraph

from oodgat_jax import graphs
from oodgat_jax.detectors.basic import energy
from oodgat_jax.types import Array, Detector, Predict, Split


def propagate(
    detector: Detector,
    rounds: int = 2,
    alpha: Array | float = 0.5,
    *,
    keep_isolated: bool = True,
) -> Detector:
    """Returns a detector whose scores E are averaged with the neighbors'.

        E <- alpha E + (1 - alpha) D^-1 A E, `rounds` times

    On a directed graph a node hears from the nodes with an edge to it.

    Args:
      detector: any detector.
      rounds: K >= 0.
      alpha: a node's weight on itself, in [0, 1]; may be traced.
      keep_isolated: whether a node without neighbors keeps its own score; in the
        formula, and in published code, it becomes alpha^K E.
    """

    def propagated(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        scores = detector(predict, graph, split)
        return graphs.propagate(graph, scores, rounds, alpha, keep_isolated)

    return propagated


def gnnsafe(
    rounds: int = 2,
    alpha: Array | float = 0.5,
    temperature: Array | float = 1.0,
    *,
    keep_isolated: bool = True,
) -> Detector:
    """Returns `propagate` on `energy` (Energy-based OOD Detection for GNNs, 2023)."""
    return propagate(energy(temperature), rounds, alpha, keep_isolated=keep_isolated)
