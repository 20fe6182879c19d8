"""The strongest neighbors of every node that a page shows."""

from typing import NamedTuple

import numpy as np

from oodgat_jax.report.findings import Findings

MOST_EDGES = 1_200_000  # on a page
MOST_EACH, LEAST_EACH = 30, 4  # of a node


class Neighbors(NamedTuple):
    """Neighbors of n shown nodes, the strongest first; the node itself is among them.

    Strongest are those with the largest attention, or else the largest score.
    """

    first: np.ndarray  # [n + 1] int32, where each node's begin
    nodes: np.ndarray  # [e] int32, places among the shown nodes
    attention: np.ndarray | None  # [e] float32
    degrees: np.ndarray  # [n] int32, of all neighbors, without the node itself


def strongest(findings: Findings, shown: np.ndarray) -> Neighbors:
    """Returns the neighbors of the shown nodes, ascending, among the shown nodes."""
    size = len(findings.score)
    place = np.full(size, -1, np.int64)
    place[shown] = np.arange(len(shown))
    degrees = np.bincount(findings.receivers, minlength=size)[shown] - 1
    edges = np.flatnonzero(
        (place[findings.senders] >= 0) & (place[findings.receivers] >= 0)
    )
    rows = place[findings.receivers[edges]]
    columns = place[findings.senders[edges]]
    weights = findings.attention
    strength = findings.score[shown][columns] if weights is None else weights[edges]
    order = np.lexsort((columns, -strength, rows))
    begin = np.searchsorted(rows[order], np.arange(len(shown) + 1))
    rank = np.arange(len(order)) - begin[rows[order]]
    most = int(np.clip(MOST_EDGES // max(len(shown), 1), LEAST_EACH, MOST_EACH))
    order = order[rank < most]
    return Neighbors(
        first=np.searchsorted(rows[order], np.arange(len(shown) + 1)).astype(np.int32),
        nodes=columns[order].astype(np.int32),
        attention=None if weights is None else strength[order].astype(np.float32),
        degrees=degrees.astype(np.int32),
    )
