"""What to label next: the nodes whose label would tell most.

Three reasons take turns: a node is typical of a group of unknown nodes, its score is
next to the threshold, the members disagree on it. A neighbor of a node that is
suggested already waits until nobody else is left, since it would tell the same.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from oodgat_jax.report.findings import Findings
from oodgat_jax.report.groups import Groups


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


def picks(findings: Findings, groups: Groups, count: int) -> list[Pick]:
    """Returns the nodes of `suggest`."""
    found: list[Pick] = []
    for neighbors_wait in (True, False):
        blocked = np.zeros(len(findings.score), bool)
        blocked[[pick.node for pick in found]] = True
        turns = _turns(findings, groups)
        while turns and len(found) < count:
            turn = turns.pop(0)
            pick = next((each for each in turn if not blocked[each.node]), None)
            if pick is None:
                continue
            found.append(pick)
            turns.append(turn)
            blocked[pick.node] = True
            if neighbors_wait:
                blocked[_neighbors(findings, pick.node)] = True
    return found


def _turns(findings: Findings, groups: Groups) -> list[Iterator[Pick]]:
    """Returns one queue of unlabeled nodes for each reason, best first."""
    unlabeled = np.flatnonzero(findings.unlabeled)
    gap = np.abs(findings.score[unlabeled] - findings.threshold)
    near = unlabeled[np.argsort(gap, kind="stable")]
    queues: list[Iterator[Pick]] = [
        _one_per_group(groups),
        (Pick(int(node), "score next to the threshold") for node in near),
    ]
    spread = findings.spread[unlabeled]
    if spread.any():
        apart = unlabeled[np.argsort(-spread, kind="stable")]
        queues.append(Pick(int(node), "members disagree") for node in apart)
    return queues


def _one_per_group(groups: Groups) -> Iterator[Pick]:
    """Yields the most typical node of every group, then the next of every group."""
    most = max((len(group.typical) for group in groups.groups), default=0)
    for place in range(most):
        for number, group in enumerate(groups.groups, start=1):
            if place < len(group.typical):
                reason = f"typical of group {number}, {group.size} nodes"
                yield Pick(int(group.typical[place]), reason)


def _neighbors(findings: Findings, node: int) -> np.ndarray:
    ends = np.searchsorted(findings.receivers, [node, node + 1])
    return findings.senders[ends[0] : ends[1]]
