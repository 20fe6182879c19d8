"""What a fitted model says of a graph, as arrays on the host."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oodgat_jax.types import Features


class Bounds(NamedTuple):
    """What calibration nodes allow to say of known nodes at every threshold."""

    scores: np.ndarray  # [n] of the calibration nodes, ascending
    lost: int  # of them, at the model's own threshold; equal scores count in an order
    intervals: np.ndarray  # [n + 1, 2] of the share of known nodes lost, by their count
    confidence: float


class Findings(NamedTuple):
    """A graph and what M members say of its N nodes; edges are sorted by receiver."""

    ids: Sequence[str]  # [N]
    classes: Sequence[str]  # [C]
    probabilities: np.ndarray  # [N, C]
    score: np.ndarray  # [N] float32, higher = more likely unknown
    spread: np.ndarray  # [N] between the members
    codes: np.ndarray  # [N] places of the labels in `label_names`, negative for none
    held_out: np.ndarray  # [N] bool, labeled nodes that no member learned from
    threshold: float
    space: np.ndarray  # [N, D] float32, the members' hidden layers
    features: Features  # [N, F], as the members see them
    senders: np.ndarray  # [E], with one loop per node
    receivers: np.ndarray  # [E]
    attention: np.ndarray | None  # [E], summing to 1 over the edges into a node
    label_names: Sequence[str]  # the classes, then labels that are no class of the fit
    feature_names: Sequence[str] | None = None
    bounds: Bounds | None = None  # None: too few were held out, or another graph
    facts: Sequence[tuple[str, str]] = ()  # what made it, for the foot of the page

    @property
    def unlabeled(self) -> np.ndarray:
        """Returns which nodes have no label: [N] bool."""
        return self.codes < 0

    @property
    def unknown(self) -> np.ndarray:
        """Returns which unlabeled nodes are called unknown: [N] bool."""
        return self.unlabeled & (self.score > self.threshold)

    @property
    def predicted(self) -> np.ndarray:
        """Returns the number of the most probable class: [N]."""
        return self.probabilities.argmax(1)
