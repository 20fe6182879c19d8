"""Shows that OODGAT+ does not lock in: every run counts, and every part is left out.

  python -m experiments.robust --stage=development --datasets=cora,digits
  python -m experiments.robust --stage=partitions --datasets=cora,digits
  python -m experiments.robust --stage=paper
  python -m experiments.robust --stage=fresh
  python -m experiments.robust --from_records --out=experiments/records

Stages, in this order; the settings of OODGAT+ are frozen after the first:

  development  splits 20, 21, 22, judged on nodes that are in no part of these splits;
               OODGAT+ with each part left out, and with each part alone
  settings     OODGAT+ with other learning rates, decays, heads and widths, likewise
  partitions   ten random choices of known classes, which hold 30 to 70 % of the nodes
  paper        splits 123, 1, 2 with seeds 0, 1, 2, on test nodes
  fresh        splits 10 to 14 with seeds 0, 1, 2, on test nodes
  ensembles    splits 123, 1, 2 with nine seeds each, on test nodes: mean ranks of 3, 5
               and 9 members, with and without those that disagree with the others

GAT is scored by the detector that is best on the validation nodes of a run. Writes to
the folder --out:

  robust.jsonl             one line appended per (stage, data set, variant, detector)
  robust.md, robust.tex    the tables
  robust-STAGE.pdf, .png   every run as a dot

What is recorded there with the same settings is not trained again. A stage takes from
a minute (digits) to about an hour (Amazon-Computers) on two cores.
"""

import datetime
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np
from absl import flags

from experiments.support import (
    robust_ensembles,
    robust_tables,
    study,
    study_flags,
    trainings,
)
from experiments.support.robust_variants import (
    ALONE,
    CHANGED,
    DETECTORS,
    LEFT_OUT,
    MAIN,
    VARIANTS,
    Variant,
)
from experiments.support.study import Study
from experiments.support.trainings import Keys, Load, Training
from oodgat_jax import experiment, metrics, splits
from oodgat_jax.cli import app
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.registry import check_name, check_names
from oodgat_jax.types import Dataset, Split

FLAGS = flags.FLAGS
PARTITIONS = 10
CHOSEN_FROM = (*MAIN, *LEFT_OUT, *ALONE)
PAPER = ("cora", "amazon-computers", "amazon-photo", "coauthor-cs", "digits")


class Stage(NamedTuple):
    """Seeds of splits and models, which rows are trained, and how splits are drawn."""

    split_seeds: tuple[int, ...]
    model_seeds: tuple[int, ...]
    rows: Sequence[Variant] = MAIN
    draw: Callable[[Dataset, int], Split] = splits.draw


STAGES = {
    "development": Stage((20, 21, 22), (0,), CHOSEN_FROM, splits.draw_development),
    "settings": Stage((20, 21, 22), (0,), CHANGED, splits.draw_development),
    "partitions": Stage((20,), (0,)),
    "paper": Stage((123, 1, 2), (0, 1, 2)),
    "fresh": Stage((10, 11, 12, 13, 14), (0, 1, 2)),
    robust_ensembles.STAGE: Stage((123, 1, 2), tuple(range(9)), robust_ensembles.ROWS),
}
SHARED = ("out", "data_dir", "kernel", "from_records")
OWN: app.Definitions = {
    **study_flags.several_datasets(PAPER),
    "stage": (flags.DEFINE_string, "paper", f"Of {', '.join(STAGES)}.", {}),
    "rows": (
        flags.DEFINE_list,
        None,
        "Those to train, if not the stage's: of "
        f"{', '.join(variant.title for variant in VARIANTS)}.",
        {},
    ),
}

_areas = jax.jit(jax.vmap(metrics.auroc))  # of every run


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> Iterator[Training]:
    """Yields one training per problem and method, after checking all names."""
    check_name("stage", FLAGS.stage, STAGES)
    stage = STAGES[FLAGS.stage]
    known = {variant.title: variant for variant in VARIANTS}
    check_names("row", FLAGS.rows or (), known)
    rows = [known[title] for title in FLAGS.rows] if FLAGS.rows else stage.rows
    load = trainings.loader()
    names = study_flags.dataset_names(FLAGS.datasets, PAPER, FLAGS.data_dir)
    for name in names:
        for problem, wanted in _problems(functools.partial(load, name)):
            for method, off in dict.fromkeys((row.method, row.off) for row in rows):
                yield _training(stage, name, problem, wanted, method, off)


def _problems(load: Load) -> Iterator[tuple[tuple[int, ...], Load]]:
    """Yields known classes, and the data set with them known."""
    if FLAGS.stage != "partitions":
        yield tuple(load().id_classes), load
        return
    for dataset in splits.random_partitions(load(), PARTITIONS):
        yield dataset.id_classes, functools.partial(lambda same: same, dataset)


def _training(
    stage: Stage,
    name: str,
    known: tuple[int, ...],
    load: Load,
    method: str,
    off: tuple[str, ...],
) -> Training:
    row = Variant("", method, off)
    recipe = recipes.recipe(name, method)
    title = f"{method} on {name}, {FLAGS.stage}" + (f", no {off}" if off else "")
    return trainings.of_method(
        title,
        name,
        load,
        method,
        recipe | row.settings,
        keys={"stage": FLAGS.stage, "known": list(known), "off": list(off)},
        definition=METHODS[method]._replace(detectors=tuple(DETECTORS[method])),
        further=_judged,
        numbers=(stage.split_seeds, stage.model_seeds),
        draw=stage.draw,
    )


def _judged(result: experiment.Result, detector: str) -> Keys:
    """Returns the AUROC on validation nodes of every run, and when this was.

    Of the stage ensembles, also what the runs of a split say together.
    """
    found = _areas(result.scores[detector], result.splits.is_ood, result.splits.val)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    keys = {"validation_auroc": np.asarray(found).tolist(), "made": now}
    if FLAGS.stage == robust_ensembles.STAGE:
        keys["ensembles"] = robust_ensembles.together(result, detector)
    return keys


STUDY = Study(
    name="robust",
    title="OODGAT+",
    about="OODGAT with its fault mended, beside OODGAT and the best detector on GAT: "
    "worst runs, and each part left out.",
    command="python -m experiments.robust --stage=paper --out=experiments/records",
    trainings=every_training,
    tables=robust_tables.draw,
    figures=robust_tables.figures,
    note=robust_tables.note,
    figure_caption="AUROC of every run (dots) and their mean (bar): {}",
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
