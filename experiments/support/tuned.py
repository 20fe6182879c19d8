"""Settings that `experiments.tune` has chosen, for the studies that take them.

What a cell is worth is its mean validation score; no test node plays a part.
"""

import pathlib
from collections.abc import Sequence

from absl import flags

from experiments.support import trainings
from oodgat_jax.cli import app
from oodgat_jax.methods import recipes
from oodgat_jax.records import Record
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
FLAG: app.Definitions = {
    "tuned": (
        flags.DEFINE_string,
        None,
        "Records of experiments.tune, whose choices replace the settings of the "
        "methods that it has on a data set.",
        {},
    ),
}
KEY = "halving"  # of a record: [rung from 1, number of rungs]


def cells() -> list[Record]:
    """Returns the records of --tuned, [] without the flag.

    Raises:
      InputError: there is no such file.
    """
    if not FLAGS.tuned:
        return []
    path = pathlib.Path(FLAGS.tuned)
    if not path.is_file():
        raise InputError(
            f"There are no records at --tuned={path}: run python -m experiments.tune."
        )
    return trainings.read(path)


def recipe(cells: Sequence[Record], dataset: str, method: str) -> recipes.Recipe:
    """Returns the settings chosen for a method on a data set, else its recipe."""
    return chosen(cells, dataset, method) or recipes.recipe(dataset, method)


def chosen(
    records: Sequence[Record], dataset: str, method: str
) -> recipes.Recipe | None:
    """Returns the best recorded setting by validation, None if there is none."""
    found = comparable(records, dataset, method)
    return max(found, key=validation)["hyperparameters"] if found else None


def comparable(records: Sequence[Record], dataset: str, method: str) -> list[Record]:
    """Returns the records among which validation chooses.

    They are those of the last rung where there was successive halving, else those of
    all cells.
    """
    mine = [r for r in records if (r["dataset"], r["method"]) == (dataset, method)]
    last = [r for r in mine if KEY in r and r[KEY][0] == r[KEY][1]]
    return last or [record for record in mine if KEY not in record]


def validation(record: Record) -> float:
    """Returns the mean validation score; a run that failed counts as 0."""
    scores = record["validation"]
    failed = {entry["run"] for entry in record["failed_runs"]}
    whole = [0.0 if run in failed else s or 0.0 for run, s in enumerate(scores)]
    return sum(whole) / len(whole)
