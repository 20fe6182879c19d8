"""Edges by what they join: two nodes of known classes, two unknown ones, one of each.

All here is numpy on the host and looks at every label, so it is for analysis only: no
method may see it.
"""

import numpy as np

from oodgat_jax.registry import check_name
from oodgat_jax.types import Dataset, InputError

KINDS = ("id-id", "inter", "ood-ood")


def is_ood(dataset: Dataset) -> np.ndarray:
    """Returns which nodes are labeled with a class that is not known: [N] bool."""
    known = np.isin(dataset.labels, dataset.id_classes)
    return (dataset.labels >= 0) & ~known


def kinds(dataset: Dataset) -> np.ndarray:
    """Returns positions in KINDS, -1 where an end has no label: [E] int."""
    outside = is_ood(dataset).astype(int)
    found = outside[dataset.senders] + outside[dataset.receivers]
    labeled = dataset.labels >= 0
    return np.where(labeled[dataset.senders] & labeled[dataset.receivers], found, -1)


def without(dataset: Dataset, kind: str, share: float = 1.0, seed: int = 0) -> Dataset:
    """Returns the data set without a share of its edges of one kind.

    Which go is drawn by the seed; an edge and its reverse go together, and of two
    shares the larger takes all that the smaller takes.
    """
    check_name("kind of edges", kind, KINDS)
    if not 0 <= share <= 1:
        raise InputError(f"The share of edges to remove is {share}: give 0 to 1.")
    ends = np.sort([dataset.senders, dataset.receivers], axis=0).astype(np.int64)
    pairs = ends[0] * dataset.num_nodes + ends[1]
    candidates = np.unique(pairs[kinds(dataset) == KINDS.index(kind)])
    order = np.random.default_rng(seed).permutation(candidates)
    kept = ~np.isin(pairs, order[: round(share * len(order))])
    return dataset._replace(
        senders=dataset.senders[kept], receivers=dataset.receivers[kept]
    )


def homophily(senders: np.ndarray, receivers: np.ndarray, labels: np.ndarray) -> float:
    """Computes node homophily: the mean share of neighbors with the same label.

    h = 1/|V| sum over v of |{u in N(v): y_u = y_v}| / |N(v)|, the ratio in the paper's
    appendix. N(v) are the nodes with an edge to v. Nodes without a neighbor or
    without a label (-1) are left out; NaN if none is left.
    """
    senders, receivers = np.asarray(senders, int), np.asarray(receivers, int)
    labels = np.asarray(labels)
    counted = (labels[senders] >= 0) & (labels[receivers] >= 0)
    senders, receivers = senders[counted], receivers[counted]
    size = len(labels)
    degree = np.bincount(receivers, minlength=size)
    same = labels[senders] == labels[receivers]
    alike = np.bincount(receivers, weights=same, minlength=size)
    shares = alike[degree > 0] / degree[degree > 0]
    return float(shares.mean()) if len(shares) else float("nan")


def class_homophily(dataset: Dataset) -> float:
    """Computes `homophily` of the classes."""
    return homophily(dataset.senders, dataset.receivers, dataset.labels)


def identity_homophily(dataset: Dataset) -> float:
    """Computes `homophily` of {ID, OOD}: not below the classes' (the paper's claim)."""
    labels = np.where(dataset.labels < 0, -1, is_ood(dataset))
    return homophily(dataset.senders, dataset.receivers, labels)
