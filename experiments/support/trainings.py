"""Trains what is not recorded yet, and records it.

A study changes one thing at a time: the edges of a graph, the regularizers, a weight.
What it changed is in its records under keys of its own, beside those that all records
have.
"""

import functools
import itertools
import pathlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from absl import flags

from oodgat_jax import datasets, experiment, source_digest, splits
from oodgat_jax.cli import progress
from oodgat_jax.losses import REGULARIZERS
from oodgat_jax.methods import METHODS, Method, recipes
from oodgat_jax.records import (
    Record,
    append_lines,
    append_records,
    latest,
    read_lines,
    read_records,
    with_seeds,
)
from oodgat_jax.types import Dataset, Split

FLAGS = flags.FLAGS

Keys = dict[str, Any]  # what a record says under some of its keys
Seeds = tuple[Sequence[int], Sequence[int]]  # of splits and of models
Load = Callable[[], Dataset]
Further = Callable[[experiment.Result, str], Keys]


class Format(NamedTuple):
    """How a study's file is read and appended to."""

    read: Callable[[pathlib.Path], list[Record]]
    append: Callable[..., None]


RECORDS = Format(read_records, append_records)
LINES = Format(read_lines, append_lines)  # of any keys


class Training(NamedTuple):
    """Trains a method on a (changed) data set and makes records of it.

    `run` gets those of `wanted` that are missing and returns their records in batches,
    each of which is appended before the next is made.
    """

    title: str
    wanted: Sequence[Keys]  # one per record
    run: Callable[[Sequence[Keys]], Iterable[Sequence[Record]]]
    keys: Keys | None = None  # those of `wanted` that other studies' records lack
    elsewhere: Keys | None = None  # what those say instead; None: not to be taken
    format: Format = RECORDS


def complete(
    log: pathlib.Path,
    trainings: Iterable[Training],
    beside: pathlib.Path | None = None,
) -> int | None:
    """Trains what the log lacks, one training after the other, and appends it.

    Args:
      log: the records of the study.
      trainings: all that the study needs.
      beside: records of another study to copy from; they may have more model seeds.

    Returns:
      1 if every run of every training failed, else None: a binary's exit code.
    """
    failed = []
    for training in trainings:
        taken = beside is not None and _take(log, training, beside)
        missing = lacking(log, training)
        failed.append(bool(missing) and _run(log, training, missing))
        if not missing:
            origin = f"taken from {beside}" if taken else "recorded already"
            print(f"{training.title} is {origin}.", file=sys.stderr)
    return 1 if failed and all(failed) else None


def of_method(
    title: str,
    dataset: str,
    load: Load,
    method: str,
    recipe: recipes.Recipe,
    *,
    keys: Keys | None = None,
    definition: Method | None = None,
    hypers: Sequence[dict[str, recipes.Value]] = ({},),
    unchanged: bool = False,
    further: Further | None = None,
    numbers: Seeds | None = None,
    draw: Callable[[Dataset, int], Split] = splits.draw,
) -> Training:
    """Returns the training of a method.

    Args:
      title: shown on the progress line.
      dataset: its name in records.
      load: returns the data set; called only if something is missing.
      method: its name in records.
      recipe: of the method.
      keys: what tells its records from others with the same settings.
      definition: the method, if it is not the one of that name.
      hypers: floats that replace the recipe's, one program for all.
      unchanged: whether the main table may have the same runs.
      further: (result, detector) -> more keys of a record.
      numbers: seeds of splits and models, if they are not those of the flags.
      draw: the protocol of the splits.
    """
    definition, keys = definition or METHODS[method], keys or {}
    settings, numbers = [recipe | hyper for hyper in hypers], numbers or seeds()
    same = dataset, method, *numbers, definition.detectors
    needed = [w for setting in settings for w in wanted(setting, *same)]

    def run(missing: Sequence[Keys]) -> Iterable[list[Record]]:
        lacking = [w["hyperparameters"] for w in missing]
        pairs = zip(hypers, settings, strict=True)
        chosen = [hyper for hyper, setting in pairs if setting in lacking]
        options: dict[str, Any] = {"hypers": chosen, "definition": definition}
        result = execute(title, load(), method, recipe, *numbers, draw=draw, **options)
        records = [record | keys for record in experiment.records(result)]
        if further:
            records = [r | further(result, r["detector"]) for r in records]
        yield records

    elsewhere = {"regularizers": list(definition.regularizers)} if unchanged else None
    return Training(title, [w | keys for w in needed], run, keys, elsewhere)


def execute(
    title: str,
    dataset: Dataset,
    method: str,
    recipe: recipes.Recipe,
    split_seeds: Sequence[int],
    model_seeds: Sequence[int],
    **options: Any,
) -> experiment.Result:
    """Trains under a progress line and names the runs that failed.

    The options are those of `experiment.execute`.
    """
    options = {"kernel": FLAGS.kernel} | options
    with progress.Line(title) as line:
        result = experiment.execute(
            dataset, method, recipe, split_seeds, model_seeds, progress=line, **options
        )
    for sentence in experiment.failures(result):
        print(sentence, file=sys.stderr)
    return result


def seeds() -> Seeds:
    """Returns the split seeds of --splits and the model seeds of --seeds."""
    return experiment.split_seeds(FLAGS.splits), tuple(range(FLAGS.seeds))


def recipe(name: str, method: str) -> recipes.Recipe:
    """Returns the recipe of a method on a data set, with the settings of --set."""
    return recipes.override(recipes.recipe(name, method), FLAGS.set)


def loader() -> Callable[[str], Dataset]:
    """Returns a function that loads data sets by name and remembers the last one."""
    load = functools.lru_cache(maxsize=1)(datasets.load)
    return lambda name: load(name, FLAGS.data_dir)


def wanted(
    recipe: recipes.Recipe,
    dataset: str,
    method: str,
    split_seeds: Sequence[int],
    model_seeds: Sequence[int],
    detectors: Sequence[str],
) -> list[Keys]:
    """Returns what the records of a setting say, every split with every seed."""
    runs = zip(*itertools.product(split_seeds, model_seeds), strict=True)
    keys = {"dataset": dataset, "method": method, "hyperparameters": recipe}
    keys |= dict(zip(("split_seeds", "model_seeds"), map(list, runs), strict=True))
    return [keys | {"detector": detector} for detector in detectors]


def find(records: Sequence[Record], wanted: Sequence[Keys]) -> list[Record]:
    """Returns the latest record of each; none at all unless every one is there."""
    found = [r for keys in wanted if (r := latest(records, **keys)) is not None]
    return found if len(found) == len(wanted) else []


def lacking(log: pathlib.Path, training: Training, stale: bool = False) -> list[Keys]:
    """Returns what a training needs and a log lacks; stale records may count."""
    records = read(log, training.format, stale)
    return [keys for keys in training.wanted if not find(records, [keys])]


def read(
    path: pathlib.Path, format: Format = RECORDS, stale: bool = False
) -> list[Record]:
    """Returns the records of a file that count, [] if there is no file.

    Under --accept_stale=false, which `experiments.paper` alone has, those of other
    code do not, unless `stale` says so.
    """
    found = format.read(path) if path.exists() else []
    if not stale and not getattr(FLAGS, "accept_stale", True):
        found = [r for r in found if r.get("code") == source_digest.digest()]
    return [_as_now(record) for record in found]


def _as_now(record: Record) -> Record:
    """Drops settings of regularizers that the record lacks, which old ones list."""
    if "regularizers" not in record:
        return record
    used = set(record["regularizers"])
    hypers = [(name in used, term.hyper) for name, term in REGULARIZERS.items()]
    mine = {key for is_used, hyper in hypers if is_used for key in hyper}
    others = {key for is_used, hyper in hypers if not is_used for key in hyper} - mine
    settings = record["hyperparameters"].items()
    return record | {"hyperparameters": {k: v for k, v in settings if k not in others}}


def _take(log: pathlib.Path, training: Training, beside: pathlib.Path) -> bool:
    """Copies missing settings that other records have whole; returns if it did."""
    if training.elsewhere is None:
        return False
    others = [with_seeds(record, seeds()[1]) for record in read(beside)]
    missing, taken = lacking(log, training), []
    settings = [keys["hyperparameters"] for keys in missing]
    for setting in [s for n, s in enumerate(settings) if s not in settings[:n]]:
        mine = [keys for keys in training.wanted if keys["hyperparameters"] == setting]
        taken += find(others, [_there(training, keys) for keys in mine])
    if taken:
        append_records(log, *(record | (training.keys or {}) for record in taken))
    return bool(taken)


def _there(training: Training, keys: Keys) -> Keys:
    own = training.keys or {}
    kept = {name: value for name, value in keys.items() if name not in own}
    return kept | (training.elsewhere or {})


def _run(log: pathlib.Path, training: Training, missing: Sequence[Keys]) -> bool:
    """Trains and records what is missing; says whether every run failed."""
    every = True
    for records in training.run(missing):
        training.format.append(log, *records)
        every &= all(_failed(record) for record in records)
    return every


def _failed(record: Record) -> bool:
    """Returns whether every run of a record failed."""
    failed = len(record.get("failed_runs", ()))
    return failed > 0 and failed == len(record["split_seeds"])
