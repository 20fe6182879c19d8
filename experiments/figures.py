"""How figures look and how they are kept: the same numbers give the same file.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; lines differ
in their dashes too, so that a figure can be read in grey. Importing this module sets
matplotlib's style for the process.
"""

import io
import pathlib
from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 3)), (0, (1, 2)))
KINDS = {"ID": COLOURS[0], "OOD": COLOURS[1]}

DPI = 160

_PANEL = (3.6, 2.8)  # inches
matplotlib.rcParams.update(
    {
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 9.5,
        "font.size": 9,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "legend.title_fontsize": 8,
        "lines.linewidth": 1.6,
        "pdf.fonttype": 42,  # text stays text
        "svg.hashsalt": "oodgat-jax",
    }
)


def panels(columns: int, rows: int = 1, **options) -> tuple[Figure, np.ndarray]:
    """A figure and its axes [rows, columns]; options go to `Figure.subplots`."""
    size = (_PANEL[0] * columns, _PANEL[1] * rows)
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def band(
    axis: Axes, x: Sequence[float], values: np.ndarray, number: int, label: str
) -> None:
    """The mean of values [runs, points] as a line, one deviation as a band.

    Runs that have no value at a point (NaN) are left out there.
    """
    mean, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    axis.plot(x, mean, color=colour, linestyle=dash, label=label)
    low, high = mean - deviation, mean + deviation
    axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def histograms(
    axis: Axes, edges: Sequence[float], counts: Mapping[str, Sequence[float]]
) -> None:
    """How the scores of ID and OOD nodes are spread: counts {kind: [bins]}."""
    for kind, dash in zip(counts, DASHES, strict=False):
        colour = KINDS[kind]
        axis.stairs(counts[kind], edges, fill=True, alpha=0.4, color=colour)
        axis.stairs(counts[kind], edges, color=colour, linestyle=dash, label=kind)


def save(figure: Figure, folder: pathlib.Path, name: str) -> list[pathlib.Path]:
    """Writes NAME.pdf and NAME.png."""
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    undated = {"CreationDate": None}, {"Software": None}
    _settle(figure)
    for path, metadata in zip(paths, undated, strict=True):
        figure.savefig(path, dpi=DPI, metadata=metadata)
    return paths


def as_svg(figure: Figure) -> str:
    """The figure as an <svg> element."""
    text = io.StringIO()
    _settle(figure)
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _settle(figure: Figure) -> None:
    """Lays the axes out once, since every drawing would move them a little more."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
