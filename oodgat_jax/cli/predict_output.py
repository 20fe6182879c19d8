"""What the command `oodgat` writes: predictions, a picture, and a summary."""

import collections
import io
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from oodgat_jax import atomic_files
from oodgat_jax.datasets.readers import tables
from oodgat_jax.estimator import OODGATClassifier, bounds, inputs
from oodgat_jax.estimator.answers import Answer, Report
from oodgat_jax.estimator.inputs import UNKNOWN
from oodgat_jax.report import Suggestion
from oodgat_jax.types import InputError

COLOURS = ("#3b6ea8", "#d1793a")
BINS = 50
ROWS = 4096  # of a table, turned into text at a time
NAME = 40  # characters of a class's name that are kept apart for it
PICTURES = (".png", ".svg", ".pdf")


class Result(NamedTuple):
    """What was found in a graph."""

    nodes: tables.Nodes
    model: OODGATClassifier
    answer: Answer
    predictions: np.ndarray  # [N] classes, or -1
    threshold: float


def write(
    path: pathlib.Path, result: Result, verdict: str = "unknown", escape: bool = True
) -> None:
    """Writes the predictions as a table or as arrays, whole or not at all.

    Args:
      path: ends in .csv or .npz.
      result: what is written.
      verdict: the table's word for a node of no known class.
      escape: whether the table's text is safe to open in a spreadsheet.
    """
    if path.suffix != ".npz":
        header, rows = _table(result, verdict)
        if escape:
            header = [tables.escaped(name) for name in header]
            rows = ([*map(tables.escaped, row[:2]), *row[2:]] for row in rows)
        with atomic_files.file(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            tables.write_table(text, header, rows)
            text.detach()
        return
    with atomic_files.file(path) as file:
        np.savez_compressed(
            file,
            ids=np.array(result.nodes.ids),
            prediction=result.predictions.astype(str),
            classes=result.model.classes_.astype(str),
            score=result.answer.score,
            spread=result.answer.spread,
            probabilities=result.answer.probabilities,
        )


def write_review(
    path: pathlib.Path, rows: Sequence[Suggestion], escape: bool = True
) -> None:
    """Writes a table of nodes to label, with an empty column for the labels."""
    shown = [[*row[:1], f"{row.score:.6g}", *row[2:]] for row in rows]
    if escape:
        shown = [[tables.escaped(cell) for cell in row] for row in shown]
    atomic_files.text(path, tables.table_text(Suggestion._fields, shown))


def draw(path: pathlib.Path, result: Result) -> None:
    """Draws a histogram of the scores, labeled and other nodes apart."""
    score, labels = result.answer.score, result.nodes.labels
    threshold = result.threshold
    figure = Figure(figsize=(6, 3.2))
    axis = figure.subplots()
    low, high = float(score.min()), float(score.max())
    bins = np.linspace(low, max(high, low + 1e-6), BINS).tolist()
    labeled = np.array([not inputs.is_missing(label) for label in labels or ()])
    if not labeled.any():
        axis.hist(score, bins, color=COLOURS[1], label="nodes")
    else:
        groups = (("labeled", labeled), ("not labeled", ~labeled))
        for (name, mask), color in zip(groups, COLOURS, strict=True):
            axis.hist(score[mask], bins, alpha=0.65, color=color, label=name)
    margin = high - low + 1e-6
    if low - margin <= threshold <= high + margin:  # else it would press all together
        axis.axvline(threshold, color="black", linestyle="--", label="threshold")
    axis.set_xlabel("score (higher = more likely unknown)")
    axis.set_ylabel("nodes")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    figure.tight_layout()
    with atomic_files.file(path) as file:
        figure.savefig(file, dpi=120, format=path.suffix.removeprefix("."))


def summary(result: Result, fitted_here: bool) -> str:
    """Returns what was found and, of a fit, what to expect of it."""
    counts = _counts(result)
    unknown, total = counts.pop(UNKNOWN, 0), len(result.predictions)
    names = [str(name) for name in result.model.classes_.tolist()]
    width = min(max(map(len, names)), NAME)
    lines = [
        f"{total} nodes, {result.model.n_features_in_} features; "
        f"{unknown} ({unknown / total:.1%}) are called unknown, their score "
        f"being above {result.threshold:.4g}.",
        *(
            f"  {name:<{width}}  {count:>{len(str(total))}}  {count / total:6.1%}"
            for name, count in zip(names, counts.values(), strict=True)
        ),
    ]
    if not fitted_here:
        lines.append(
            "The model was fitted before, perhaps to another graph: how many of the "
            "known nodes of this one are called unknown was not measured."
        )
        return "\n".join(lines)
    return "\n".join([*lines, *expectations(result.model.report_)])


def facts(result: Result, fitted_here: bool, written: list[str]) -> dict[str, Any]:
    """Returns the summary for machines: numbers, strings and None alone."""
    counts = _counts(result)
    return {
        "nodes": len(result.predictions),
        "features": int(result.model.n_features_in_),
        "method": result.model.method,
        "threshold": float(result.threshold),
        "unknown": counts.pop(UNKNOWN, 0),
        "classes": {str(name): count for name, count in counts.items()},
        "report": result.model.report_._asdict() if fitted_here else None,
        "written": written,
    }


def _counts(result: Result) -> dict[Any, int]:
    """Returns the nodes of every class, in their order, and of none."""
    found = collections.Counter(result.predictions.tolist())
    names = (*result.model.classes_.tolist(), UNKNOWN)
    return {name: found.get(name, 0) for name in names}


def expectations(report: Report) -> list[str]:
    """Returns sentences on how far the verdicts can be trusted."""
    lines = []
    judged = report.calibration or report.held_out
    right = round(report.accuracy * judged)
    if report.calibration:
        sure = f"{bounds.CONFIDENCE:.0%}"
        lines.append(
            f"Judged by {judged} labeled nodes that nothing was chosen by, and if "
            f"labeled nodes are a random sample of the known ones: between "
            f"{report.lost_low:.1%} and {report.lost_high:.1%} of known nodes are "
            f"called unknown ({sure} confidence); {right} of the {judged} got their "
            "class."
        )
    else:
        lines.append(
            f"Only {judged} labeled nodes could be held out, too few to say how many "
            f"known nodes are called unknown: hold out at least "
            f"{bounds.ENOUGH + bounds.LEAST_CHOOSING} by labeling more. {right} of "
            "them got their class."
        )
    if report.least_unknown:
        lines.append(
            f"At least {report.least_unknown:.1%} of the {report.unlabeled} "
            f"unlabeled nodes are of unknown classes ({sure} confidence)."
        )
    if report.failed_members:
        noun = "member" if report.failed_members == 1 else "members"
        lines.append(
            f"{report.failed_members} {noun} failed (loss not finite), left out."
        )
    return lines


def check_verdict(verdict: str, classes: list) -> None:
    """Raises InputError if a class has the name of the verdict, or it has none."""
    if not verdict:
        raise InputError("--verdict needs a word for nodes of no known class.")
    if verdict in {str(name) for name in classes}:
        raise InputError(
            f"A class is called '{verdict}', as nodes of no known class are: choose "
            "another word for those with --verdict."
        )


def _table(result: Result, verdict: str) -> tuple[list[str], Iterator[list]]:
    """Returns the header and, one after the other, the rows of a table."""
    header = ["id", "prediction", "score", "spread"]
    header += [f"p_{name}" for name in result.model.classes_.tolist()]
    labels = result.predictions.tolist()
    answer = result.answer
    numbers = np.column_stack([answer.score, answer.spread, answer.probabilities])
    blocks = range(0, len(numbers), ROWS)
    cells = (row for at in blocks for row in numbers[at : at + ROWS].tolist())
    rows = (
        [name, verdict if label == UNKNOWN else label, *(f"{n:.6g}" for n in row)]
        for name, label, row in zip(result.nodes.ids, labels, cells, strict=True)
    )
    return header, rows
