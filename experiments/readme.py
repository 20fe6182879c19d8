"""Writes tables and figures of the README and docs/scale.md from committed records.

  python -m experiments.readme          rewrites them
  python -m experiments.readme --check  changes nothing, exits with 1 if one is stale

A table stands between the lines `<!-- begin generated: NAME -->` and
`<!-- end generated: NAME -->`; NAME is a key of TABLES. A figure is an image whose file
is called ANALYSIS-TITLE.png, as the analysis itself calls it; ANALYSIS is a key of
FIGURES. --check looks at the tables alone. Takes a few seconds.
"""

import collections
import pathlib
import re
import sys
from collections.abc import Callable

from absl import flags

from experiments import (
    ablation,
    edge_removal,
    edge_roles,
    findings,
    homophily,
    sensitivity,
    tune,
    visualize,
)
from experiments.support import (
    RECORDS_DIR,
    benchmark_table,
    figures,
    gkde_table,
    main_table,
    no_ood_labels_table,
    post_hoc_table,
    scale,
)
from oodgat_jax import atomic_files, tables
from oodgat_jax.cli import app
from oodgat_jax.records import read_lines, read_records
from oodgat_jax.types import InputError

ROOT = pathlib.Path(__file__).parent.parent

FLAGS = flags.FLAGS
OWN: app.Definitions = {
    "check": (flags.DEFINE_bool, False, "Only say whether the README is stale.", {}),
    "readme": (
        flags.DEFINE_list,
        [str(ROOT / "README.md"), str(ROOT / "docs" / "scale.md")],
        "Files to rewrite.",
        {},
    ),
    **RECORDS_DIR,
}

MARK = re.compile(r"<!-- (?:begin|end) generated: (\S+) -->")
BLOCK = re.compile(
    r"(<!-- begin generated: (\S+) -->\n).*?(<!-- end generated: \2 -->)", re.DOTALL
)


def post_hoc(folder: pathlib.Path) -> str:
    """Post-hoc detectors beside OODGAT on every data set recorded."""
    return post_hoc_table.markdown(read_records(folder / "post_hoc.jsonl"))


def gkde(folder: pathlib.Path) -> str:
    """OODGAT beside GKDE under GKDE's protocol."""
    return gkde_table.markdown(read_records(folder / "gkde.jsonl"))


def no_ood_labels(folder: pathlib.Path) -> str:
    """The classifier's choices without OOD labels beside those with them."""
    records = read_records(folder / "no_ood_labels.jsonl")
    labelled = read_records(folder / main_table.FILE)
    return no_ood_labels_table.markdown(records, labelled)


def benchmark(folder: pathlib.Path) -> str:
    """The speed of training beside the authors' code."""
    return benchmark_table.markdown(read_lines(folder / "benchmark.jsonl"))


def end_to_end(folder: pathlib.Path) -> str:
    """Baselines and OODGAT on every data set recorded, beside the paper's figures."""
    return main_table.markdown(read_records(folder / main_table.FILE))


def edges_removed(folder: pathlib.Path) -> str:
    """GCN's accuracy with inter-edges removed."""
    records = read_records(folder / edge_removal.FILE)
    return tables.with_note(edge_removal.draw(records), edge_removal.note(records))


def ablated(folder: pathlib.Path) -> str:
    """OODGAT with some of its regularisers."""
    records = read_records(folder / ablation.FILE)
    return tables.with_note(ablation.draw(records), ablation.note(records))


def homophilies(folder: pathlib.Path) -> str:
    """Homophily of the data sets by class and by ID/OOD."""
    records = read_lines(folder / homophily.FILE)
    return tables.with_note(homophily.draw(records), homophily.NOTE)


def found(folder: pathlib.Path) -> str:
    """The paper's findings, and whether they hold."""
    return tables.with_note(findings.draw(findings.read(folder)), findings.NOTE)


def tuned(folder: pathlib.Path) -> str:
    """What tuning chose, and its test figures."""
    records = read_records(folder / tune.FILE)
    return tables.with_note(tune.draw(records), tune.NOTE)


def scaled(folder: pathlib.Path) -> str:
    """What a step on a spread graph costs."""
    return tables.as_markdown(scale.draw(read_lines(folder / "scale.jsonl")))


TABLES: dict[str, Callable[[pathlib.Path], str]] = {
    "ablation": ablated,
    "benchmark": benchmark,
    "edge_removal": edges_removed,
    "end_to_end": end_to_end,
    "findings": found,
    "gkde": gkde,
    "homophily": homophilies,
    "no_ood_labels": no_ood_labels,
    "post_hoc": post_hoc,
    "scale": scaled,
    "tune": tuned,
}

FIGURES = {
    "edge_roles": edge_roles,
    "sensitivity": sensitivity,
    "visualize": visualize,
}
IMAGE = re.compile(rf"!\[[^]]*\]\(((?:[\w-]+/)*({'|'.join(FIGURES)})-([\w-]+)\.png)\)")


def _generate(name: str, folder: pathlib.Path) -> str:
    if name not in TABLES:
        known = ", ".join(TABLES)
        raise InputError(f"The README asks for table {name!r}: choose from {known}.")
    return TABLES[name](folder)


def rewrite(text: str, folder: pathlib.Path) -> str:
    """The README's text with every generated block made anew from the records."""
    whole = [match[2] for match in BLOCK.finditer(text)]
    if torn := collections.Counter(MARK.findall(text)) - collections.Counter(2 * whole):
        name = next(iter(torn))
        raise InputError(
            f"The README's block {name!r} lacks a mark or has one too many: it needs "
            f"one line <!-- begin generated: {name} --> and one with end."
        )
    return BLOCK.sub(lambda m: f"{m[1]}\n{_generate(m[2], folder)}\n{m[3]}", text)


def run(readme: pathlib.Path, folder: pathlib.Path, check: bool) -> bool:
    """Rewrites the README, or only checks it; says whether it was up to date."""
    if not readme.is_file():
        raise InputError(f"There is no file {readme}: give one with --readme.")
    old = readme.read_text(encoding="utf-8")
    new = rewrite(old, folder)
    if new != old and not check:
        atomic_files.text(readme, new)
    return new == old


def draw_figures(page: pathlib.Path, folder: pathlib.Path) -> None:
    """Draws the analyses' figures that a page shows, where it looks for them."""
    for path, analysis, title in IMAGE.findall(page.read_text(encoding="utf-8")):
        module = FIGURES[analysis]
        drawn = module.draw_figures(read_records(folder / module.FILE))
        if title not in drawn:
            known = ", ".join(drawn) or "none"
            raise InputError(f"{page} shows {path}: there are records of {known}.")
        figures.write(drawn[title], page.parent / path)


def main() -> int | None:
    """Reads the flags; a stale README under --check exits with 1."""
    folder = pathlib.Path(FLAGS.records_dir)
    pages = [pathlib.Path(name) for name in FLAGS.readme]
    stale = [page for page in pages if not run(page, folder, FLAGS.check)]
    if not FLAGS.check:
        for page in pages:
            draw_figures(page, folder)
        return None
    for page in stale:
        print(f"{page} is stale: run python -m experiments.readme.", file=sys.stderr)
    return 1 if stale else None


if __name__ == "__main__":
    app.run(main, own=OWN)
