"""Groups of unknown nodes: candidates for new classes.

Nodes called unknown are clustered in the space of the hidden layers: by HDBSCAN, which
finds groups of any shape and leaves out what is in none; where it leaves out most
nodes, by a Gaussian mixture whose number of components has the smallest BIC.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from oodgat_jax.report import projection
from oodgat_jax.report.findings import Findings

FEWEST = 12  # unknown nodes that can be grouped
MOST_FITTED = 5_000  # nodes that a clustering is fitted to; others join the nearest
MOST_COMPONENTS = 8
DIMENSIONS = 8
SHOWN_FEATURES, SHOWN_NODES = 6, 10


class Contrast(NamedTuple):
    """A feature that sets a group apart."""

    name: str
    difference: float  # of the mean from that of all other nodes, in deviations


class Group(NamedTuple):
    """Nodes called unknown that are alike."""

    size: int
    cohesion: float  # mean of (b - a) / max(a, b): a to the own center, b to the next
    edges_inside: float  # share of the edges into its nodes that come from its nodes
    nearest_class: str  # known class whose labeled nodes have the nearest center
    contrasts: Sequence[Contrast]
    typical: Sequence[int]  # nodes nearest to the center


class Groups(NamedTuple):
    """Groups, largest first, and the group of every node."""

    groups: Sequence[Group]
    of_node: np.ndarray  # [N] int32, -1 for none
    method: str  # how they were found, in words


def find(findings: Findings, seed: int = 0) -> Groups:
    """Returns the groups of the nodes that are called unknown."""
    nodes = np.flatnonzero(findings.unknown)
    of_node = np.full(len(findings.score), -1, np.int32)
    if len(nodes) < FEWEST:
        return Groups((), of_node, f"fewer than {FEWEST} nodes are called unknown")
    found, method = cluster(findings.space[nodes], seed)
    of_node[nodes] = _by_size(found)
    count = int(of_node.max()) + 1
    centers = _centers(findings.space, of_node, count)
    known = _centers(findings.space, findings.codes, len(findings.classes))
    groups = [_describe(findings, of_node, at, centers, known) for at in range(count)]
    return Groups(groups, of_node, method)


def cluster(space: np.ndarray, seed: int = 0) -> tuple[np.ndarray, str]:
    """Returns the cluster of each row [n], -1 for none, and how it was found."""
    from sklearn.cluster import HDBSCAN

    parts = projection.reduce(space, DIMENSIONS).astype(np.float64)
    some = np.arange(len(parts))
    if len(parts) > MOST_FITTED:
        some = np.random.default_rng(seed).choice(len(parts), MOST_FITTED, False)
    least = max(FEWEST // 2, len(some) // 50)
    found = HDBSCAN(min_cluster_size=least, copy=True).fit_predict(parts[some])
    if found.max() >= 1 and (found >= 0).mean() > 0.5:
        return _joined(parts, some, found), "HDBSCAN"
    mixture = _mixture(parts[some], seed)
    count = mixture.n_components
    return mixture.predict(parts), f"Gaussian mixture, {count} components by BIC"


def _mixture(parts: np.ndarray, seed: int):
    """Returns the mixture of normal distributions that has the smallest BIC."""
    from sklearn.mixture import GaussianMixture

    most = min(MOST_COMPONENTS, len(parts) // FEWEST + 1)
    fitted = [
        GaussianMixture(
            count, covariance_type="diag", reg_covar=1e-4, random_state=seed
        ).fit(parts)
        for count in range(1, most + 1)
    ]
    return min(fitted, key=lambda each: each.bic(parts))


def _joined(parts: np.ndarray, some: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Returns all rows' clusters: of those not fitted, that of the nearest row."""
    if len(some) == len(parts):
        return found
    from sklearn.neighbors import KNeighborsClassifier

    nearest = KNeighborsClassifier(1).fit(parts[some], found)
    joined = nearest.predict(parts)
    joined[some] = found
    return joined


def _by_size(found: np.ndarray) -> np.ndarray:
    """Numbers clusters anew, the largest first; -1 stays."""
    names, counts = np.unique(found[found >= 0], return_counts=True)
    order = names[np.argsort(-counts, kind="stable")]
    number = np.full(int(found.max()) + 2, -1, np.int32)
    number[order] = np.arange(len(order))
    return number[found]


def _centers(space: np.ndarray, numbers: np.ndarray, count: int) -> np.ndarray:
    """Returns the mean of each number's nodes [count, D]; far away where none is."""
    means = np.full((count, space.shape[1]), np.inf)
    for number in range(count):
        if (numbers == number).any():
            means[number] = space[numbers == number].mean(0)
    return means


def _describe(
    findings: Findings,
    of_node: np.ndarray,
    number: int,
    centers: np.ndarray,
    known: np.ndarray,
) -> Group:
    nodes = np.flatnonzero(of_node == number)
    rows = findings.space[nodes]
    own = np.linalg.norm(rows - centers[number], axis=1)
    others = np.concatenate([np.delete(centers, number, 0), known])
    nearest_class = int(np.linalg.norm(known - centers[number], axis=1).argmin())
    return Group(
        size=len(nodes),
        cohesion=_cohesion(rows, own, others),
        edges_inside=_edges_inside(findings, of_node == number),
        nearest_class=findings.classes[nearest_class],
        contrasts=contrasts(findings, of_node == number),
        typical=nodes[np.argsort(own, kind="stable")[:SHOWN_NODES]].tolist(),
    )


def _cohesion(rows: np.ndarray, own: np.ndarray, others: np.ndarray) -> float:
    distances = [np.linalg.norm(rows - other, axis=1) for other in others]
    nearest = np.min(distances, axis=0)
    return float(np.mean((nearest - own) / np.maximum(np.maximum(nearest, own), 1e-12)))


def _edges_inside(findings: Findings, inside: np.ndarray) -> float:
    into = inside[findings.receivers] & (findings.senders != findings.receivers)
    return float(inside[findings.senders[into]].mean()) if into.any() else 0.0


def contrasts(findings: Findings, inside: np.ndarray) -> list[Contrast]:
    """Returns the features whose mean inside differs most from that outside."""
    features, names = findings.features, findings.feature_names
    mean, deviation = _moments(features)
    there = np.asarray(features[inside].mean(0), np.float64).reshape(-1)
    share = inside.mean()
    elsewhere = (mean - share * there) / max(1.0 - share, 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.nan_to_num((there - elsewhere) / deviation, posinf=0, neginf=0)
    order = np.argsort(-np.abs(difference), kind="stable")[:SHOWN_FEATURES]
    return [
        Contrast(names[at] if names else f"feature {at}", float(difference[at]))
        for at in order
        if difference[at]
    ]


def _moments(features) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and standard deviation of every column, [F] each."""
    if not scipy.sparse.issparse(features):
        return features.mean(0, dtype=np.float64), features.std(0, dtype=np.float64)
    mean = np.asarray(features.mean(0), np.float64).reshape(-1)
    squares = np.asarray(features.multiply(features).mean(0), np.float64).reshape(-1)
    return mean, np.sqrt(np.maximum(squares - mean**2, 0.0))
