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

from experiments import tune
from experiments.support import main_table, study
from experiments.support.main_table import FILE, ROWS
from oodgat_jax import atomic_files, datasets, experiment, tables
from oodgat_jax.cli import app, progress
from oodgat_jax.datasets import DATASETS
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import Record, append_records, read_records, recorded
from oodgat_jax.registry import check_names

FLAGS = flags.FLAGS
TABLE_METHODS = tuple(dict.fromkeys(row.method for row in ROWS))
SHARED = (
    "datasets",
    "splits",
    "seeds",
    "set",
    "out",
    "data_dir",
    "kernel",
    "from_records",
)
OWN: app.Definitions = {
    "methods": (
        flags.DEFINE_list,
        list(TABLE_METHODS),
        f"Of {', '.join(TABLE_METHODS)}.",
        {},
    ),
    "tuned": (flags.DEFINE_string, None, "Records of experiments.tune.", {}),
}


def main() -> None:
    """Checks all input, trains what is missing, draws."""
    folder = app.out_folder(FLAGS.out)
    log = folder / FILE
    known = read_records(log) if log.exists() or FLAGS.from_records else []
    if not FLAGS.from_records:
        cells = read_records(FLAGS.tuned) if FLAGS.tuned else []
        chosen = plan(FLAGS.datasets, FLAGS.methods, FLAGS.set, cells)
        _train(log, known, chosen, cells)
    records = read_records(log)
    names = main_table.known(records) if FLAGS.from_records else FLAGS.datasets
    for name in names:
        print(f"{name}\n\n{tables.as_text(main_table.draw(records, name))}")
        print(f"{main_table.comparison(records, name)}\n")
    print(main_table.note(records))
    for path in write(folder, records):
        print(f"Written: {path}")


def plan(
    names: Sequence[str],
    methods: Sequence[str],
    settings: Sequence[str],
    cells: Sequence[Record] = (),
) -> list[tuple[str, str, recipes.Recipe]]:
    """Data set, method and recipe of each training; settings go where known."""
    check_names("method", methods, TABLE_METHODS)
    check_names("data set", names, DATASETS)
    pairs = list(itertools.product(names, methods))
    chosen = [tune.tuned(cells, *pair) or recipes.recipe(*pair) for pair in pairs]
    chosen = recipes.override_known(chosen, settings)
    return [(*pair, recipe) for pair, recipe in zip(pairs, chosen, strict=True)]


def write(folder: pathlib.Path, records: Sequence[Record]) -> list[pathlib.Path]:
    """The tables of all recorded data sets as Markdown and LaTeX files."""
    drawn = {name: main_table.draw(records, name) for name in main_table.known(records)}
    texts = {
        "end_to_end.md": main_table.markdown(records),
        "end_to_end.tex": "\n".join(
            f"% {name}\n{tables.as_latex(table)}" for name, table in drawn.items()
        ),
    }
    for name, text in texts.items():
        atomic_files.text(folder / name, text)
    return [folder / name for name in (FILE, *texts)]


def record(folder: pathlib.Path, outcome: experiment.Result) -> None:
    """Adds a training to the records of the table."""
    append_records(folder / FILE, *experiment.records(outcome))


def _train(
    log: pathlib.Path,
    known: Sequence[Record],
    chosen: Sequence[tuple[str, str, recipes.Recipe]],
    cells: Sequence[Record],
) -> None:
    seeds = experiment.split_seeds(FLAGS.splits), tuple(range(FLAGS.seeds))
    load = functools.lru_cache(maxsize=1)(datasets.load)
    for name, method, recipe in chosen:
        detectors = METHODS[method].detectors
        if recorded(known, name, method, recipe, *seeds, detectors):
            print(f"{method} on {name} is recorded already.", file=sys.stderr)
            continue
        if study.borrow(log, cells, name, method, recipe, *seeds):
            print(f"{method} on {name} is taken from {FLAGS.tuned}.", file=sys.stderr)
            continue
        with progress.Line(f"{method} on {name}") as line:
            outcome = experiment.execute(
                load(name, FLAGS.data_dir),
                method,
                recipe,
                *seeds,
                kernel=FLAGS.kernel,
                progress=line,
            )
        for sentence in experiment.failures(outcome):
            print(sentence, file=sys.stderr)
        record(log.parent, outcome)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
