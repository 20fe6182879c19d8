"""The graph that most tests of the classifier fit, so that they share its programs."""

import numpy as np

from support import synthetic

NODES, FEATURES, KNOWN = 400, 16, 4
ISOLATED = slice(NODES - 10, NODES)  # nodes without edges
SHORT = {"max_steps": 81, "input_dropout": 0.2}


def generate(labeled):
    """Features, edges, labels and true classes: 4 known ones, 4 unknown.

    Args:
      labeled: how many nodes of every known class have a label; -1 for the others.
    """
    made = synthetic.generate(NODES, 4000, FEATURES, signal=2.0, seed=3)
    labels = np.full(NODES, -1)
    for known in range(KNOWN):
        labels[np.flatnonzero(made.labels == known)[:labeled]] = known
    edges = np.stack([made.senders, made.receivers], 1)
    edges = edges[(edges < ISOLATED.start).all(1)]
    return made.features, edges, labels, made.labels
