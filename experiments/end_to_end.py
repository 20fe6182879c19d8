"""The paper's main table, trained end to end: five baselines and OODGAT; and GKDE.

  python -m experiments.end_to_end --datasets=cora,digits
  python -m experiments.end_to_end --datasets=cora --tuned=results/tune.jsonl
  python -m experiments.end_to_end --from_records --out=experiments/records

Trains every method on every data set, each split with each seed, and prints one table
per data set with the paper's figures in parentheses, and the differences of OODGAT from
each baseline over the same splits and seeds. Writes to the folder --out:

  end_to_end.jsonl                 one line appended per (data set, method, detector)
  end_to_end.md, end_to_end.tex    the tables

Runs that are recorded there with the same settings are not trained again, so that the
same command goes on where it stopped. --tuned takes a method's settings from the
records of `experiments.tune`, where it has some, and their runs if they are the same.
"""

import functools
import itertools
import pathlib
import sys
from collections.abc import Sequence

from absl import flags

from experiments import (
    app,
    end_to_end_table,
    progress,
    results,
    runs,
    tables,
    tune,
    whole,
)
from experiments.end_to_end_table import FILE, ROWS
from oodgat_jax import datasets, recipes
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
_METHODS = tuple(dict.fromkeys(row.method for row in ROWS))
SHARED = (
    "datasets",
    "splits",
    "seeds",
    "set",
    "out",
    "data_dir",
    "path",
    "from_records",
)
OWN: app.Definitions = {
    "methods": (flags.DEFINE_list, list(_METHODS), f"Of {', '.join(_METHODS)}.", {}),
    "tuned": (flags.DEFINE_string, None, "Records of experiments.tune.", {}),
}


def main() -> None:
    """Checks all input, trains what is missing, draws."""
    folder = app.out_folder(FLAGS.out)
    log = folder / FILE
    known = results.read(log) if log.exists() or FLAGS.from_records else []
    if not FLAGS.from_records:
        cells = results.read(FLAGS.tuned) if FLAGS.tuned else []
        chosen = plan(FLAGS.datasets, FLAGS.methods, FLAGS.set, cells)
        _train(log, known, chosen, cells)
    records = results.read(log)
    names = end_to_end_table.known(records) if FLAGS.from_records else FLAGS.datasets
    for name in names:
        print(f"{name}\n\n{tables.as_text(end_to_end_table.draw(records, name))}")
        print(f"{end_to_end_table.comparison(records, name)}\n")
    print(end_to_end_table.note(records))
    for path in write(folder, records):
        print(f"Written: {path}")


def plan(
    names: Sequence[str],
    methods: Sequence[str],
    settings: Sequence[str],
    cells: Sequence[results.Record] = (),
) -> list[tuple[str, str, recipes.Recipe]]:
    """Data set, method and recipe of each training; settings go where known."""
    for method in methods:
        if method not in _METHODS:
            raise InputError(
                f"The table has no method '{method}': choose from "
                f"{', '.join(_METHODS)}."
            )
    pairs = list(itertools.product(names, methods))
    chosen = [tune.tuned(cells, *pair) or recipes.recipe(*pair) for pair in pairs]
    chosen = recipes.override_known(chosen, settings)
    return [(*pair, recipe) for pair, recipe in zip(pairs, chosen, strict=True)]


def write(
    folder: pathlib.Path, records: Sequence[results.Record]
) -> list[pathlib.Path]:
    """The tables of all recorded data sets as Markdown and LaTeX files."""
    drawn = {
        name: end_to_end_table.draw(records, name)
        for name in end_to_end_table.known(records)
    }
    texts = {
        "end_to_end.md": end_to_end_table.markdown(records),
        "end_to_end.tex": "\n".join(
            f"% {name}\n{tables.as_latex(table)}" for name, table in drawn.items()
        ),
    }
    for name, text in texts.items():
        whole.text(folder / name, text)
    return [folder / name for name in (FILE, *texts)]


def record(folder: pathlib.Path, outcome: runs.Outcome) -> None:
    """Adds a training to the records of the table."""
    results.append(folder / FILE, *runs.records(outcome))


def _train(
    log: pathlib.Path,
    known: Sequence[results.Record],
    chosen: Sequence[tuple[str, str, recipes.Recipe]],
    cells: Sequence[results.Record],
) -> None:
    seeds = runs.split_seeds(FLAGS.splits), tuple(range(FLAGS.seeds))
    load = functools.lru_cache(maxsize=1)(datasets.load)
    for name, method, recipe in chosen:
        if runs.recorded(known, name, method, recipe, *seeds):
            print(f"{method} on {name} is recorded already.", file=sys.stderr)
            continue
        if runs.borrow(log, cells, name, method, recipe, *seeds):
            print(f"{method} on {name} is taken from {FLAGS.tuned}.", file=sys.stderr)
            continue
        with progress.Line(f"{method} on {name}") as line:
            outcome = runs.run(
                load(name, FLAGS.data_dir),
                method,
                recipe,
                *seeds,
                path=FLAGS.path,
                progress=line,
            )
        for sentence in runs.failures(outcome):
            print(sentence, file=sys.stderr)
        record(log.parent, outcome)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
