"""Trains the methods of the paper's main table end to end: baselines, GKDE, OODGAT.

  python -m experiments.end_to_end --datasets=cora,digits
  python -m experiments.end_to_end --datasets=cora --tuned=results/tune.jsonl
  python -m experiments.end_to_end --from_records --out=experiments/records

Trains every method on every data set, each split with each seed, and prints one table
per data set with the paper's figures in parentheses, and the differences of OODGAT from
each baseline over the same splits and seeds. Writes to the folder --out:

  end_to_end.jsonl                 one line appended per (data set, method, detector)
  end_to_end.md, end_to_end.tex    the tables
  end_to_end-runs.pdf, .png        the AUROC of every run

Runs that are recorded there with the same settings are not trained again, so the same
command continues where it stopped. --tuned takes a method's settings from the records
of `experiments.tune`, where it has some, and their runs if they are the same.
"""

import functools
import itertools
from collections.abc import Sequence

from absl import flags
from matplotlib.figure import Figure

from experiments.support import (
    main_table,
    paired,
    run_figures,
    study,
    study_flags,
    tuned,
)
from experiments.support.study import Study, Tables
from experiments.support.trainings import Keys, Training, loader, of_method
from oodgat_jax.cli import app
from oodgat_jax.datasets import DATASETS
from oodgat_jax.methods import recipes
from oodgat_jax.records import Record
from oodgat_jax.registry import check_names

FLAGS = flags.FLAGS
TABLE_METHODS = tuple(dict.fromkeys(row.method for row in main_table.ROWS))
SHARED = ("datasets", *study_flags.TRAINING)
OWN: app.Definitions = {
    "methods": (
        flags.DEFINE_list,
        list(TABLE_METHODS),
        f"Of {', '.join(TABLE_METHODS)}.",
        {},
    ),
    **tuned.FLAG,
}
PAIRED = (
    "OODGAT's AUROC less each baseline's over the same splits and seeds: mean in "
    f"points and its 95 % bootstrap interval; {paired.NOTE}"
)


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY, beside=FLAGS.tuned)


def trainings() -> list[Training]:
    """Returns one training per data set and method."""
    cells, load = tuned.cells(), loader()
    chosen = plan(FLAGS.datasets, FLAGS.methods, FLAGS.set, cells)
    return [
        of_method(
            f"{method} on {name}",
            name,
            functools.partial(load, name),
            method,
            recipe,
            keys=tuned_keys(cells, name, method),
            unchanged=True,
        )
        for name, method, recipe in chosen
    ]


def tuned_keys(cells: Sequence[Record], dataset: str, method: str) -> Keys:
    """Returns what records of tuned settings say besides them."""
    return {"tuned": True} if tuned.chosen(cells, dataset, method) else {}


def plan(
    names: Sequence[str],
    methods: Sequence[str],
    settings: Sequence[str],
    cells: Sequence[Record] = (),
) -> list[tuple[str, str, recipes.Recipe]]:
    """Returns data set, method and recipe of each training, after checking them.

    A setting goes to the methods that have it. Those of tuned cells come first.
    """
    check_names("method", methods, TABLE_METHODS)
    check_names("data set", names, DATASETS)
    pairs = list(itertools.product(names, methods))
    chosen = [tuned.recipe(cells, *pair) for pair in pairs]
    chosen = recipes.override_known(chosen, settings)
    return [(*pair, recipe) for pair, recipe in zip(pairs, chosen, strict=True)]


def with_differences(records: Sequence[Record]) -> Tables:
    """Returns a table per data set, and the paired differences if there are any."""
    compared = main_table.comparison_table(records)
    further = [(PAIRED, compared)] if compared.rows else []
    return [*main_table.titled(records), *further]


def draw_figures(records: Sequence[Record]) -> dict[str, Figure]:
    """Draws every run's AUROC as a dot."""
    return {"runs": run_figures.end_to_end(records)}


STUDY = Study(
    name="end_to_end",
    title="The main table: methods trained end to end",
    about="Baselines and OODGAT on the paper's data sets, every method with the same "
    "splits and seeds. Known classes are told apart and OOD nodes are found by one "
    "network. Digits is a demonstration that needs no download; the paper does not "
    "have it.",
    command="python -m experiments.end_to_end --out=experiments/records \\\n"
    "    --datasets=cora,amazon-computers,amazon-photo,coauthor-cs,digits",
    trainings=trainings,
    tables=with_differences,
    page=main_table.titled,
    figures=draw_figures,
    note=main_table.note,
    figure_caption=run_figures.CAPTION,
    copies="tune.jsonl",
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
