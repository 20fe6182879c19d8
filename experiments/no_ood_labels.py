"""Measures what it costs to have no OOD label, beside an oracle's choices.

  python -m experiments.no_ood_labels --datasets=cora,digits --method=oodgat-plus
  python -m experiments.no_ood_labels --from_records --out=experiments/records

OODGATClassifier gets the labels of each split's train nodes and of its known validation
nodes, which it holds out, and nothing of the others. Measured on the test nodes are its
AUROC and, for each way to choose a threshold, the joint F1, the known nodes kept and
the unknown ones found. The oracle's threshold is the best one for the test nodes.
Writes to the folder --out:

  no_ood_labels.jsonl                  one line appended per data set, one value per
                                       split
  no_ood_labels.md, no_ood_labels.tex  the table

What is recorded there with the same settings is not trained again.
"""

import time
from collections.abc import Iterable, Sequence

import jax
import numpy as np
from absl import flags
from sklearn.metrics import f1_score

from experiments import end_to_end
from experiments.support import paper_results, study
from experiments.support.study import Study
from experiments.support.trainings import Keys, Training
from oodgat_jax import datasets, experiment, metrics, splits, tables
from oodgat_jax.cli import app, progress
from oodgat_jax.estimator import OODGATClassifier
from oodgat_jax.estimator.classifier import Answer
from oodgat_jax.estimator.thresholds import THRESHOLDS
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import Record, latest, made_by
from oodgat_jax.types import Dataset, InputError, Split

FLAGS = flags.FLAGS
SHARED = ("datasets", "method", "splits", "seeds", "out", "data_dir", "from_records")
COLUMNS = {
    "auroc_member": "AUROC",
    "auroc": "AUROC, ensemble",
    "f1_oracle": "F1, oracle",
    "f1_quantile": "F1, quantile",
    "kept_quantile": "known kept",
    "found_quantile": "unknown found",
    "f1_mixture": "F1, mixture",
    "kept_mixture": "known kept",
    "found_mixture": "unknown found",
}
HEADER = ["Data set", "Method", "AUROC, OOD labels"]
NOTE = (
    "Percent, mean ± standard deviation over {splits} splits, {members} members each. "
    "The first column is the AUROC of the main table with the same splits and settings "
    "(the authors'), where the step is chosen with labeled OOD nodes (oodgat-plus "
    "chooses none); the second that of single members whose step is chosen without, "
    "the third that of their mean. Joint F1 and shares of test nodes are at a "
    "threshold: the best for the test nodes (oracle), the score that 95 % of held-out "
    "known nodes do not exceed (quantile), and where two normal distributions fitted "
    "to the unlabeled scores are even (mixture)."
)


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> list[Training]:
    """Returns one training per data set."""
    return [_training(name, FLAGS.method) for name in FLAGS.datasets]


def _training(name: str, method: str) -> Training:
    recipe = recipes.recipe(name, method)
    keys = {
        "dataset": name,
        "method": method,
        "detector": METHODS[method].validated_by,
        "members": FLAGS.seeds,
        "split_seeds": list(experiment.split_seeds(FLAGS.splits)),
        "hyperparameters": recipe,
    }

    def run(missing: Sequence[Keys]) -> Iterable[list[Record]]:
        dataset = datasets.load(name, FLAGS.data_dir)
        yield [measure(dataset, method, recipe, FLAGS.splits, FLAGS.seeds)]

    return Training(name, [keys], run)


def measure(
    dataset: Dataset, method: str, recipe: recipes.Recipe, count: int, members: int
) -> Record:
    """Trains and returns one record, with a value per split."""
    seeds = experiment.split_seeds(count)
    drawn = [splits.draw(dataset, seed) for seed in seeds]
    began = time.perf_counter()
    found = []
    for number, split in enumerate(drawn, start=1):
        title = f"{method} on {dataset.name}, split {number} of {count}"
        with progress.Line(title) as line:
            found.append(_one(dataset, method, recipe, split, members, line))
    return {
        "dataset": dataset.name,
        "method": method,
        "detector": METHODS[method].validated_by,
        "metrics": {name: [values[name] for values in found] for name in found[0]},
        "split_seeds": list(seeds),
        "model_seeds": [0] * count,
        "members": members,
        "steps_run": [recipe["max_steps"]] * count,
        "hyperparameters": recipe,
        "split_digest": splits.digest(splits.stack(drawn)),
        **made_by(),
        "devices": [device.device_kind for device in jax.local_devices()],
        "seconds": round(time.perf_counter() - began, 3),
    }


def _one(dataset, method, recipe, split: Split, members, line) -> dict[str, float]:
    held_out = split.val & ~split.is_ood
    labels = np.where(split.train | held_out, split.labels, -1)
    edges = np.stack([dataset.senders, dataset.receivers], 1)
    model = OODGATClassifier(method, members=members, settings=recipe, directed=True)
    model.fit(dataset.features, edges, labels, validation=held_out, progress=line)
    answer = model.answer()
    area = jax.jit(metrics.auroc)
    areas = [
        float(area(scores, split.is_ood, split.test))
        for scores in (answer.score, *answer.member_scores)
    ]
    values = {"auroc": areas[0], "auroc_member": float(np.mean(areas[1:]))}
    values["f1_oracle"] = max(
        _decision(answer, split, threshold)["f1"]
        for threshold in np.quantile(answer.score[split.test], np.linspace(0, 1, 200))
    )
    for name, choose in THRESHOLDS.items():
        try:
            threshold = choose(
                answer.score[held_out], answer.score[labels < 0], model.keep
            )
        except InputError:  # no such threshold for these scores
            threshold = np.nan
        decided = _decision(answer, split, threshold)
        values |= {f"{key}_{name}": value for key, value in decided.items()}
    return values


def _decision(answer: Answer, split: Split, threshold: float) -> dict[str, float]:
    """Returns joint F1 and the shares of test nodes kept and found at a threshold."""
    if np.isnan(threshold):
        return dict.fromkeys(("f1", "kept", "found"), np.nan)
    unknown = (answer.score > threshold)[split.test]
    classes = answer.probabilities.argmax(1)[split.test]
    joint = np.where(unknown, answer.probabilities.shape[1], classes)
    is_ood = split.is_ood[split.test]
    return {
        "f1": float(f1_score(split.labels[split.test], joint, average="weighted")),
        "kept": float(1 - unknown[~is_ood].mean()),
        "found": float(unknown[is_ood].mean()),
    }


def draw(records: Sequence[Record], labeled: Sequence[Record]) -> tables.Table:
    """Draws a row per data set and method, beside choices with OOD labels."""
    rows, found = [], {(r["dataset"], r["method"]): r for r in records}
    for dataset in paper_results.in_order([dataset for dataset, _ in found]):
        for method in sorted(method for name, method in found if name == dataset):
            record = found[dataset, method]
            same = ("dataset", "method", "detector", "hyperparameters")
            beside = latest(labeled, **{key: record[key] for key in same})
            first = tables.result(beside["metrics"]["auroc"]) if beside else ""
            cells = [_cell(record["metrics"][name]) for name in COLUMNS]
            rows.append([dataset, method, first, *cells])
    return tables.Table([*HEADER, *COLUMNS.values()], rows)


def note(records: Sequence[Record], labeled: Sequence[Record] = ()) -> str:
    """Returns the note below the table."""
    record = records[-1]
    return NOTE.format(splits=len(record["split_seeds"]), members=record["members"])


def _cell(values: Sequence[float]) -> tables.Cell | str:
    whole = [value for value in values if not np.isnan(value)]
    return tables.result(whole) if whole else "none"


STUDY = Study(
    name="no_ood_labels",
    title="Without OOD labels",
    about="What `OODGATClassifier` loses by choosing its step and its threshold "
    "without a single OOD label.",
    command="python -m experiments.no_ood_labels --out=experiments/records \\\n"
    "    --datasets=cora,amazon-computers,amazon-photo,coauthor-cs,digits\n"
    "python -m experiments.no_ood_labels --out=experiments/records \\\n"
    "    --datasets=cora,amazon-computers,amazon-photo,coauthor-cs,digits \\\n"
    "    --method=oodgat-plus",
    trainings=every_training,
    tables=study.single(draw),
    note=note,
    caption="Choices with and without",
    beside=(end_to_end.STUDY,),
)


if __name__ == "__main__":
    app.run(main, SHARED, goes_on=True)
