"""Groups of unknown nodes: candidates for new classes.

Nodes called unknown are grouped by k-means, by what they and the nodes around them are
like. Groups are as many as halves of the nodes agree on best: of two k-means, each
fitted to one half, both put all nodes into groups, and the adjusted Rand index of the
two is their agreement.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from oodgat_jax.report import projection, surroundings
from oodgat_jax.report.findings import Findings

FEWEST = 12  # unknown nodes that can be grouped
MOST_FITTED = 5_000  # nodes that centers are fitted to
MOST_HALVED = 1_500  # nodes whose halves choose the number of groups
MOST_GROUPS = 8
HALVINGS = 10
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
    space: np.ndarray  # [N, K], in which they lie apart
    method: str  # how they were found, in words


def find(findings: Findings, seed: int = 0) -> Groups:
    """Returns the groups of the nodes that are called unknown."""
    nodes = np.flatnonzero(findings.unknown)
    of_node = np.full(len(findings.score), -1, np.int32)
    space = surroundings.space(findings, seed)
    if len(nodes) < FEWEST:
        told = f"fewer than {FEWEST} nodes are called unknown"
        return Groups((), of_node, space, told)
    found, method = cluster(space[nodes], seed)
    of_node[nodes] = _by_size(found)
    count = int(of_node.max()) + 1
    centers = _centers(space, of_node, count)
    known = _centers(space, findings.codes, len(findings.classes))
    groups = [
        _describe(findings, space, of_node, at, centers, known) for at in range(count)
    ]
    return Groups(groups, of_node, space, method)


def cluster(space: np.ndarray, seed: int = 0) -> tuple[np.ndarray, str]:
    """Returns the cluster of each row [n], and how it was found."""
    from sklearn.cluster import KMeans

    parts = projection.reduce(space, DIMENSIONS)
    some = np.random.default_rng(seed).permutation(parts)[:MOST_FITTED]
    count, agreement = _most_stable(some[:MOST_HALVED], seed)
    fitted = KMeans(count, n_init=5, random_state=seed).fit(some)
    told = f"k-means; halves of the nodes agree by {agreement:.0%} on {count} groups"
    return fitted.predict(parts), told


def _most_stable(parts: np.ndarray, seed: int) -> tuple[int, float]:
    """Returns the number of groups that halves of the rows agree on best, and how."""
    most = min(MOST_GROUPS, len(parts) // FEWEST + 1)
    agreed = {
        count: _agreement(parts, count, seed) for count in range(2, max(most, 2) + 1)
    }
    best = max(agreed, key=lambda count: agreed[count])
    return best, max(agreed[best], 0.0)


def _agreement(parts: np.ndarray, count: int, seed: int) -> float:
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    random, half, agreed = np.random.default_rng(seed), len(parts) // 2, []
    for _ in range(HALVINGS):
        order = random.permutation(len(parts))
        both = [
            KMeans(count, n_init=1, random_state=seed).fit(parts[rows]).predict(parts)
            for rows in (order[:half], order[half:])
        ]
        agreed.append(adjusted_rand_score(*both))
    return float(np.mean(agreed))


def _by_size(found: np.ndarray) -> np.ndarray:
    """Numbers clusters anew, the largest first."""
    names, numbers, counts = np.unique(found, return_inverse=True, return_counts=True)
    place = np.empty(len(names), np.int32)
    place[np.argsort(-counts, kind="stable")] = np.arange(len(names))
    return place[numbers]


def _centers(space: np.ndarray, numbers: np.ndarray, count: int) -> np.ndarray:
    """Returns the mean of each number's nodes [count, D]; far away where none is."""
    means = np.full((count, space.shape[1]), np.inf)
    for number in range(count):
        if (numbers == number).any():
            means[number] = space[numbers == number].mean(0)
    return means


def _describe(
    findings: Findings,
    space: np.ndarray,
    of_node: np.ndarray,
    number: int,
    centers: np.ndarray,
    known: np.ndarray,
) -> Group:
    nodes = np.flatnonzero(of_node == number)
    rows = space[nodes]
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
