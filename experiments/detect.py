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
3: another process of a cluster was lost. Large graphs and clusters: docs/scale.md.
"""

import hashlib
import json
import pathlib
import sys
from collections.abc import Sequence

import numpy as np
from absl import flags

from experiments import (
    app,
    cluster,
    large,
    progress,
    published,
    results,
    runs,
    tables,
    whole,
)
from oodgat_jax import datasets, recipes
from oodgat_jax.checkpoints import Checkpoints
from oodgat_jax.detectors import DETECTORS
from oodgat_jax.losses import REGULARIZERS
from oodgat_jax.methods import METHODS, Method
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
SHARED = (
    *("dataset", "method", "splits", "seeds", "set", "out", "data_dir", "path"),
    *cluster.NAMES,
)
OWN: app.Definitions = {
    "detectors": (
        flags.DEFINE_list,
        None,
        f"Scores to report, if not the method's own, of {', '.join(DETECTORS)}.",
        {},
    ),
    "checkpoint_seconds": (
        flags.DEFINE_float,
        300.0,
        "Time between checkpoints, in OUT/checkpoints; the same command goes on from "
        "the last one, on any mesh.",
        {"lower_bound": 0.0},
    ),
    "terms": (
        flags.DEFINE_list,
        None,
        "Regularisers to train with, if not the method's own; an empty list for none; "
        f"of {', '.join(REGULARIZERS)}. Their weights are set by --set name=weight.",
        {},
    ),
}


def main() -> int | None:
    """Checks all input, trains, writes, prints."""
    is_large = large.is_large(FLAGS.dataset)
    known = None if is_large else FLAGS.dataset
    recipe = recipes.recipe(known, FLAGS.method, terms=FLAGS.terms)
    recipe = recipes.override(recipe, FLAGS.set)
    definition = define(FLAGS.method, FLAGS.detectors, FLAGS.terms)
    mesh = cluster.mesh()
    folder = app.out_folder(FLAGS.out)
    log = folder / "results.jsonl"
    if log.exists():
        results.read(log)  # a damaged file is better found before the training
    load = large.open_large if is_large else datasets.load
    dataset = load(FLAGS.dataset, FLAGS.data_dir)
    keep = checkpoints(folder, recipe)
    if keep.exists() and cluster.is_writer():
        print("Going on from the last checkpoint of this command.", file=sys.stderr)
    title = f"{FLAGS.method} on {FLAGS.dataset}"
    with progress.Line(title, quiet=not cluster.is_writer()) as line:
        outcome = runs.run(
            dataset,
            label(FLAGS.method, FLAGS.terms),
            recipe,
            runs.split_seeds(FLAGS.splits),
            range(FLAGS.seeds),
            definition=definition,
            path=FLAGS.path,
            mesh=mesh,
            progress=line,
            keep=keep,
        )
    if cluster.is_writer():
        _write(folder, log, outcome)
    return 1 if len(outcome.failed) == len(outcome.setting) else None


def checkpoints(folder: pathlib.Path, recipe: recipes.Recipe) -> Checkpoints:
    """Those of exactly this command, however its devices are arranged."""
    names = ("dataset", "method", "terms", "splits", "seeds")
    asked = {name: getattr(FLAGS, name) for name in names} | {"recipe": recipe}
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    return Checkpoints(folder / "checkpoints" / digest[:16], FLAGS.checkpoint_seconds)


def _write(folder: pathlib.Path, log: pathlib.Path, outcome: runs.Outcome) -> None:
    records = runs.records(outcome)
    arrays = folder / f"{outcome.dataset}-{outcome.method}.npz"
    save(arrays, outcome)
    results.append(log, *records)
    print(report(outcome, records), f"Written: {log}, {arrays}", sep="\n")
    for sentence in runs.failures(outcome):
        print(sentence, file=sys.stderr)


def define(
    method: str, detectors: Sequence[str] | None, terms: Sequence[str] | None
) -> Method:
    """The method, with other detectors or regularisers if some are given."""
    definition = METHODS[method]
    if terms is not None:
        _check_names("regulariser", terms, REGULARIZERS)
        definition = definition._replace(terms=tuple(terms))
    if detectors is not None:
        _check_names("detector", detectors, DETECTORS)
        definition = definition._replace(detectors=tuple(detectors))
    _check_attention(method, definition)
    return definition


def label(method: str, terms: Sequence[str] | None) -> str:
    """What records call the method: its name, with the terms if they are others."""
    if terms is None or tuple(terms) == METHODS[method].terms:
        return method
    return f"{method}-{'+'.join(['ce', *terms])}"


def save(path: pathlib.Path, outcome: runs.Outcome) -> None:
    """Writes predictions and scores of every run, whole or not at all."""
    splits = outcome.splits
    arrays = {
        "predictions": outcome.predictions,
        "labels": splits.labels[0],
        "is_ood": splits.is_ood[0],
        "train": splits.train,
        "val": splits.val,
        "test": splits.test,
        "split_seeds": outcome.split_seeds,
        "model_seeds": outcome.model_seeds,
    }
    arrays |= {f"scores_{name}": scores for name, scores in outcome.scores.items()}
    with whole.file(path) as file:
        np.savez_compressed(file, **arrays)


def report(outcome: runs.Outcome, records: Sequence[results.Record]) -> str:
    """The table, under a line that says what was run."""
    count = len(outcome.setting)
    noun = "run" if count == 1 else "runs"
    header = ["detector", *tables.COLUMNS.values()]
    rows = [[record["detector"], *_cells(record)] for record in records]
    text = tables.as_text(tables.Table(header, rows))
    beside = " (paper's mean)" if outcome.dataset in published.datasets() else ""
    return (
        f"{outcome.method} on {outcome.dataset}: {count} {noun}, "
        f"{outcome.states.step.sum()} steps, {outcome.seconds:.0f} s; percent, "
        f"mean ± deviation{beside}\n\n{text}"
    )


def _cells(record: results.Record) -> list[tables.Cell | str]:
    values = runs.kept(record)
    where = published.row(record["method"], record["detector"])
    return [
        tables.result(
            values[metric], published.published(*where, record["dataset"], metric)
        )
        if values[metric]
        else "-"
        for metric in tables.COLUMNS
    ]


def _check_names(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(
                f"There is no {kind} '{name}': choose from {', '.join(known)}."
            )
    if len(set(names)) < len(names):
        raise InputError(f"A {kind} is named twice: name each once.")


def _check_attention(method: str, definition: Method) -> None:
    """OOD attention is what only OODGAT's backbone has."""
    if definition.backbone == "oodgat":
        return
    wanting = [name for name in definition.detectors if name.startswith("ATT")]
    if wanting or definition.terms:
        what = ", ".join([*wanting, *definition.terms])
        raise InputError(f"{what} needs OOD attention, which method {method} lacks.")


if __name__ == "__main__":
    app.run(main, SHARED, OWN)
