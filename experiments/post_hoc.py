"""Post-hoc detectors on a trained GAT beside OODGAT: the paper's second table.

  python -m experiments.post_hoc --datasets=digits
  python -m experiments.post_hoc --datasets=cora,amazon-photo --out=results
  python -m experiments.post_hoc --from_records

Trains GAT and OODGAT on each data set, every split with every seed, and scores them
with the detectors of the table. Settings of a detector are chosen by the mean AUROC
over the runs' validation nodes; beside it stands the choice by test nodes, which is
how the paper tunes and is called oracle. Writes to the folder --out:

  post_hoc.jsonl               one line appended per (data set, method, detector,
                               selection: fixed, validation or oracle)
  post_hoc.md, post_hoc.tex    the table of all data sets recorded there
  end_to_end.jsonl             the same trainings as rows of the main table, which
                               `experiments.end_to_end` then need not train again

What is recorded there with the same settings is not measured again, so that the same
command goes on where it stopped. Exit code 2: the input was wrong; 1: every run failed.
"""

import pathlib
import sys
import time
from collections.abc import Sequence

import jax
import numpy as np
from absl import flags

from experiments import end_to_end
from experiments.support import post_hoc_table
from experiments.support.post_hoc_table import ROWS, Row
from oodgat_jax import datasets, detectors, evaluation, experiment, tables
from oodgat_jax.cli import app, progress
from oodgat_jax.detectors import DETECTORS, FACTORIES, GRIDS, Settings
from oodgat_jax.methods import recipes
from oodgat_jax.records import (
    Record,
    append_records,
    kept_metrics,
    read_records,
    recorded,
)
from oodgat_jax.registry import check_names

FLAGS = flags.FLAGS
OWN: app.Definitions = {
    "detectors": (
        flags.DEFINE_list,
        None,
        "Those of the table to measure, if not all: "
        f"{', '.join(dict.fromkeys(row.detector for row in ROWS))}.",
        {},
    ),
}
FILE = "post_hoc.jsonl"


def main() -> int | None:
    """Checks all input, trains, records, draws."""
    folder = app.out_folder(FLAGS.out)
    rows = choose(FLAGS.detectors)
    trained = list(dict.fromkeys(row.method for row in rows))
    chosen = end_to_end.plan(FLAGS.datasets, trained, FLAGS.set)
    log = folder / FILE
    known = read_records(log) if log.exists() or FLAGS.from_records else []
    work = [] if FLAGS.from_records else chosen
    failed = [_run(folder, missing(known, rows, *each), *each) for each in work]
    records = read_records(log)
    names = post_hoc_table.known(records) if FLAGS.from_records else FLAGS.datasets
    print(tables.as_text(post_hoc_table.draw(records, names)))
    print(post_hoc_table.note(records))
    table = post_hoc_table.draw(records, post_hoc_table.known(records))
    paths = tables.write(folder, "post_hoc", table, post_hoc_table.note(records))
    for path in (log, *paths):
        print(f"Written: {path}")
    return 1 if failed and all(failed) else None


def choose(names: Sequence[str] | None) -> list[Row]:
    """The rows of the named detectors; all for None."""
    check_names("detector", names or (), [row.detector for row in ROWS])
    return [row for row in ROWS if names is None or row.detector in names]


def missing(
    known: Sequence[Record],
    rows: Sequence[Row],
    name: str,
    method: str,
    recipe: recipes.Recipe,
) -> list[Row]:
    """The rows of a method that these runs are not recorded with."""
    seeds = experiment.split_seeds(FLAGS.splits), tuple(range(FLAGS.seeds))
    return [
        row
        for row in rows
        if row.method == method
        and not recorded(known, name, method, recipe, *seeds, [row.detector])
    ]


def measure(outcome: experiment.Result, row: Row) -> list[Record]:
    """The records of a row: its detector tuned and scored on all runs."""
    began = time.perf_counter()
    scored, records = {}, []  # validation and oracle are often the same settings
    for selection, settings in select(outcome, row).items():
        if repr(settings) not in scored:
            scored[repr(settings)] = _scored(outcome, row, settings)
        (record,) = experiment.records(scored[repr(settings)])
        records.append(
            record
            | {
                "selection": selection,
                "detector_settings": settings,
                "detector_seconds": round(time.perf_counter() - began, 3),
            }
        )
    return records


def select(outcome: experiment.Result, row: Row) -> dict[str, Settings]:
    """Selection -> settings of a detector, tuned on the runs that did not fail."""
    if row.detector not in GRIDS:
        return {"fixed": {}}
    whole = np.flatnonzero(outcome.states.failed_at < 0)
    tuned = detectors.tune(
        row.detector,
        evaluation.predictor(outcome.task),
        jax.tree.map(lambda x: x[whole], evaluation.trained(outcome.states)),
        outcome.graph,
        jax.tree.map(lambda leaf: leaf[whole], outcome.splits),
    )
    return {"validation": tuned.chosen, "oracle": tuned.oracle}


def _run(
    folder: pathlib.Path,
    rows: Sequence[Row],
    name: str,
    method: str,
    recipe: recipes.Recipe,
) -> bool:
    """Trains and measures a method on a data set; says whether every run failed."""
    if not rows:
        print(f"{method} on {name} is recorded already.", file=sys.stderr)
        return False
    with progress.Line(f"{method} on {name}") as line:
        outcome = experiment.execute(
            datasets.load(name, FLAGS.data_dir),
            method,
            recipe,
            experiment.split_seeds(FLAGS.splits),
            range(FLAGS.seeds),
            kernel=FLAGS.kernel,
            progress=line,
        )
    for sentence in experiment.failures(outcome):
        print(sentence, file=sys.stderr)
    if len(outcome.failed) == len(outcome.setting):
        return True
    end_to_end.record(folder, outcome)
    for row in rows:
        records = measure(outcome, row)
        append_records(folder / FILE, *records)
        print("\n".join(map(_describe, records)), file=sys.stderr)
    return False


def _describe(record: Record) -> str:
    auroc = tables.result(kept_metrics(record)["auroc"]).text
    settings = ", ".join(f"{k}={v}" for k, v in record["detector_settings"].items())
    return (
        f"{record['detector']} on {record['dataset']}, {record['selection']}: AUROC "
        f"{auroc} ({settings or 'no settings'}), {record['detector_seconds']:.0f} s"
    )


def _scored(
    outcome: experiment.Result, row: Row, settings: Settings
) -> experiment.Result:
    """The outcome with this detector's scores and metrics instead of its own."""
    name = row.detector
    detector = FACTORIES[name](**settings) if settings else DETECTORS[name]
    scores = detectors.score_runs(
        detector,
        evaluation.predictor(outcome.task),
        evaluation.trained(outcome.states),
        outcome.graph,
        outcome.splits,
    )
    found = jax.device_get(
        {name: evaluation.evaluate(scores, outcome.logits, outcome.splits)}
    )
    found = experiment.without_failed(found, outcome.states)
    return outcome._replace(scores={name: np.asarray(scores)}, metrics=found)


if __name__ == "__main__":
    app.run(main, end_to_end.SHARED, OWN, goes_on=True)
