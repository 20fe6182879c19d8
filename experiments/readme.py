"""Writes tables and figures of the README and the pages in docs from records.

  python -m experiments.readme          rewrites them
  python -m experiments.readme --check  changes nothing, exits with 1 if one is stale

A table stands between the lines `<!-- begin generated: NAME -->` and
`<!-- end generated: NAME -->`; NAME is a study's, `summary` or `speed`. NAME.made is
what made a study's records: its command, versions, machine. A figure is an image whose
file is called NAME-TITLE.png, as the study's binary calls it. --check looks at the
tables alone. Takes a few seconds.
"""

import collections
import functools
import pathlib
import re
import sys
from collections.abc import Callable, Sequence

from absl import flags

from experiments import benchmark, end_to_end, robust
from experiments.support import (
    figures,
    main_table,
    provenance,
    robust_tables,
    speed,
    study,
)
from experiments.support.studies import STUDIES
from experiments.support.study_flags import RECORDS_DIR
from oodgat_jax import atomic_files, tables
from oodgat_jax.cli import app
from oodgat_jax.registry import Registry, no_such
from oodgat_jax.types import InputError

ROOT = pathlib.Path(__file__).parent.parent

FLAGS = flags.FLAGS
OWN: app.Definitions = {
    "check": (flags.DEFINE_bool, False, "Only say whether the README is stale.", {}),
    "readme": (
        flags.DEFINE_list,
        None,
        "Files to rewrite, by default the README and all pages in docs.",
        {},
    ),
    **RECORDS_DIR,
}

MARK = re.compile(r"<!-- (?:begin|end) generated: (\S+) -->")
BLOCK = re.compile(
    r"(<!-- begin generated: (\S+) -->\n).*?(<!-- end generated: \2 -->)", re.DOTALL
)

SPEED_ROWS = 4  # in the README; its page has all
BY_NAME = {each.name: each for each in STUDIES}
IMAGE = re.compile(rf"!\[[^]]*\]\(((?:[\w.-]+/)*({'|'.join(BY_NAME)})-([\w-]+)\.png)\)")


def _page(name: str, folder: pathlib.Path) -> str:
    return study.markdown(BY_NAME[name], *study.read(BY_NAME[name], folder))


def _summary(folder: pathlib.Path) -> str:
    (records,) = study.read(end_to_end.STUDY, folder)
    told = main_table.largest_differences(records) + main_table.tuned_on(records)
    further = robust_tables.in_summary(study.read_source(robust.STUDY, folder))
    shown = tables.as_markdown(main_table.summary([*records, *further]))
    return f"{shown}\n{told}\n"


def _speed(folder: pathlib.Path) -> str:
    """Returns the summary of speed, or ours alone while no peer is recorded."""
    records = study.read(benchmark.STUDY, folder)
    table = speed.summary(*records)
    if not table.rows:
        (_, table), *_ = benchmark.STUDY.tables(*records)
        table = table._replace(rows=_first_of_each(table.rows))
    short = tables.as_markdown(table._replace(rows=table.rows[:SPEED_ROWS]))
    return f"{short}\n{benchmark.STUDY.note(*records)}\n"


def _first_of_each(rows: Sequence[Sequence[tables.Cell | str]]) -> list:
    """Returns the first of the rows whose first cells are the same."""
    return list({str(row[0]): row for row in reversed(rows)}.values())[::-1]


def _made(name: str, folder: pathlib.Path) -> str:
    return provenance.markdown(BY_NAME[name], study.read(BY_NAME[name], folder)[0])


TABLES: Registry[Callable[[pathlib.Path], str]] = Registry(
    "generated table",
    {name: functools.partial(_page, name) for name in BY_NAME}
    | {
        f"{name}.made": functools.partial(_made, name)
        for name, each in BY_NAME.items()
        if each.read
    }
    | {"summary": _summary, "speed": _speed},
)


def rewrite(text: str, folder: pathlib.Path) -> str:
    """Returns the README's text with every generated block rewritten from records."""
    whole = [match[2] for match in BLOCK.finditer(text)]
    if torn := collections.Counter(MARK.findall(text)) - collections.Counter(2 * whole):
        name = next(iter(torn))
        raise InputError(
            f"The README's block {name!r} lacks a mark or has one too many: it needs "
            f"one line <!-- begin generated: {name} --> and one with end."
        )
    return BLOCK.sub(lambda m: f"{m[1]}\n{TABLES[m[2]](folder)}\n{m[3]}", text)


def run(readme: pathlib.Path, folder: pathlib.Path, check: bool) -> bool:
    """Rewrites the README, or only checks it; returns whether it was up to date."""
    if not readme.is_file():
        raise InputError(f"There is no file {readme}: give one with --readme.")
    old = readme.read_text(encoding="utf-8")
    new = rewrite(old, folder)
    if new != old and not check:
        atomic_files.text(readme, new)
    return new == old


def draw_figures(page: pathlib.Path, folder: pathlib.Path) -> None:
    """Draws the studies' figures that a page shows, where it looks for them."""
    for path, name, title in IMAGE.findall(page.read_text(encoding="utf-8")):
        drawn = BY_NAME[name].figures(*study.read(BY_NAME[name], folder))
        if title not in drawn:
            raise no_such(f"figure of {name} for {page.name}", title, drawn)
        figures.write(drawn[title], page.parent / path)


def pages() -> list[pathlib.Path]:
    """Returns the README and all pages in docs."""
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


def rebuild(pages: Sequence[pathlib.Path], folder: pathlib.Path) -> None:
    """Rewrites the tables of pages and draws their figures."""
    for page in pages:
        run(page, folder, check=False)
    for page in pages:
        draw_figures(page, folder)


def main() -> int | None:
    """Reads the flags; a stale README under --check exits with 1."""
    folder = pathlib.Path(FLAGS.records_dir)
    chosen = [pathlib.Path(name) for name in FLAGS.readme or pages()]
    if not FLAGS.check:
        rebuild(chosen, folder)
        return None
    stale = [page for page in chosen if not run(page, folder, check=True)]
    for page in stale:
        print(f"{page} is stale: run python -m experiments.readme.", file=sys.stderr)
    return 1 if stale else None


if __name__ == "__main__":
    app.run(main, own=OWN)
