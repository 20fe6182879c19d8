"""What one page shows, bounded in size."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from oodgat_jax.report import groups as grouping
from oodgat_jax.report import neighbors, projection, review
from oodgat_jax.report.findings import Findings

MOST_NODES = 100_000  # on the map and in the table
MOST_CLASSES = 5  # whose probabilities a node shows
SUGGESTIONS = 30
UNLABELED, LEARNED, HELD_OUT = range(3)  # roles of nodes


class Page(NamedTuple):
    """A page's content: what is text, and what is arrays."""

    meta: dict[str, Any]  # JSON
    arrays: dict[str, np.ndarray]


def build(findings: Findings, suggestions: int = SUGGESTIONS, seed: int = 0) -> Page:
    """Returns the page of a graph."""
    found = grouping.find(findings, seed)
    picked = review.picks(findings, found, suggestions)
    shown = choose(findings, found, picked, seed)
    place = {int(node): at for at, node in enumerate(shown)}
    map_ = projection.project(findings.space[shown], seed)
    near = neighbors.strongest(findings, shown)
    arrays = _columns(findings, found, shown) | _neighbor_arrays(near)
    arrays |= {"xy": map_.xy.reshape(-1)}
    arrays["unlabeledScores"] = np.sort(findings.score[findings.unlabeled])
    meta = {
        "ids": [str(findings.ids[node]) for node in shown],
        "classes": [str(name) for name in findings.classes],
        "labelNames": [str(name) for name in findings.label_names],
        "threshold": float(findings.threshold),
        "projection": map_.method,
        "groups": [_group(group, place) for group in found.groups],
        "grouping": found.method,
        "review": [{"node": place[p.node], "reason": p.reason} for p in picked],
        "hasAttention": findings.attention is not None,
        "hasSpread": bool(findings.spread.any()),
        "total": len(findings.score),
        "notes": notes(findings, shown, near),
        "facts": [[str(name), str(value)] for name, value in findings.facts],
    }
    if findings.bounds is not None:
        meta |= {
            "lost": findings.bounds.lost,
            "confidence": findings.bounds.confidence,
        }
        arrays["calibrationScores"] = findings.bounds.scores.astype(np.float32)
        arrays["intervals"] = findings.bounds.intervals.reshape(-1).astype(np.float64)
    return Page(meta, arrays)


def choose(
    findings: Findings,
    found: grouping.Groups,
    picked: Sequence[review.Pick],
    seed: int = 0,
) -> np.ndarray:
    """Returns the nodes to show, ascending: all, or those that matter and a sample."""
    size = len(findings.score)
    if size <= MOST_NODES:
        return np.arange(size)
    must = np.zeros(size, bool)
    must[[pick.node for pick in picked]] = True
    for group in found.groups:
        must[list(group.typical)] = True
    # Whoever is labeled comes next, then chance.
    order = np.random.default_rng(seed).random(size)
    order -= 1.0 * (findings.codes >= 0) + 2.0 * must
    return np.sort(np.argpartition(order, MOST_NODES)[:MOST_NODES])


def notes(
    findings: Findings, shown: np.ndarray, near: neighbors.Neighbors
) -> list[str]:
    """Returns what the page leaves out, and what the model cannot say."""
    told = []
    total = len(findings.score)
    if len(shown) < total:
        told.append(
            f"Of {total:,} nodes, the map and the tables hold {len(shown):,}: the "
            "labeled ones, those that are suggested or typical of a group, and a "
            "random sample of the others. Counts at the threshold are of all nodes."
        )
    kept = np.diff(near.first) - 1
    if (kept < near.degrees).any():
        told.append(
            f"A node lists at most {int(kept.max())} of its neighbors, the strongest."
        )
    if len(findings.classes) > MOST_CLASSES:
        told.append(f"A node lists its {MOST_CLASSES} most probable classes.")
    if findings.attention is None:
        told.append(
            "This model has no OOD attention: neighbors are listed by their score."
        )
    if findings.bounds is None:
        told.append(
            "Too few nodes were held out to say how many known nodes are lost at a "
            "threshold, or this is another graph than that of the fit."
        )
    return told


def _columns(
    findings: Findings, found: grouping.Groups, shown: np.ndarray
) -> dict[str, np.ndarray]:
    """Returns what the page knows of every shown node."""
    probabilities = findings.probabilities[shown]
    most = min(MOST_CLASSES, probabilities.shape[1])
    top = np.argsort(-probabilities, axis=1, kind="stable")[:, :most]
    roles = np.where(findings.codes >= 0, LEARNED, UNLABELED)
    roles[findings.held_out] = HELD_OUT
    return {
        "score": findings.score[shown].astype(np.float32),
        "spread": findings.spread[shown].astype(np.float32),
        "label": findings.codes[shown].astype(np.int32),
        "role": roles[shown].astype(np.uint8),
        "group": found.of_node[shown].astype(np.int32),
        "topClasses": top.astype(np.uint16).reshape(-1),
        "topShares": np.take_along_axis(probabilities, top, 1)
        .astype(np.float32)
        .reshape(-1),
    }


def _neighbor_arrays(near: neighbors.Neighbors) -> dict[str, np.ndarray]:
    found = {"first": near.first, "neighbors": near.nodes, "degree": near.degrees}
    if near.attention is not None:
        found["attention"] = near.attention
    return found


def _group(group: grouping.Group, place: dict[int, int]) -> dict[str, Any]:
    return {
        "size": group.size,
        "cohesion": group.cohesion,
        "edgesInside": group.edges_inside,
        "nearest": str(group.nearest_class),
        "contrasts": [[str(name), value] for name, value in group.contrasts],
        "typical": [place[node] for node in group.typical],
    }
