"""Compares OODGAT with GKDE under GKDE's protocol, on the public Planetoid splits.

  python -m experiments.gkde --datasets=cora
  python -m experiments.gkde --out=results
  python -m experiments.gkde --from_records --out=experiments/records

ID classes are those of GKDE's code: Cora 0-3, Citeseer 0-2, Pubmed 0-1 (the paper's
appendix prints them as OOD classes). The public train nodes of these are labeled. A
result is the mean over ten random draws of 1,000 nodes after the public train nodes.
There are --splits evaluation seeds, each with its own --seeds initializations.
Writes to the folder --out:

  gkde.jsonl           one line appended per (data set, method, detector)
  gkde.md, gkde.tex    the table of all data sets recorded there

Runs that are recorded there with the same settings are not trained again. The default,
nine runs of three methods on three data sets, takes about 45 minutes on two cores.
Exit code 2: the input was wrong; 1: every run failed.
"""

import functools
import itertools
from collections.abc import Iterable, Sequence

import jax
import numpy as np
from absl import flags

from experiments.support import paper_results, study, study_flags, trainings
from experiments.support.notes import counted
from experiments.support.study import Study
from experiments.support.trainings import Keys, Load, Training
from oodgat_jax import experiment, metrics, splits, tables
from oodgat_jax.cli import app
from oodgat_jax.methods import recipes
from oodgat_jax.records import Record, kept_metrics, latest
from oodgat_jax.registry import check_names
from oodgat_jax.tables import Row
from oodgat_jax.types import Array, Dataset, InputError, Split

FLAGS = flags.FLAGS
METHODS = ("gkde", "oodgat", "oodgat-plus")
SHARED = study_flags.TRAINING
OWN: app.Definitions = {
    "datasets": (
        flags.DEFINE_list,
        list(splits.CITATION_ID_CLASSES),
        f"Of {', '.join(splits.CITATION_ID_CLASSES)}.",
        {},
    ),
    "methods": (flags.DEFINE_list, list(METHODS), f"Of {', '.join(METHODS)}.", {}),
}
ROWS = (
    Row("GKDE, vacuity", "gkde", "vacuity", "gkde"),
    Row("GKDE, dissonance", "gkde", "dissonance"),
    Row("GKDE, aleatoric", "gkde", "aleatoric"),
    Row("GKDE, epistemic", "gkde", "epistemic"),
    Row("GKDE, differential entropy", "gkde", "differential_entropy"),
    Row("OODGAT-ENT", "oodgat", "ENT", "oodgat"),
    Row("OODGAT-ATT", "oodgat", "ATT", "oodgat"),
    Row("OODGAT+", "oodgat-plus", "FUSED+student", "oodgat"),
    Row("OODGAT+, no student", "oodgat-plus", "FUSED+fit", "oodgat"),
    Row("OODGAT+, propagated once", "oodgat-plus", "FUSED+prop", "oodgat"),
    Row("OODGAT+, ATT alone", "oodgat-plus", "ATT", "oodgat"),
)
METRICS = {
    "auroc": "AUROC",
    "aupr": "AUPR",
    "auroc_unseen": "AUROC (unseen)",
    "aupr_unseen": "AUPR (unseen)",
}
NOTE = (
    "Percent, mean ± standard deviation over {runs}, in parentheses the paper's "
    "figure; it does not say which of OODGAT's two scores it shows. A run's figure is "
    "the mean over ten draws of 1,000 nodes, from all nodes after the public train "
    "nodes as in GKDE, or (unseen) from those that are not validation nodes either: "
    "OODGAT's step is chosen on the public validation nodes, GKDE and OODGAT+ take "
    "their last."
)


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> list[Training]:
    """Returns one training per data set and method, after checking all names."""
    load = trainings.loader()
    return [
        _training(name, functools.partial(load, name), method, recipe)
        for name, method, recipe in plan(FLAGS.datasets, FLAGS.methods, FLAGS.set)
    ]


def plan(
    names: Sequence[str], methods: Sequence[str], settings: Sequence[str]
) -> list[tuple[str, str, recipes.Recipe]]:
    """Returns data set, method and recipe of each training, after checking them.

    A setting goes to the methods that have it.

    Raises:
      InputError: a name is unknown, or a setting is one to no method.
    """
    check_names("data set", names, splits.CITATION_ID_CLASSES)
    check_names("method", methods, METHODS)
    pairs = list(itertools.product(names, methods))
    chosen = [recipes.recipe(*pair, citation=True) for pair in pairs]
    chosen = recipes.override_known(chosen, settings)
    return [(*pair, recipe) for pair, recipe in zip(pairs, chosen, strict=True)]


def seeds(evaluations: int, initializations: int) -> tuple[list[int], list[int]]:
    """Returns evaluation seed and model seed of every run; all model seeds differ."""
    drawn = np.repeat(experiment.split_seeds(evaluations), initializations)
    return drawn.tolist(), list(range(len(drawn)))


def _training(name: str, load: Load, method: str, recipe: recipes.Recipe) -> Training:
    evaluation_seeds, model_seeds = seeds(FLAGS.splits, FLAGS.seeds)
    title = f"{method} on {name}"

    def run(missing: Sequence[Keys]) -> Iterable[list[Record]]:
        numbers = evaluation_seeds, model_seeds
        result = train(load(), method, recipe, *numbers, title=title)
        yield [r | {"protocol": "citation"} for r in experiment.records(result)]

    keys = {
        "dataset": name,
        "method": method,
        "hyperparameters": recipe,
        "split_seeds": evaluation_seeds,
        "model_seeds": model_seeds,
    }
    rows = [row for row in ROWS if row.method == method]
    return Training(title, [keys | {"detector": row.detector} for row in rows], run)


def train(
    dataset: Dataset,
    method: str,
    recipe: recipes.Recipe,
    evaluation_seeds: Sequence[int],
    model_seeds: Sequence[int],
    title: str,
) -> experiment.Result:
    """Trains runs of a method on the one split and measures each by its draws."""
    split = splits.draw_citation(dataset)
    found = splits.CITATION_ID_CLASSES.get(dataset.name, dataset.id_classes)
    result = trainings.execute(
        title,
        dataset._replace(id_classes=found),
        method,
        recipe,
        evaluation_seeds[:1],
        model_seeds,
        draw=lambda dataset, seed: split,
    )
    measured = {
        name: measure(scores, split, evaluation_seeds)
        for name, scores in result.scores.items()
    }
    measured = experiment.without_failed(measured, result.states)
    return result._replace(split_seeds=np.array(evaluation_seeds), metrics=measured)


def measure(
    scores: np.ndarray, split: Split, evaluation_seeds: Sequence[int]
) -> dict[str, np.ndarray]:
    """Returns AUROC and AUPR [S] of scores [S, N], each the mean over its draws.

    Those called `_unseen` are from nodes that validation did not see.
    """
    test, seen = np.asarray(split.test), np.asarray(split.val)
    pools = {"": test, "_unseen": test & ~seen}
    found: dict[str, np.ndarray] = {}
    for suffix, pool in pools.items():
        draws = [splits.evaluation_draws(pool, seed) for seed in evaluation_seeds]
        each = [
            _mean_over_draws(*run, split.is_ood)
            for run in zip(scores, draws, strict=True)
        ]
        auroc, aupr = np.array(jax.device_get(each)).T
        found |= {f"auroc{suffix}": auroc, f"aupr{suffix}": aupr}
    return found


@jax.jit
def _mean_over_draws(scores: Array, draws: Array, is_ood: Array) -> tuple[Array, Array]:
    def one(mask: Array) -> tuple[Array, Array]:
        return metrics.auroc(scores, is_ood, mask), metrics.aupr(scores, is_ood, mask)

    auroc, aupr = jax.lax.map(one, draws)
    return auroc.mean(), aupr.mean()


def known(records: Sequence[Record]) -> list[str]:
    """Returns the data sets of the records: the paper's first, in its order."""
    return paper_results.in_order([record["dataset"] for record in records], "gkde")


def draw(
    records: Sequence[Record], datasets: Sequence[str] | None = None
) -> tables.Table:
    """Draws a row per data set, all by default, and detector.

    Raises:
      InputError: there is no record of these data sets.
    """
    datasets = known(records) if datasets is None else datasets
    rows = []
    for dataset in datasets:
        for row in ROWS:
            where = {"method": row.method, "detector": row.detector}
            record = latest(records, dataset=dataset, **where)
            if record:
                rows.append([dataset, row.title, *_cells(record, row)])
    if not rows:
        raise InputError(f"There are no records of {', '.join(datasets)}.")
    best = ["max"] * len(METRICS) if len(datasets) == 1 else [""] * len(METRICS)
    header = ["Data set", "Method", *METRICS.values()]
    return tables.Table(header, rows, ["", "", *best])


def _cells(record: Record, row: Row) -> list[tables.Cell | str]:
    """Returns a cell per metric, over the runs that did not fail."""
    kept = kept_metrics(record)
    return [
        tables.result(
            kept[metric],
            paper_results.figure("gkde", row.paper, record["dataset"], metric),
        )
        if kept[metric]
        else "-"
        for metric in METRICS
    ]


STUDY = Study(
    name="gkde",
    title="Under GKDE's protocol",
    about="OODGAT beside the evidential baseline GKDE, on the public splits and with "
    "the evaluation draws of GKDE's code.",
    command="python -m experiments.gkde --out=experiments/records",
    trainings=every_training,
    tables=study.one_per_dataset(draw, known),
    page=study.single(draw),
    note=counted(NOTE),
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
