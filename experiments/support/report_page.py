"""Builds the report as one HTML page: text in, page out, with nothing to fetch.

It knows nothing of records. Every string is escaped here or in `tables.as_html`; of
Markdown, text may have `code`.
"""

import html
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from experiments.support import figures
from oodgat_jax import tables
from oodgat_jax.report import rendering

STYLE = pathlib.Path(__file__).parent / "report.css"
Tables = Sequence[tuple[str, tables.Table]]  # with their captions
Figures = Sequence[tuple[str, Figure]]

ABSENT = "Not measured yet"


class Content(NamedTuple):
    """What a section shows."""

    title: str
    about: str
    command: str
    tables: Tables = ()
    figures: Figures = ()
    note: str = ""
    facts: Sequence[tuple[str, str]] = ()
    settings: Tables = ()


class Absent(NamedTuple):
    """A section that has no records, and what makes them."""

    title: str
    file: str
    command: str


def page(
    title: str,
    intro: Sequence[str],
    contents: Sequence[Content],
    absent: Sequence[Absent] = (),
) -> str:
    """Returns the whole page.

    Args:
      title: of the page.
      intro: its first paragraphs.
      contents: the sections; their titles differ, since anchors are made of them.
      absent: what is listed at the end as not measured.
    """
    titles = [content.title for content in contents] + [ABSENT] * bool(absent)
    parts = [*map(section, contents), _absent(absent) if absent else ""]
    first = "".join(f"<p>{prose(text)}</p>\n" for text in intro)
    style = rendering.with_colors(STYLE)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        '<body>\n<a class="skip" href="#content">To the results</a>\n'
        f"<header>\n<h1>{html.escape(title)}</h1>\n{first}</header>\n{_toc(titles)}"
        f'<main id="content">\n{"".join(parts)}</main>\n</body>\n</html>\n'
    )


def section(content: Content) -> str:
    """Returns a heading, tables, figures, and how they were made."""
    name = anchor(content.title)
    plots = [
        _plot(f"{name}-figure-{number}", caption, figure)
        for number, (caption, figure) in enumerate(content.figures, start=1)
    ]
    grids = _grids(f"{name}-table", content.tables)
    note = f'<p class="note">{prose(content.note)}</p>\n' if content.note else ""
    return (
        f'<section aria-labeledby="{name}">\n{_heading(content.title)}'
        f"<p>{prose(content.about)}</p>\n{grids}{''.join(plots)}{note}"
        f"{_made(content, name)}</section>\n"
    )


def prose(text: str) -> str:
    """Escapes text, with `code` as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def anchor(title: str) -> str:
    """Returns the id of a section: words of its title, joined by dashes."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower().replace("'", "")).strip("-")


def _heading(title: str) -> str:
    name = anchor(title)
    return f'<h2 id="{name}"><a href="#{name}">{html.escape(title)}</a></h2>\n'


def _toc(titles: Iterable[str]) -> str:
    items = (
        f'<li><a href="#{anchor(title)}">{html.escape(title)}</a></li>\n'
        for title in titles
    )
    return f'<nav aria-label="Contents">\n<ol>\n{"".join(items)}</ol>\n</nav>\n'


def _grids(name: str, captioned: Tables) -> str:
    return "".join(
        _grid(f"{name}-{number}", caption, table)
        for number, (caption, table) in enumerate(captioned, start=1)
    )


def _grid(name: str, caption: str, table: tables.Table) -> str:
    """Puts a table in a box, in which a wide one scrolls, also by keyboard."""
    return (
        '<figure class="grid">\n'
        f'<figcaption id="{name}">{prose(caption)}</figcaption>\n'
        f'<div class="box" role="region" tabindex="0" aria-labeledby="{name}">\n'
        f"{tables.as_html(table)}</div>\n</figure>\n"
    )


def _plot(name: str, caption: str, figure: Figure) -> str:
    element = figures.as_svg(figure, name, caption)
    return (
        '<figure class="plot">\n<div class="box" role="region" tabindex="0" '
        f'aria-labeledby="{name}-caption">\n{element}</div>\n'
        f'<figcaption id="{name}-caption">{prose(caption)}</figcaption>\n</figure>\n'
    )


def _made(content: Content, name: str) -> str:
    """Returns the command and, folded below it, settings and versions."""
    facts = "".join(
        f"<dt>{html.escape(what)}</dt><dd>{html.escape(text)}</dd>\n"
        for what, text in content.facts
    )
    grids = _grids(f"{name}-settings", content.settings)
    folded = (
        "<details>\n<summary>Settings, seeds and versions</summary>\n"
        f"<dl>\n{facts}</dl>\n{grids}</details>\n"
    )
    return _command(content.command) + (folded if facts or grids else "")


def _command(command: str) -> str:
    return (
        '<p class="how">To reproduce</p>\n<pre tabindex="0"><code>'
        f"{html.escape(command)}</code></pre>\n"
    )


def _absent(absent: Sequence[Absent]) -> str:
    items = "".join(
        f"<h3>{html.escape(each.title)}</h3>\n<p>There are no records in "
        f"<code>{html.escape(each.file)}</code>.</p>\n{_command(each.command)}"
        for each in absent
    )
    return (
        f'<section aria-labeledby="{anchor(ABSENT)}">\n{_heading(ABSENT)}'
        f"{items}</section>\n"
    )
