"""What it costs to have no OOD label: the classifier's choices beside the oracle's.

  python -m experiments.no_ood_labels --datasets=cora,digits
  python -m experiments.no_ood_labels --from_records --out=experiments/records

OODGATClassifier gets the labels of each split's train nodes and of its known validation
nodes, which it holds out, and nothing of the others. Measured on the test nodes are its
AUROC and, for each way to choose a threshold, the joint F1, the known nodes kept and
the unknown ones found. The oracle's threshold is the best one for the test nodes.
Writes to the folder --out:

  no_ood_labels.jsonl    one line appended per data set, one value per split
  no_ood_labels.md       the table

What is recorded there with the same settings is not trained again.
"""

import sys
import time

import jax
import numpy as np
from absl import flags
from sklearn.metrics import f1_score

from experiments.support import main_table, no_ood_labels_table
from oodgat_jax import atomic_files, datasets, experiment, metrics, splits
from oodgat_jax.cli import app, progress
from oodgat_jax.estimator import OODGATClassifier
from oodgat_jax.estimator.classifier import Answer
from oodgat_jax.estimator.thresholds import THRESHOLDS
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import Record, append_records, latest, read_records, versions
from oodgat_jax.types import Dataset, InputError, Split

FLAGS = flags.FLAGS
SHARED = ("datasets", "method", "splits", "seeds", "out", "data_dir", "from_records")
FILE = "no_ood_labels.jsonl"


def main() -> None:
    """Trains what is missing, then draws."""
    folder = app.out_folder(FLAGS.out)
    log = folder / FILE
    known = read_records(log) if log.exists() or FLAGS.from_records else []
    if not FLAGS.from_records:
        for name in FLAGS.datasets:
            recipe = recipes.recipe(name, FLAGS.method)
            if _recorded(known, name, recipe):
                print(f"{name} is recorded already.", file=sys.stderr)
                continue
            dataset = datasets.load(name, FLAGS.data_dir)
            record = measure(dataset, FLAGS.method, recipe, FLAGS.splits, FLAGS.seeds)
            append_records(log, record)
            known.append(record)
    labelled = folder / main_table.FILE
    beside = read_records(labelled) if labelled.exists() else []
    print(no_ood_labels_table.text(known, beside))
    page = no_ood_labels_table.markdown(known, beside)
    atomic_files.text(folder / "no_ood_labels.md", page)
    print(f"Written: {log}, {folder / 'no_ood_labels.md'}")


def measure(
    dataset: Dataset, method: str, recipe: recipes.Recipe, count: int, members: int
) -> Record:
    """One record, with a value per split."""
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
        "versions": versions(),
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
    areas = [
        float(metrics.auroc(scores, split.is_ood, split.test))
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
    """Joint F1, share of known nodes kept, share of unknown ones found, in the test."""
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


def _recorded(records, dataset: str, recipe: recipes.Recipe) -> bool:
    wanted = {
        "dataset": dataset,
        "method": FLAGS.method,
        "members": FLAGS.seeds,
        "split_seeds": list(experiment.split_seeds(FLAGS.splits)),
        "hyperparameters": recipe,
    }
    return latest(records, **wanted) is not None


if __name__ == "__main__":
    app.run(main, SHARED, goes_on=True)
