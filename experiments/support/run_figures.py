"""Draws every run as a dot, since a mean and a deviation hide how runs scatter."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.support import figures, main_table, paper_results
from oodgat_jax.records import Record, kept_metrics
from oodgat_jax.tables import Row

COLUMNS = 3  # at most
CAPTION = "AUROC of every run (dots), their mean (bar) and the paper's figure (diamond)"


class Line(NamedTuple):
    """What one line of a panel shows, in percent."""

    title: str
    values: Sequence[float]
    paper: float | None = None


def end_to_end(records: Sequence[Record]) -> Figure:
    """Draws the AUROC of the main table: a panel per data set, a line per method."""
    return strips(
        {
            dataset: [_line(records, dataset, row) for row in _rows(records)]
            for dataset in main_table.known(records)
        }
    )


def strips(groups: Mapping[str, Sequence[Line]], metric: str = "AUROC") -> Figure:
    """Draws a panel per group, all with the same titles of lines."""
    rows = math.ceil(len(groups) / COLUMNS)
    figure, axes = figures.panels(math.ceil(len(groups) / rows), rows, sharey=True)
    figure.set_layout_engine("constrained", h_pad=0.12)  # inches
    for axis in axes.flat[len(groups) :]:
        axis.set_visible(False)
    for axis, (title, lines) in zip(axes.flat, groups.items(), strict=False):
        _panel(axis, lines)
        axis.set(title=_plain(title), xlabel=f"{metric}, %")
    return figure


def _panel(axis: Axes, lines: Sequence[Line]) -> None:
    places = np.arange(len(lines))
    for place, line in zip(places, lines, strict=True):
        axis.plot(
            line.values,
            np.full(len(line.values), place),
            "o",
            color=figures.COLORS[0],
            markersize=4,
            alpha=0.6,
            markeredgewidth=0,
        )
        if len(line.values):
            axis.plot(np.mean(line.values), place, "|", color="black", markersize=11)
        if line.paper is not None:
            axis.plot(line.paper, place, "D", color=figures.COLORS[1], mfc="none")
    axis.set_yticks(places, [_plain(line.title) for line in lines])
    axis.set_ylim(len(lines) - 0.5, -0.5)
    axis.grid(axis="x", alpha=0.3)


def _plain(text: str) -> str:
    """Escapes text, so that it is not taken for a formula."""
    return text.replace("$", r"\$")


def _rows(records: Sequence[Record]) -> list[Row]:
    """Returns the rows of the main table that some data set has records of."""
    known = {(record["method"], record["detector"]) for record in records}
    return [row for row in main_table.ROWS if (row.method, row.detector) in known]


def _line(records: Sequence[Record], dataset: str, row: Row) -> Line:
    record = main_table.find(records, dataset, row)
    values = [100 * value for value in kept_metrics(record)["auroc"]] if record else []
    paper = paper_results.figure("end_to_end", row.paper, dataset, "auroc")
    return Line(row.title, values, paper)
