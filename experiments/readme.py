"""Writes the README's tables from the committed records.

  python -m experiments.readme          rewrites README.md
  python -m experiments.readme --check  changes nothing, exits with 1 if it is stale

A table stands between the lines `<!-- begin generated: NAME -->` and
`<!-- end generated: NAME -->`; NAME is a key of TABLES. Takes about a second.
"""

import collections
import pathlib
import re
import sys
from collections.abc import Callable

from absl import flags

from experiments import (
    app,
    benchmark_table,
    gkde_table,
    no_ood_labels_table,
    post_hoc_table,
    published,
    results,
    tables,
)
from oodgat_jax.types import InputError

ROOT = pathlib.Path(__file__).parent.parent

FLAGS = flags.FLAGS
OWN: app.Definitions = {
    "check": (flags.DEFINE_bool, False, "Only say whether the README is stale.", {}),
    "readme": (flags.DEFINE_string, str(ROOT / "README.md"), "File to rewrite.", {}),
    "records_dir": (
        flags.DEFINE_string,
        str(ROOT / "experiments" / "records"),
        "Folder of the *.jsonl files.",
        {},
    ),
}

MARK = re.compile(r"<!-- (?:begin|end) generated: (\S+) -->")
BLOCK = re.compile(
    r"(<!-- begin generated: (\S+) -->\n).*?(<!-- end generated: \2 -->)", re.DOTALL
)
NOTE = (
    "Percent, mean ± standard deviation over {runs} runs, in parentheses the paper's "
    "figure. F1 (best) picks its threshold on the test nodes, as the paper does; "
    "F1 (val) on the validation nodes. The paper's FPR95 averages over ROC points near "
    "95 % TPR, ours is taken at the first point that reaches it."
)


def _oodgat_row(record: results.Record) -> list[tables.Cell | str]:
    """Data set, detector and one cell per metric."""
    dataset, detector = record["dataset"], record["detector"]
    name = f"oodgat-{detector.lower()}"
    cells = [
        tables.result(
            record["metrics"][metric],
            published.published("end_to_end", name, dataset, metric),
        )
        for metric in tables.COLUMNS
    ]
    return [dataset, name.upper(), *cells]


def oodgat(folder: pathlib.Path) -> str:
    """OODGAT with both detectors on every data set, beside the paper's figures."""
    records = results.read(folder / "oodgat.jsonl")
    found = [
        results.latest(records, dataset=dataset, method="oodgat", detector=detector)
        for dataset in published.in_order([r["dataset"] for r in records])
        for detector in ("ENT", "ATT")
    ]
    chosen = [record for record in found if record is not None]
    if not chosen:
        raise InputError(f"{folder / 'oodgat.jsonl'} has no record of method oodgat.")
    header = ["Data set", "Method", *tables.COLUMNS.values()]
    table = tables.Table(header, [_oodgat_row(record) for record in chosen])
    return (
        f"{tables.as_markdown(table)}\n{NOTE.format(runs=results.count_runs(chosen))}\n"
    )


def post_hoc(folder: pathlib.Path) -> str:
    """Post-hoc detectors beside OODGAT on every data set recorded."""
    records = results.read(folder / "post_hoc.jsonl")
    table = post_hoc_table.draw(records, post_hoc_table.known(records))
    return f"{tables.as_markdown(table)}\n{post_hoc_table.note(records)}\n"


def gkde(folder: pathlib.Path) -> str:
    """OODGAT beside GKDE under GKDE's protocol."""
    return gkde_table.markdown(results.read(folder / "gkde.jsonl"))


def no_ood_labels(folder: pathlib.Path) -> str:
    """The classifier's choices without OOD labels beside those with them."""
    records = results.read(folder / "no_ood_labels.jsonl")
    return no_ood_labels_table.markdown(records, results.read(folder / "oodgat.jsonl"))


def benchmark(folder: pathlib.Path) -> str:
    """The speed of training beside the authors' code."""
    return benchmark_table.markdown(results.read_lines(folder / "benchmark.jsonl"))


TABLES: dict[str, Callable[[pathlib.Path], str]] = {
    "benchmark": benchmark,
    "gkde": gkde,
    "no_ood_labels": no_ood_labels,
    "oodgat": oodgat,
    "post_hoc": post_hoc,
}


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
        readme.write_text(new, encoding="utf-8")
    return new == old


def main() -> int | None:
    """Reads the flags; a stale README under --check exits with 1."""
    readme, folder = pathlib.Path(FLAGS.readme), pathlib.Path(FLAGS.records_dir)
    if run(readme, folder, FLAGS.check) or not FLAGS.check:
        return None
    print(f"{readme} is stale: run python -m experiments.readme.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    app.run(main, own=OWN)
