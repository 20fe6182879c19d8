"""Successive halving: all cells of a grid with few runs and steps, the best with more.

Cells are compared by their mean validation score at a rung; the best share of them goes
on to the next. On the last rung they have all runs and all steps, and the method's own
settings are among them if the grid has these: few runs and steps may mislead, and what
is chosen is never behind them by validation.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from experiments.support import trainings, tuned
from experiments.support.trainings import Seeds
from oodgat_jax import experiment
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import Record

KEEP = 0.25  # share of the cells that goes on


class Rung(NamedTuple):
    """How much of a cell is trained."""

    splits: int
    seeds: int
    steps: float  # share of the recipe's

    @property
    def numbers(self) -> Seeds:
        """Returns the seeds of splits and models."""
        return experiment.split_seeds(self.splits), tuple(range(self.seeds))


# Before the last. On Cora, where all 48 cells of GAT and OODGAT are recorded, the best
# of nine runs is in the first 9 by one run (of all steps), the first by three splits.
# One run of few steps drops settings that nine runs prefer (GraphSAGE, OODGAT).
FIRST = (Rung(3, 1, 0.3), Rung(3, 1, 1.0))


def rungs(splits: int, seeds: int) -> list[Rung]:
    """Returns the rungs up to all runs of these numbers, none of them twice."""
    first = [
        Rung(min(rung.splits, splits), min(rung.seeds, seeds), rung.steps)
        for rung in FIRST
    ]
    return list(dict.fromkeys([*first, Rung(splits, seeds, 1.0)]))


def at(cell: recipes.Recipe, rung: Rung) -> recipes.Recipe:
    """Returns the cell with the steps of a rung, the last of which is a check."""
    if rung.steps == 1:
        return cell
    every = int(cell["check_every"])
    checks = max(1, int(rung.steps * int(cell["max_steps"]) / every))
    return cell | {"max_steps": min(int(cell["max_steps"]), 1 + checks * every)}


def key(number: int, count: int) -> dict[str, list[int]]:
    """Returns what records of a rung say, besides their settings."""
    return {tuned.KEY: [number, count]}


def kept(
    records: Sequence[Record],
    dataset: str,
    method: str,
    cells: Sequence[recipes.Recipe],
    ladder: Sequence[Rung],
    number: int,
    keep: float = KEEP,
    own: recipes.Recipe | None = None,
) -> list[recipes.Recipe]:
    """Returns the cells that reach a rung, counted from 1, in the order of the grid.

    Cells that are not recorded come last; until a rung is complete, the answer for the
    next is provisional. The cell `own` always reaches the last rung.
    """
    left = list(cells)
    for before, rung in enumerate(ladder[: number - 1], start=1):
        same = dataset, method, rung, key(before, len(ladder))
        scores = [_score(records, at(cell, rung), *same) for cell in left]
        order = sorted(range(len(left)), key=lambda place: -scores[place])
        best = sorted(order[: math.ceil(keep * len(left))])
        left = [left[place] for place in best]
    last = number == len(ladder)
    return [cell for cell in cells if cell in left or (last and cell == own)]


def _score(records, cell, dataset, method, rung: Rung, more) -> float:
    """Returns the validation score of a cell at a rung; -inf if it is not recorded."""
    wanted = trainings.wanted(cell, dataset, method, *rung.numbers, _one(method))
    found = trainings.find(records, [keys | more for keys in wanted])
    return tuned.validation(found[0]) if found else -math.inf


def _one(method: str) -> tuple[str]:
    """Returns one detector: the validation score is the same in all records."""
    return (METHODS[method].detectors[0],)


def by_rung(
    records: Sequence[Record], dataset: str, method: str
) -> list[list[recipes.Recipe]]:
    """Returns the settings recorded on each rung, [] without halving.

    A cell that the next rung lacks was dropped after this one.
    """
    found: dict[int, list[recipes.Recipe]] = {}
    for record in records:
        same = (record["dataset"], record["method"]) == (dataset, method)
        if same and tuned.KEY in record:
            found.setdefault(record[tuned.KEY][0], []).append(record["hyperparameters"])
    return [found[number] for number in sorted(found)]
