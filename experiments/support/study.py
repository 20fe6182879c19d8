"""The trainings of an analysis: what is not recorded yet is trained and recorded.

An analysis changes one thing at a time: the edges of a graph, the terms of a loss, a
weight. What it changed stands in its records under keys of its own, beside what all
records have.
"""

import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags
from matplotlib.figure import Figure

from experiments.support import figures, main_table
from oodgat_jax import experiment, tables
from oodgat_jax.cli import progress
from oodgat_jax.methods import METHODS, Method, recipes
from oodgat_jax.records import (
    Record,
    append_records,
    read_records,
    recorded,
    with_seeds,
)
from oodgat_jax.types import Dataset

FLAGS = flags.FLAGS
SHARED = ("splits", "seeds", "set", "out", "data_dir", "kernel", "from_records")

Further = Callable[[experiment.Result, str], Mapping[str, Any]]


class Training(NamedTuple):
    """A method on a (changed) data set, on all splits and seeds of the flags."""

    title: str  # on the progress line
    dataset: Dataset
    method: str
    recipe: recipes.Recipe
    keys: Mapping[str, Any]  # what tells its records from others of the same settings
    definition: Method | None = None  # if it is not the method of that name
    hypers: Sequence[Mapping[str, float]] = ({},)  # settings in one program
    unchanged: bool = False  # the graph is the data set's own, as in the main table


def recipe(name: str, method: str) -> recipes.Recipe:
    """The recipe of a method on a data set, with the settings of --set."""
    return recipes.override(recipes.recipe(name, method), FLAGS.set)


def recipes_of(
    chosen: Sequence[tuple[str, str, Sequence[str] | None]],
) -> list[recipes.Recipe]:
    """Of (data set, method, terms) each, with the settings of --set where known."""
    found = [recipes.recipe(name, method, regularizers=t) for name, method, t in chosen]
    return recipes.override_known(found, FLAGS.set)


def train(
    log: pathlib.Path, trainings: Sequence[Training], further: Further | None = None
) -> None:
    """Trains what the log lacks, one after the other, and appends it there.

    Of an unchanged graph, what the main table's records in the same folder have, with
    these seeds or more, is taken from them, unless `further` is given: more keys, from
    an outcome and the name of a detector.
    """
    for training in trainings:
        if training.unchanged and further is None:
            _borrow(log, training)
        missing = _missing(_read(log), training)
        if not missing:
            print(f"{training.title} is recorded already.", file=sys.stderr)
            continue
        outcome = _train(training, missing)
        records = [record | training.keys for record in experiment.records(outcome)]
        if further:
            records = [r | further(outcome, r["detector"]) for r in records]
        append_records(log, *records)


def show(
    folder: pathlib.Path,
    name: str,
    table: tables.Table | None = None,
    note: str = "",
    drawn: Mapping[str, Figure] | None = None,
) -> None:
    """Prints a table and its note, writes both and the figures, and says where.

    Args:
      folder: where NAME.jsonl is, and all is written.
      name: of the analysis.
      table: if it has one.
      note: what the table's figures are.
      drawn: the end of a file's name -> figure.
    """
    paths = [folder / f"{name}.jsonl"]
    if table is not None:
        print(tables.as_text(table), note, sep="\n")
        paths += tables.write(folder, name, table, note)
    for title, figure in (drawn or {}).items():
        paths += figures.save(figure, folder, f"{name}-{title}")
    for path in paths:
        print(f"Written: {path}")


def _train(
    training: Training, hypers: Sequence[Mapping[str, float]]
) -> experiment.Result:
    with progress.Line(training.title) as line:
        outcome = experiment.execute(
            training.dataset,
            training.method,
            training.recipe,
            *_seeds(),
            hypers=hypers,
            definition=training.definition,
            kernel=FLAGS.kernel,
            progress=line,
        )
    for sentence in experiment.failures(outcome):
        print(sentence, file=sys.stderr)
    return outcome


def _seeds() -> tuple[tuple[int, ...], tuple[int, ...]]:
    return experiment.split_seeds(FLAGS.splits), tuple(range(FLAGS.seeds))


def _read(log: pathlib.Path) -> list[Record]:
    return read_records(log) if log.exists() else []


def _found(
    records: Sequence[Record],
    training: Training,
    hyper: Mapping[str, float],
    keys: Mapping[str, Any],
) -> list[Record]:
    definition = training.definition or METHODS[training.method]
    same = [r for r in records if all(r.get(k) == v for k, v in keys.items())]
    return recorded(
        same,
        training.dataset.name,
        training.method,
        training.recipe | hyper,
        *_seeds(),
        definition.detectors,
    )


def _missing(
    records: Sequence[Record], training: Training
) -> list[Mapping[str, float]]:
    """The settings that are not recorded."""
    return [
        h for h in training.hypers if not _found(records, training, h, training.keys)
    ]


def _borrow(log: pathlib.Path, training: Training) -> None:
    """Takes over what the main table has, maybe with more seeds, of what is missing."""
    definition = training.definition or METHODS[training.method]
    terms = {"regularizers": list(definition.regularizers)}
    beside = _read(log.parent / main_table.FILE)
    there = [with_seeds(record, _seeds()[1]) for record in beside]
    for hyper in _missing(_read(log), training):
        found = _found(there, training, hyper, terms)
        append_records(log, *(record | training.keys for record in found))


def borrow(
    log: pathlib.Path,
    others: Sequence[Record],
    dataset: str,
    method: str,
    recipe: recipes.Recipe,
    split_seeds: Sequence[int],
    model_seeds: Sequence[int],
) -> bool:
    """Copies matching records into `log`; returns whether the set is complete.

    The other records may have more model seeds.
    """
    there = [with_seeds(record, model_seeds) for record in others]
    seeds = split_seeds, model_seeds
    detectors = METHODS[method].detectors
    found = recorded(there, dataset, method, recipe, *seeds, detectors)
    if found:
        append_records(log, *found)
    return bool(found)
