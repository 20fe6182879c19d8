"""Compares methods under the protocols of the field: GNNSafe's, GRASP's and GPN's.

  python -m experiments.field --protocol=gnnsafe --datasets=cora --shifts=label
  python -m experiments.field --protocol=gnnsafe --out=results
  python -m experiments.field --protocol=grasp --out=results
  python -m experiments.field --from_records --out=experiments/records

Data sets x shifts x methods, five runs each: AUROC, AUPR and FPR95 with ID as the
positive class, as these papers have it, and accuracy on known classes. Beside our
figures stand the published ones. A run keeps the step that known validation nodes
choose; with --choose=test also the one that test nodes would choose, which is what some
papers report. Under GNNSafe's protocol the runs are one split with five
initializations, under the others five splits, as published. Writes to --out:

  field.jsonl            one line appended per (data set, shift, method, detector)
  field.md, field.tex    the tables of all that is recorded there

Runs that are recorded there with the same settings are not trained again. Hours on two
cores for all of it. Exit code 2: the input was wrong; 1: every run failed.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import jax
import numpy as np
from absl import flags

from experiments.support import field_plan as plan
from experiments.support import field_table, study, study_flags, trainings
from experiments.support.field_plan import Cell
from experiments.support.study import Study
from experiments.support.trainings import Keys, Training
from oodgat_jax import ensembles, experiment, metrics, splits
from oodgat_jax.cli import app
from oodgat_jax.methods import recipes
from oodgat_jax.records import Record, with_seeds
from oodgat_jax.registry import check_name, check_names
from oodgat_jax.types import Dataset, Split

FLAGS = flags.FLAGS
WAYS = ("validation", "test")
OWN: app.Definitions = {
    "protocol": (
        flags.DEFINE_string,
        "gnnsafe",
        f"Whose: {', '.join(plan.PROTOCOLS)}.",
        {},
    ),
    "datasets": (
        flags.DEFINE_list,
        None,
        "Of cora, citeseer, pubmed, amazon-photo, amazon-computers, coauthor-cs; by "
        "default those of the protocol's table.",
        {},
    ),
    "shifts": (
        flags.DEFINE_list,
        list(splits.SHIFTS),
        f"Of {', '.join(splits.SHIFTS)}; only GNNSafe's protocol has the first two.",
        {},
    ),
    "methods": (
        flags.DEFINE_list,
        None,
        f"Of {', '.join(e.name for e in plan.ENTRIES)}; all by default.",
        {},
    ),
    "choose": (
        flags.DEFINE_list,
        ["validation"],
        "What chooses the step of a run: validation, test, or both.",
        {},
    ),
    "runs": (flags.DEFINE_integer, 5, "Runs of each method.", {"lower_bound": 1}),
}


@dataclasses.dataclass
class Last:
    """The last training of this command."""

    learned: tuple[Cell, recipes.Recipe] | None = None  # what it depends on
    result: experiment.Result | None = None


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> list[Training]:
    """Returns one training per cell of the table, after checking all names."""
    check_name("protocol", FLAGS.protocol, plan.PROTOCOLS)
    check_names("shift", FLAGS.shifts, splits.SHIFTS)
    check_names("way to choose", FLAGS.choose, WAYS)
    protocol = plan.PROTOCOLS[FLAGS.protocol]
    entries = {entry.name: entry for entry in plan.ENTRIES}
    names = FLAGS.methods or list(entries)
    check_names("method of this table", names, entries)
    datasets = FLAGS.datasets or protocol.datasets
    check_names("data set of this protocol", datasets, protocol.datasets)
    shifts = tuple(s for s in FLAGS.shifts if s in protocol.shifts)
    chosen = tuple(entries[name] for name in names)
    load, last = trainings.loader(), Last()
    return [
        _training(cell, recipe, load, last)
        for name in datasets
        for cell, recipe in _with_recipes(
            plan.cells(FLAGS.protocol, name, shifts, chosen, tuple(FLAGS.choose))
        )
    ]


def _with_recipes(cells: Sequence[Cell]) -> list[tuple[Cell, recipes.Recipe]]:
    """Returns cells with their recipes; a setting goes to the methods that have it."""
    found = [plan.recipe(cell) for cell in cells]
    return list(zip(cells, recipes.override_known(found, FLAGS.set), strict=True))


def _training(
    cell: Cell, recipe: recipes.Recipe, load: Callable[[str], Dataset], last: Last
) -> Training:
    protocol, definition = plan.PROTOCOLS[cell.protocol], plan.definition(cell)
    seeds = protocol.split_seeds(FLAGS.runs), protocol.model_seeds(FLAGS.runs)
    keys = {"protocol": cell.protocol, "shift": cell.shift, "chosen_by": cell.chosen_by}
    named = cell.dataset, cell.entry.name, *seeds, definition.detectors
    title = f"{cell.entry.name} on {cell.dataset}, {cell.shift} ({cell.chosen_by})"

    def run(missing: Sequence[Keys]) -> Iterable[list[Record]]:
        result = train(cell, recipe, *seeds, load, title, last)
        records = experiment.records(result)
        if plan.has_ensemble(cell, seeds[1]):
            records += _of_ensemble(result, records)
        yield [record | keys for record in records]

    wanted = [w | keys for w in trainings.wanted(recipe, *named)]
    return Training(title, wanted, run, keys)


def train(
    cell: Cell,
    recipe: recipes.Recipe,
    split_seeds: Sequence[int],
    model_seeds: Sequence[int],
    load: Callable[[str], Dataset],
    title: str,
    last: Last,
) -> experiment.Result:
    """Trains the runs of a cell and measures them, ID positive too.

    Who is not exposed learns from the same graph under every shift to another graph:
    what the last cell trained is then only scored again.
    """
    shift = plan.shifted(cell.protocol, cell.dataset, cell.shift, load)
    scored = plan.scored(cell, shift)
    learned = plan.learned(cell), recipe
    if scored is not None and last.result is not None and last.learned == learned:
        result = experiment.score_again(last.result, scored, FLAGS.kernel)
    else:
        result = trainings.execute(
            title,
            shift.exposed if cell.entry.exposed else shift.learned,
            cell.entry.name,
            recipe,
            split_seeds,
            model_seeds,
            definition=plan.definition(cell),
            draw=plan.draw_for(cell, shift.draw),
            scored_on=scored,
        )
        last.learned, last.result = learned, result
    measured = {
        name: found | _known_positive(result.scores[name], result.splits)
        for name, found in result.metrics.items()
    }
    return result._replace(metrics=experiment.without_failed(measured, result.states))


def _of_ensemble(result: experiment.Result, records: Sequence[Record]) -> list[Record]:
    """Returns the records of one ensemble of all runs, their scores averaged."""
    found = []
    for record in records:
        if record["detector"] not in plan.ENSEMBLED:
            continue
        name, size = record["detector"], len(result.model_seeds) - len(result.failed)
        (one,) = ensembles.ensembles(result, name, size, average="scores")
        split = jax.tree.map(lambda leaf: leaf[:1], result.splits)
        measured = _known_positive(one.scores[None], split)
        measured |= {metric: np.array([v]) for metric, v in one.metrics.items()}
        alone = with_seeds(record, result.model_seeds[:1].tolist())
        found.append(alone | {"method": plan.ENSEMBLE, "metrics": measured})
    return found


def _known_positive(scores: np.ndarray, drawn: Split) -> dict[str, np.ndarray]:
    """Returns AUPR and FPR95 [S] with ID as the positive class."""
    return jax.device_get(_measure(scores, drawn.is_ood, drawn.test))


@jax.jit
@jax.vmap
def _measure(scores, is_ood, test):
    known = (-scores, ~is_ood, test)
    return {"aupr_id": metrics.aupr(*known), "fpr95_id": metrics.fpr95(*known)}


STUDY = Study(
    name="field",
    title="Under the protocols of the field",
    about="Methods since GNNSafe beside OODGAT, under the protocols that papers have "
    "used since 2023, each step chosen without a look at test nodes.",
    command="python -m experiments.field --protocol=gnnsafe --choose=validation,test "
    "--out=experiments/records\n"
    "python -m experiments.field --protocol=grasp --choose=validation,test "
    "--out=experiments/records",
    trainings=every_training,
    tables=field_table.tables_of,
    note=field_table.note,
)


if __name__ == "__main__":
    shared = [name for name in study_flags.TRAINING if name not in ("splits", "seeds")]
    app.run(main, shared, OWN, goes_on=True)
