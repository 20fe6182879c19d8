"""Styles and writes figures: the same numbers give the same file.

Colors are those of Okabe and Ito, which color-blind readers tell apart; lines differ in
their dashes too, so that a figure can be read in gray. Importing this module sets
matplotlib's style for the process.
"""

import html
import io
import pathlib
import re
from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oodgat_jax import atomic_files

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 3)), (0, (1, 2)))
KINDS = {"ID": COLORS[0], "OOD": COLORS[1]}

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
    """Returns a figure and axes [rows, columns]; options go to `Figure.subplots`."""
    size = (_PANEL[0] * columns, _PANEL[1] * rows)
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def band(
    axis: Axes,
    x: Sequence[float] | np.ndarray,
    values: np.ndarray,
    number: int,
    label: str,
) -> None:
    """Draws the mean of values [runs, points] as a line, one deviation as a band.

    Runs that have no value at a point (NaN) are left out there.
    """
    mean, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    color, dash = COLORS[number % len(COLORS)], DASHES[number % len(DASHES)]
    axis.plot(x, mean, color=color, linestyle=dash, label=label)
    low, high = mean - deviation, mean + deviation
    axis.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)


def histograms(
    axis: Axes,
    edges: Sequence[float] | np.ndarray,
    counts: Mapping[str, Sequence[float] | np.ndarray],
) -> None:
    """Draws histograms of the scores of ID and OOD nodes: counts {kind: [bins]}."""
    for kind, dash in zip(counts, DASHES, strict=False):
        color = KINDS[kind]
        axis.stairs(counts[kind], edges, fill=True, alpha=0.4, color=color)
        axis.stairs(counts[kind], edges, color=color, linestyle=dash, label=kind)


def save(figure: Figure, folder: pathlib.Path, name: str) -> list[pathlib.Path]:
    """Writes NAME.pdf and NAME.png."""
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    for path in paths:
        write(figure, path)
    return paths


def write(figure: Figure, path: pathlib.Path) -> None:
    """Writes a .pdf or .png file without the time and the program in it."""
    _settle(figure)
    metadata = {".pdf": {"CreationDate": None}, ".png": {"Software": None}}
    with atomic_files.file(path) as output:
        kind = path.suffix
        figure.savefig(output, format=kind[1:], dpi=DPI, metadata=metadata[kind])


def as_svg(figure: Figure, name: str = "", label: str = "") -> str:
    """Returns the figure as an <svg> element for use inside a page.

    Args:
      figure: what to draw.
      name: begins all ids, so that several figures on one page do not mix theirs.
      label: what a reader who cannot see the figure is told.
    """
    text = io.StringIO()
    _settle(figure)
    nameless = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(text, format="svg", metadata=nameless)
    element = text.getvalue()[text.getvalue().index("<svg") :]
    return _labeled(_renamed(element, name), label)


def _renamed(element: str, name: str) -> str:
    """Puts `name-` before every id, and limits the style to this element."""
    if not name:
        return element
    element = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", element)
    return element.replace("*{stroke", f"#{name} *{{stroke").replace(
        "<svg ", f'<svg id="{name}" ', 1
    )


def _labeled(element: str, label: str) -> str:
    if not label:
        return element
    text = html.escape(label)
    start, rest = element.split(">", 1)
    return f'{start} role="img" aria-label="{text}">\n <title>{text}</title>{rest}'


def _settle(figure: Figure) -> None:
    """Lays the axes out once, since every drawing would move them a little more."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
