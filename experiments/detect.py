"""Trains a method on a data set and measures how well it finds the OOD nodes.

  python -m experiments.detect
  python -m experiments.detect --dataset=cora --method=gcn --splits=3 --seeds=3
  python -m experiments.detect --dataset=generated-20000-200000 --mesh=graph:4
  python -m experiments.detect --set lr=0.02 --set max_steps=200 --out=/tmp/trial

Prints a table: mean ± standard deviation over all runs (every split with every seed),
in percent, one row per detector. Writes to the folder --out:

  results.jsonl           one line appended per (data set, method, detector)
  DATASET-METHOD.npz      of every run [S]: predictions [S, N] and, per detector,
                          scores_NAME [S, N], higher = more OOD; the splits
                          (train, val, test [S, N]), labels [N] (OOD: C), is_ood [N]

The paper's nine runs are --splits=3 --seeds=3, the default. AUROC to expect: 96 for
ATT on digits and 80 for --method=mlp, 94 for ATT on Cora, where the paper has 93.6.
Minutes on two cores for both. Exit code 2: the input was wrong; 1: every run failed;
3: another process of a cluster was lost; 130 and 143: stopped by a signal, after a
checkpoint from which the same command continues. Large graphs, clusters: docs/scale.md.
"""

import contextlib
import hashlib
import json
import math
import pathlib
import sys
from typing import Any

import numpy as np
from absl import flags

from experiments.support import paper_results
from oodgat_jax import atomic_files, experiment
from oodgat_jax.cli import app, cluster, progress
from oodgat_jax.datasets import streaming
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import (
    Record,
    append_records,
    check_appendable,
    read_records,
)
from oodgat_jax.training import Checkpoints
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
SHARED = (
    *("dataset", "method", "splits", "seeds", "set", "out", "data_dir", "kernel"),
    *cluster.NAMES,
)
OWN: app.Definitions = {
    "detectors": (
        flags.DEFINE_list,
        None,
        "Scores to report, if not the method's own, of {DETECTORS}.",
        {},
    ),
    "checkpoint_seconds": (
        flags.DEFINE_float,
        300.0,
        "Time between checkpoints, in OUT/checkpoints; the same command continues from "
        "the last one, on any mesh.",
        {"lower_bound": 0.0},
    ),
    "regularizers": (
        flags.DEFINE_list,
        None,
        "Regularizers to train with, if not the method's own; an empty list for none; "
        "of {REGULARIZERS}. Their weights are set by --set name=weight.",
        {},
    ),
}


def main() -> int | None:
    """Checks all input, trains, writes, prints."""
    base = METHODS[FLAGS.method]
    definition = experiment.define(base, FLAGS.detectors, FLAGS.regularizers)
    known = None if streaming.is_streamed(FLAGS.dataset) else FLAGS.dataset
    recipe = recipes.override(recipes.recipe(known, definition), FLAGS.set)
    if math.isnan(FLAGS.checkpoint_seconds):
        raise InputError("--checkpoint_seconds must be a number, not nan.")
    mesh = cluster.mesh()
    folder = app.out_folder(FLAGS.out)
    log = folder / "results.jsonl"
    title = experiment.label(FLAGS.method, base, FLAGS.regularizers)
    if cluster.is_writer():
        check_appendable(log)
        atomic_files.check(folder / f"{FLAGS.dataset}-{title}.npz")
    if log.exists():
        read_records(log)  # a damaged file is better found before the training
    dataset = experiment.open_dataset(FLAGS.dataset, FLAGS.data_dir)
    saved = checkpoints(folder, recipe)
    if saved.exists() and cluster.is_writer():
        print("Continuing from the last checkpoint of this command.", file=sys.stderr)
    doing = f"{FLAGS.method} on {FLAGS.dataset}"
    with progress.Line(doing, quiet=not cluster.is_writer()) as line:
        result = experiment.execute(
            dataset,
            title,
            recipe,
            experiment.split_seeds(FLAGS.splits),
            range(FLAGS.seeds),
            definition=definition,
            kernel=FLAGS.kernel,
            mesh=mesh,
            progress=line,
            checkpoints=saved,
        )
    if cluster.is_writer():
        with contextlib.suppress(OSError):
            (folder / "checkpoints").rmdir()  # unless others have some there
        _write(folder, log, result)
    return 1 if len(result.failed) == len(result.setting) else None


def checkpoints(folder: pathlib.Path, recipe: recipes.Recipe) -> Checkpoints:
    """Returns the checkpoints of exactly this command, on whatever devices."""
    names = ("dataset", "method", "regularizers", "splits", "seeds")
    asked = {name: getattr(FLAGS, name) for name in names} | {"recipe": recipe}
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    place = folder / "checkpoints" / digest[:16]
    return Checkpoints(place, FLAGS.checkpoint_seconds, app.tell)


def _write(folder: pathlib.Path, log: pathlib.Path, result: experiment.Result) -> None:
    arrays = folder / f"{result.dataset}-{result.method}.npz"
    save(arrays, result)
    append_records(log, *experiment.records(result))
    print(report(result), f"Written: {log}, {arrays}", sep="\n")
    for sentence in experiment.failures(result):
        print(sentence, file=sys.stderr)


def save(path: pathlib.Path, result: experiment.Result) -> None:
    """Writes predictions and scores of every run, whole or not at all."""
    splits = result.splits
    arrays: dict[str, Any] = {
        "predictions": result.predictions,
        "labels": splits.labels[0],
        "is_ood": splits.is_ood[0],
        "train": splits.train,
        "val": splits.val,
        "test": splits.test,
        "split_seeds": result.split_seeds,
        "model_seeds": result.model_seeds,
    }
    arrays |= {f"scores_{name}": scores for name, scores in result.scores.items()}
    with atomic_files.file(path) as file:
        np.savez_compressed(file, **arrays)


def report(result: experiment.Result) -> str:
    """Returns the table, with the paper's figures beside ours where it has some."""
    in_paper = result.dataset in paper_results.datasets()
    return experiment.table(result, _paper, " (paper's mean)" if in_paper else "")


def _paper(record: Record, metric: str) -> float | None:
    where = paper_results.row(record["method"], record["detector"])
    return paper_results.figure(*where, record["dataset"], metric)


if __name__ == "__main__":
    app.run(main, SHARED, OWN)
