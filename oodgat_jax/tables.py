"""Tables of results: one table, rendered as text, Markdown, LaTeX or HTML."""

import html
import itertools
import math
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from oodgat_jax import atomic_files
from oodgat_jax.types import InputError

# Metrics of a record that tables show, and what they call them.
COLUMNS = {
    "accuracy": "Accuracy",
    "auroc": "AUROC",
    "aupr": "AUPR",
    "fpr95": "FPR95",
    "weighted_f1": "F1 (best)",
    "weighted_f1_val": "F1 (val)",
}
DIRECTIONS = ("max", "min", "")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


LONG = 40  # characters
_NUMBER = re.compile(r"[-+]?\d")


class Cell(NamedTuple):
    """What a table shows at one place, and the number behind it if there is one."""

    text: str
    value: float | None = None
    beside: str = ""  # the end of the text, if it is a figure to compare with


class Row(NamedTuple):
    """What a row of a comparison shows: a detector on a trained method."""

    title: str
    method: str
    detector: str
    paper: str = ""  # row of the paper's table, if it has one


class Table(NamedTuple):
    """A header, and rows as long as it.

    best: per column "max" or "min" to mark the best value (at the precision shown,
      so that equals are all marked), "" to mark none; () for no marks at all.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    best: Sequence[str] = ()


def summary(values: Sequence[float]) -> tuple[float, float]:
    """Computes mean and standard deviation of the runs.

    The deviation is the population's, sqrt(mean((x - mean)^2)), numpy's default: it
    describes the runs that were made and is 0, not undefined, for a single one.
    """
    if len(values) == 0:
        raise InputError("A summary needs at least one run, but there is none.")
    return float(np.mean(values)), float(np.std(values))


def result(values: Sequence[float], paper: float | None = None) -> Cell:
    """Fractions per run -> `93.6 ± 1.0`, in percent; ` (93.6)` is the paper's figure.

    Args:
      values: one fraction per run.
      paper: the paper's figure in percent, if it has one.
    """
    mean, deviation = (100 * number for number in summary(values))
    beside = "" if paper is None else f"({paper:.1f})"
    return Cell(f"{mean:.1f} ± {deviation:.1f} {beside}".rstrip(), mean, beside)


def _cells(table: Table) -> list[list[Cell]]:
    """Returns the rows as cells, after checking the shape of the table."""
    best = table.best or [""] * len(table.header)
    if {len(table.header)} != {len(best), *map(len, table.rows)}:
        raise InputError(f"Every row needs {len(table.header)} cells, as the header.")
    if not set(best) <= set(DIRECTIONS):
        raise InputError(f"best must be of {DIRECTIONS}, but is {tuple(best)}.")
    return [[Cell(c) if isinstance(c, str) else c for c in row] for row in table.rows]


def _best_rows(values: Sequence[float | None], direction: str) -> set[int]:
    """Returns rows that hold the best of a column; none if there is no other."""
    shown = {
        row: round(value, 1)
        for row, value in enumerate(values)
        if value is not None and math.isfinite(value)
    }
    if not direction or len(shown) < 2:
        return set()
    best = max(shown.values()) if direction == "max" else min(shown.values())
    return {row for row, value in shown.items() if value == best}


def _body(
    table: Table, escape: Callable[[str], str], mark: Callable[[str], str]
) -> list[list[str]]:
    """Returns texts of the rows, escaped, with the best of each column marked."""
    rows = _cells(table)
    texts = [[escape(cell.text) for cell in row] for row in rows]
    for column, direction in enumerate(table.best):
        values = [row[column].value for row in rows]
        for row in _best_rows(values, direction):
            texts[row][column] = mark(texts[row][column])
    return texts


def _pad(table: Table, rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Pads columns to equal width: the first and those of text to the left."""
    left = _left(table)
    columns = []
    for column, is_left in zip(zip(*rows, strict=True), left, strict=True):
        width = max(map(len, column))
        columns.append([t.ljust(width) if is_left else t.rjust(width) for t in column])
    return [list(row) for row in zip(*columns, strict=True)]


def _left(table: Table) -> list[bool]:
    """Returns per column whether it stands to the left."""
    return [number == 0 or bool(c) for number, c in enumerate(_classes(table))]


def _classes(table: Table) -> list[str]:
    """Returns per column what it holds: `text`, `text long`, or "" for numbers."""
    columns = zip(table.header, *_cells(table), strict=True)
    return [_class([cell.text for cell in cells]) for _, *cells in columns]


def _class(texts: Sequence[str]) -> str:
    if max(map(len, texts), default=0) > LONG:
        return "text long"
    return "" if any(map(_NUMBER.match, texts)) else "text"


def as_text(table: Table) -> str:
    """Renders aligned columns for a terminal; `*` marks the best."""
    rows = _pad(table, [table.header, *_body(table, str, "*{}".format)])
    lines = ["  ".join(row).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]]) + "\n"


def as_markdown(table: Table) -> str:
    """Renders a Markdown table; bold marks the best."""

    def escape(text: str) -> str:
        return text.replace("|", r"\|")

    header = [escape(text) for text in table.header]
    rows = _pad(table, [header, *_body(table, escape, "**{}**".format)])
    rule = [
        "-" * len(text) if is_left else "-" * (len(text) - 1) + ":"
        for text, is_left in zip(rows[0], _left(table), strict=True)
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in [rows[0], rule, *rows[1:]])


def as_latex(table: Table) -> str:
    """Renders a `tabular` with the rules of booktabs; bold marks the best."""

    def escape(text: str) -> str:
        return "".join(_LATEX.get(character, character) for character in text)

    header = [escape(text) for text in table.header]
    body = _body(table, escape, r"\textbf{{{}}}".format)
    lines = [f"{' & '.join(row)} \\\\" for row in _pad(table, [header, *body])]
    columns = "".join("l" if is_left else "r" for is_left in _left(table))
    return "\n".join(
        [
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            lines[0],
            "\\midrule",
            *lines[1:],
            "\\bottomrule",
            "\\end{tabular}\n",
        ]
    )


def as_html(table: Table) -> str:
    """Renders a <table>; <strong> marks the best.

    Rows that share their first cell, such as those of one data set, are a <tbody>.
    Columns without numbers are of class `text`, and `long` if a line may not hold them.
    What stands beside a result is of class `beside`, to be as wide in all rows.
    """
    body = _set_beside(table, _body(table, html.escape, "<strong>{}</strong>".format))
    names = [f' class="{name}"' if name else "" for name in _classes(table)]
    groups = [list(rows) for _, rows in itertools.groupby(body, lambda row: row[0])]
    if len(groups) == len(body):
        groups = [body]
    head = _html_row([html.escape(text) for text in table.header], names, "col")
    parts = [
        f"<tbody>\n{''.join(_html_row(row, names, 'row') for row in rows)}</tbody>\n"
        for rows in groups
    ]
    return f"<table>\n<thead>\n{head}</thead>\n{''.join(parts)}</table>\n"


def _html_row(row: Sequence[str], names: Sequence[str], scope: str) -> str:
    """Renders a row whose first cell, or in the header every cell, is a heading."""
    cells = []
    for column, (name, text) in enumerate(zip(names, row, strict=True)):
        heading = scope == "col" or column == 0
        tag, more = ("th", f' scope="{scope}"') if heading else ("td", "")
        cells.append(f"<{tag}{more}{name}>{text}</{tag}>")
    return f"<tr>{''.join(cells)}</tr>\n"


def _set_beside(table: Table, body: list[list[str]]) -> list[list[str]]:
    """Marks the ends of texts, in columns where a cell has such an end."""
    rows = _cells(table)
    for column in range(len(table.header)):
        ends = [html.escape(row[column].beside) for row in rows]
        for texts, end in zip(body, ends, strict=True):
            if any(ends):
                texts[column] = _html_end(texts[column], end)
    return body


def _html_end(text: str, end: str) -> str:
    start, _, mark = text.rpartition(end) if end else (text, "", "")
    return f'{start.rstrip()} <span class="beside">{end}</span>{mark}'


def with_note(table: Table, note: str) -> str:
    """Renders Markdown: the table, and the note below it."""
    return f"{as_markdown(table)}\n{note}\n"


def write(
    folder: pathlib.Path, name: str, table: Table, note: str
) -> list[pathlib.Path]:
    """Writes NAME.md with a note below the table, and NAME.tex."""
    paths = [folder / f"{name}.md", folder / f"{name}.tex"]
    texts = [with_note(table, note), as_latex(table)]
    for path, text in zip(paths, texts, strict=True):
        atomic_files.text(path, text)
    return paths


FORMATS = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
    "html": as_html,
}
