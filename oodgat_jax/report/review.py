"""What to label next: the nodes whose label would tell most.

A label tells of the nodes that are like its node. Nodes are suggested one after the
other, each the one that comes nearest to the nodes called unknown, counting how much
nearer it comes than any label that there is or is suggested already.
"""

from typing import NamedTuple

import numpy as np

from oodgat_jax.report import projection
from oodgat_jax.report.findings import Findings
from oodgat_jax.report.groups import Groups

DIMENSIONS = 16
FEWEST = 12  # nodes called unknown; with fewer, all unlabeled nodes count
MOST = 2_000  # labels, nodes to tell of, and nodes to choose from: a sample of more


class Suggestion(NamedTuple):
    """A node to label; the columns of a review table."""

    id: str
    score: float
    predicted: str  # the most probable known class
    called_unknown: bool
    reason: str
    label: str = ""  # for a person to fill in


class Pick(NamedTuple):
    """A node and why it is suggested."""

    node: int
    reason: str


def suggest(findings: Findings, groups: Groups, count: int) -> list[Suggestion]:
    """Returns at most `count` unlabeled nodes, the most telling ones first."""
    predicted, unknown = findings.predicted, findings.unknown
    return [
        Suggestion(
            id=findings.ids[node],
            score=float(findings.score[node]),
            predicted=findings.classes[predicted[node]],
            called_unknown=bool(unknown[node]),
            reason=reason,
        )
        for node, reason in picks(findings, groups, count)
    ]


def picks(
    findings: Findings,
    groups: Groups,
    count: int,
    among: np.ndarray | None = None,
    seed: int = 0,
) -> list[Pick]:
    """Returns the nodes of `suggest`.

    Args:
      findings: of a graph.
      groups: of the same.
      count: at most so many.
      among: [N] bool, who may be suggested; every unlabeled node by default.
      seed: for the samples of a large graph.
    """
    vectors = projection.directions(projection.reduce(groups.space, DIMENSIONS))
    random = np.random.default_rng(seed)
    free = findings.unlabeled if among is None else findings.unlabeled & among
    told_of = _sample(_unknown_first(findings, findings.unlabeled, FEWEST), random)
    candidates = _sample(_unknown_first(findings, free, count), random)
    labeled = _sample(findings.codes >= 0, random)
    near = np.maximum(vectors[told_of] @ vectors[candidates].T, 0.0)
    best = (vectors[told_of] @ vectors[labeled].T).max(1, initial=0.0)
    left = np.ones(len(candidates), bool)
    found: list[Pick] = []
    while len(found) < count and left.any():
        nearer = np.maximum(near - best[:, None], 0.0)
        chosen = int(np.where(left, nearer.sum(0), -1.0).argmax())
        found.append(_pick(groups, int(candidates[chosen]), nearer[:, chosen]))
        best = np.maximum(best, near[:, chosen])
        left[chosen] = False
    return found


def _unknown_first(findings: Findings, nodes: np.ndarray, least: int) -> np.ndarray:
    """Returns those of some nodes [N] that are called unknown, or all if few are."""
    unknown = nodes & findings.unknown
    return unknown if unknown.sum() >= least else nodes


def _sample(mask: np.ndarray, random: np.random.Generator) -> np.ndarray:
    nodes = np.flatnonzero(mask)
    return nodes if len(nodes) <= MOST else random.choice(nodes, MOST, replace=False)


def _pick(groups: Groups, node: int, nearer: np.ndarray) -> Pick:
    """Returns a node and the reason, which is the nodes that it is nearest to."""
    told = f"nearest label to {np.count_nonzero(nearer):,} nodes"
    group = groups.of_node[node]
    return Pick(node, told if group < 0 else f"{told}, group {group + 1}")
