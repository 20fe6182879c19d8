"""Measures post-hoc detectors on a trained GAT beside OODGAT: the second table.

  python -m experiments.post_hoc --datasets=digits
  python -m experiments.post_hoc --datasets=cora,amazon-photo --out=results
  python -m experiments.post_hoc --from_records

Trains GAT and OODGAT on each data set, every split with every seed, and scores them
with the detectors of the table. Settings of a detector are chosen by the mean AUROC
over the runs' validation nodes; the choice by test nodes, which is how the paper tunes,
is shown too and called oracle. Writes to the folder --out:

  post_hoc.jsonl               one line appended per (data set, method, detector,
                               selection: fixed, validation or oracle)
  post_hoc.md, post_hoc.tex    the table of all data sets recorded there
  end_to_end.jsonl             the same trainings as rows of the main table, which
                               `experiments.end_to_end` then need not train again

What is recorded there with the same settings is not measured again, so the same command
continues where it stopped. Exit code 2: the input was wrong; 1: every run failed.
"""

import functools
import pathlib
import sys
import time
from collections.abc import Iterable, Sequence

import jax
import numpy as np
from absl import flags

from experiments import end_to_end
from experiments.support import main_table, paper_results, study, trainings, tuned
from experiments.support.notes import counted
from experiments.support.study import Study
from experiments.support.trainings import Keys, Load, Training
from oodgat_jax import detectors, evaluation, experiment, tables
from oodgat_jax.cli import app
from oodgat_jax.detectors import DETECTORS, FACTORIES, GRIDS, Settings
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import (
    Record,
    append_records,
    kept_metrics,
    latest,
)
from oodgat_jax.registry import check_names
from oodgat_jax.tables import Row
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
ROWS = (
    Row("GAT (base)", "gat", "ENT", "gat"),
    Row("ODIN", "gat", "ODIN", "odin"),
    Row("Mahalanobis", "gat", "Mahalanobis", "mahalanobis"),
    Row("CaGCN", "gat", "CaGCN", "cagcn"),
    Row("energy", "gat", "energy"),
    Row("GNNSafe", "gat", "GNNSafe"),
    Row("GRASP", "gat", "GRASP"),
    Row("kNN", "gat", "kNN"),
    Row("OODGAT-ENT", "oodgat", "ENT", "oodgat-ent"),
    Row("OODGAT-ATT", "oodgat", "ATT", "oodgat-att"),
    Row("OODGAT-ENT, propagated", "oodgat", "ENT+prop"),
    Row("OODGAT-ATT, propagated", "oodgat", "ATT+prop"),
)
METRICS = {"auroc": "AUROC", "fpr95": "FPR95"}
# How a detector's settings were chosen; `fixed` is for those that have none.
SELECTIONS = ("fixed", "validation", "oracle")
BEST = {"auroc": "max", "fpr95": "min"}
NOTE = (
    "Percent, mean ± standard deviation over {runs}. Detectors are on GAT unless "
    "OODGAT is named. Settings are chosen by AUROC on the validation nodes, or, called "
    "oracle, on the test nodes as the paper does; the paper's figures of ODIN, "
    "Mahalanobis and CaGCN are to be compared with oracle. The paper's FPR95 averages "
    "over ROC points near 95 % TPR, ours is taken at the first point that reaches it."
)


SHARED = end_to_end.SHARED
OWN: app.Definitions = {
    "detectors": (
        flags.DEFINE_list,
        None,
        "Those of the table to measure, if not all: "
        f"{', '.join(dict.fromkeys(row.detector for row in ROWS))}.",
        {},
    ),
    **tuned.FLAG,
}


def main() -> int | None:
    """Trains and measures what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> list[Training]:
    """Returns one training per data set and method, after checking all names."""
    rows = choose(FLAGS.detectors)
    methods = list(dict.fromkeys(row.method for row in rows))
    load, cells = trainings.loader(), tuned.cells()
    planned = end_to_end.plan(FLAGS.datasets, methods, FLAGS.set, cells)
    return [
        _training(
            name,
            functools.partial(load, name),
            method,
            recipe,
            rows,
            end_to_end.tuned_keys(cells, name, method),
        )
        for name, method, recipe in planned
    ]


def choose(names: Sequence[str] | None) -> list[Row]:
    """Returns the rows of the named detectors; all for None."""
    check_names("detector", names or (), [row.detector for row in ROWS])
    return [row for row in ROWS if names is None or row.detector in names]


def _training(
    name: str,
    load: Load,
    method: str,
    recipe: recipes.Recipe,
    rows: Sequence[Row],
    keys: Keys,
) -> Training:
    title, seeds = f"{method} on {name}", trainings.seeds()
    mine = {row.detector: row for row in rows if row.method == method}

    def run(missing: Sequence[Keys]) -> Iterable[list[Record]]:
        result = trainings.execute(title, load(), method, recipe, *seeds)
        if len(result.failed) == len(result.setting):
            return
        log = pathlib.Path(FLAGS.out) / main_table.FILE
        if not trainings.find(trainings.read(log), of_table):  # as after a kill
            found = experiment.records(result)
            append_records(log, *(record | keys for record in found))
        for each in missing:
            records = measure(result, mine[each["detector"]])
            yield records
            print("\n".join(map(_describe, records)), file=sys.stderr)

    same = recipe, name, method, *seeds
    table = trainings.wanted(*same, METHODS[method].detectors)
    of_table = [each | keys for each in table]
    return Training(title, trainings.wanted(*same, list(mine)), run)


def measure(result: experiment.Result, row: Row) -> list[Record]:
    """Tunes the detector of a row, scores all runs, returns the records."""
    began = time.perf_counter()
    scored, records = {}, []  # validation and oracle are often the same settings
    for selection, settings in select(result, row).items():
        if repr(settings) not in scored:
            scored[repr(settings)] = _scored(result, row, settings)
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


def select(result: experiment.Result, row: Row) -> dict[str, Settings]:
    """Returns selection -> settings of a detector, tuned on runs that did not fail."""
    if row.detector not in GRIDS:
        return {"fixed": {}}
    whole = np.flatnonzero(result.states.failed_at < 0)
    tuned = detectors.tune(
        row.detector,
        evaluation.predictor(result.task),
        jax.tree.map(lambda x: x[whole], evaluation.trained(result.states)),
        result.graph,
        jax.tree.map(lambda leaf: leaf[whole], result.splits),
    )
    return {"validation": tuned.chosen, "oracle": tuned.oracle}


def _describe(record: Record) -> str:
    auroc = tables.result(kept_metrics(record)["auroc"]).text
    settings = ", ".join(f"{k}={v}" for k, v in record["detector_settings"].items())
    return (
        f"{record['detector']} on {record['dataset']}, {record['selection']}: AUROC "
        f"{auroc} ({settings or 'no settings'}), {record['detector_seconds']:.0f} s"
    )


def _scored(
    result: experiment.Result, row: Row, settings: Settings
) -> experiment.Result:
    """Returns the result with this detector's scores and metrics instead of its own."""
    name = row.detector
    detector = FACTORIES[name](**settings) if settings else DETECTORS[name]
    scores = detectors.score_runs(
        detector,
        evaluation.predictor(result.task),
        evaluation.trained(result.states),
        result.graph,
        result.splits,
    )
    found = jax.device_get(
        {name: evaluation.evaluate(scores, result.logits, result.splits)}
    )
    found = experiment.without_failed(found, result.states)
    return result._replace(scores={name: np.asarray(scores)}, metrics=found)


def draw(
    records: Sequence[Record], datasets: Sequence[str] | None = None
) -> tables.Table:
    """Draws a row per data set, all by default, and detector.

    Raises:
      InputError: there is no record of these data sets.
    """
    datasets = known(records) if datasets is None else datasets
    rows = [
        [dataset, row.title, *_cells(records, dataset, row)]
        for dataset in datasets
        for row in ROWS
        if find(records, dataset, row)
    ]
    if not rows:
        raise InputError(f"There are no records of {', '.join(datasets)}.")
    groups = ("", " (oracle)", " (paper)")
    header = [f"{title}{group}" for group in groups for title in METRICS.values()]
    best = list(BEST.values()) if len(datasets) == 1 else ["", ""]
    return tables.Table(
        ["Data set", "Method", *header], rows, ["", "", *best, "", "", "", ""]
    )


def known(records: Sequence[Record]) -> list[str]:
    """Returns the data sets of the records: the paper's first, in its order."""
    return paper_results.in_order([record["dataset"] for record in records], "post_hoc")


def find(records: Sequence[Record], dataset: str, row: Row) -> dict[str, Record]:
    """Returns the latest record of each selection."""
    where = {"dataset": dataset, "method": row.method, "detector": row.detector}
    each = {s: latest(records, **where, selection=s) for s in SELECTIONS}
    return {selection: record for selection, record in each.items() if record}


def _cells(
    records: Sequence[Record], dataset: str, row: Row
) -> list[tables.Cell | str]:
    """Returns the metrics of ours, of ours as oracle and of the paper's."""
    found = find(records, dataset, row)
    ours = found.get("validation", found.get("fixed"))
    paper = [paper_results.figure("post_hoc", row.paper, dataset, m) for m in METRICS]
    return [
        *_results(ours),
        *_results(found.get("oracle")),
        *("" if value is None else f"{value:.1f}" for value in paper),
    ]


def _results(record: Record | None) -> list[tables.Cell | str]:
    """Returns a cell per metric, over the runs that did not fail."""
    if record is None:
        return [""] * len(METRICS)
    kept = kept_metrics(record)
    return [tables.result(kept[metric]) for metric in METRICS]


STUDY = Study(
    name="post_hoc",
    title="Post-hoc detectors",
    about="Detectors that take a trained GAT as it is, beside OODGAT, which learns to "
    "detect.",
    command="python -m experiments.post_hoc --out=experiments/records \\\n"
    "    --datasets=cora,amazon-computers,amazon-photo,coauthor-cs,digits",
    trainings=every_training,
    tables=study.one_per_dataset(draw, known),
    page=study.single(draw),
    note=counted(NOTE),
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
