"""Nodes by what they and the nodes around them are like.

A hidden layer is trained to tell known classes from each other and from the rest; what
sets one unknown class apart from another it may forget. Features do not: averaged over
the graph, they are a space in which unlabeled classes lie apart as well.
"""

import numpy as np
import scipy.sparse

from oodgat_jax.report import projection
from oodgat_jax.report.findings import Findings
from oodgat_jax.types import Features

ROUNDS = 8  # how far nodes are averaged over the graph
MOST_COLUMNS = 64
OWN = 0.5  # weight of a node's own features


def space(findings: Findings, seed: int = 0) -> np.ndarray:
    """Returns two directions [N, 2 K] per node: of its features, and of those around.

    The second is the mean of features 0 to ROUNDS edges away. The first counts half: it
    tells nodes apart whose neighbors are of any kind.
    """
    own = moved = _few_columns(findings.features, seed)
    weights = 1.0 / np.bincount(findings.receivers)  # a node has a loop at least
    averaging = scipy.sparse.csr_array(
        (
            weights[findings.receivers].astype(np.float32),
            (findings.receivers, findings.senders),
        ),
        shape=(len(moved), len(moved)),
    )
    total = own.copy()
    for _ in range(ROUNDS):
        moved = averaging @ moved
        total += moved
    around = projection.directions(total)
    return np.hstack([OWN * projection.directions(own), around])


def _few_columns(features: Features, seed: int) -> np.ndarray:
    """Returns features [N, F], or where F is large their strongest directions."""
    if scipy.sparse.issparse(features):
        features = _rows_of_length_one(features)
    if features.shape[1] > MOST_COLUMNS:
        from sklearn.decomposition import TruncatedSVD

        features = TruncatedSVD(MOST_COLUMNS, random_state=seed).fit_transform(features)
    elif scipy.sparse.issparse(features):
        features = features.toarray()
    return np.asarray(features, np.float32)


def _rows_of_length_one(features) -> scipy.sparse.csr_array:
    found = scipy.sparse.csr_array(features, dtype=np.float32)
    length = np.sqrt(np.asarray(found.multiply(found).sum(1)).reshape(-1))
    scale = 1.0 / np.maximum(length, np.finfo(np.float32).tiny)
    return scipy.sparse.csr_array(found.multiply(scale[:, None]))
