"""What is recorded of a plan, what is stale or missing, and how long that takes."""

import functools
import pathlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from experiments.support import main_table, study_flags, trainings
from experiments.support.paper_plan import Step
from experiments.support.trainings import Keys, Training
from oodgat_jax import tables
from oodgat_jax.cli.progress import duration
from oodgat_jax.records import Record, read_records

HEADER = ["Study", "Trainings", "Records", "there", "stale", "missing", "Time"]


class State(NamedTuple):
    """What is recorded of a training."""

    name: str  # of its study
    title: str
    wanted: int  # records
    stale: int  # of these, made by other code
    missing: int  # not there at all
    seconds: float | None  # that they take, by past records; None if these do not tell

    @property
    def lacking(self) -> int:
        """Returns how many records are to be made."""
        return self.stale + self.missing


def survey(steps: Sequence[Step], folder: pathlib.Path) -> list[State]:
    """Returns the state of every training of some steps."""
    known = functools.cache(Past)
    return [
        state(step, training, folder, known)
        for step in steps
        for training in step.trainings()
    ]


class Past:
    """How long trainings took, by the latest records of a file: code becomes faster."""

    def __init__(self, path: pathlib.Path):
        self._rates: dict[tuple[str, str], float] = {}  # seconds a step of a run
        self._detectors: dict[tuple[str, str, str], float] = {}
        for record in read_records(path) if path.is_file() else []:
            self._add(record)

    def _add(self, record: Record) -> None:
        name, method = record["dataset"], record["method"]
        steps = record["hyperparameters"].get("max_steps")
        if steps:
            runs = len(record["split_seeds"])
            self._rates[name, method] = record["seconds"] / runs / steps
        if "detector_seconds" in record:
            key = name, method, record["detector"]
            runs = len(record["split_seeds"])
            self._detectors[key] = record["detector_seconds"] / runs

    def seconds(self, keys: Sequence[Keys]) -> float | None:
        """Returns how long records take, None if none is of such a training.

        Records that differ in their detector come from one training.
        """
        alike = {repr({**each, "detector": ""}): each for each in keys}
        total = 0.0
        for each in alike.values():
            rate = self._rates.get((each["dataset"], each["method"]))
            if rate is None:
                return None
            runs, steps = len(each["split_seeds"]), each["hyperparameters"]["max_steps"]
            total += rate * runs * int(steps)
        return total + sum(map(self._detector, keys))

    def _detector(self, keys: Keys) -> float:
        key = keys["dataset"], keys["method"], keys.get("detector", "")
        return self._detectors.get(key, 0.0) * len(keys["split_seeds"])


def state(step: Step, training: Training, folder: pathlib.Path, known) -> State:
    """Returns the state of a training; `known` returns the Past of a file."""
    log = folder / step.study.file
    lacking = trainings.lacking(log, training)
    missing = trainings.lacking(log, training, stale=True) if lacking else []
    seconds: float | None = 0.0
    if lacking and training.format is trainings.RECORDS:  # else nothing is trained
        files = [
            place / file
            for place in (folder, study_flags.RECORDS)
            for file in (step.study.file, main_table.FILE)
        ]
        found = (known(file).seconds(lacking) for file in files)
        seconds = next((each for each in found if each is not None), None)
    return State(
        step.study.name,
        training.title,
        len(training.wanted),
        len(lacking) - len(missing),
        len(missing),
        seconds,
    )


def table(states: Sequence[State]) -> tables.Table:
    """Draws a row per study, and their sum."""
    names = dict.fromkeys(each.name for each in states)
    groups = {name: [s for s in states if s.name == name] for name in names}
    rows = [_row(name, group) for name, group in groups.items()]
    return tables.Table(HEADER, [*rows, _row("all", states)])


def _row(name: str, states: Sequence[State]) -> list[tables.Cell | str]:
    wanted = sum(each.wanted for each in states)
    stale = sum(each.stale for each in states)
    missing = sum(each.missing for each in states)
    counts = (len(states), wanted, wanted - stale - missing, stale, missing)
    return [name, *map(str, counts), time_left(states)]


def time_left(states: Iterable[State]) -> str:
    """Returns how long what is lacking takes; `more than` if some is unknown."""
    left = [each.seconds for each in states if each.lacking]
    text = duration(sum(seconds for seconds in left if seconds is not None))
    return f"more than {text}" if None in left else text


def listed(states: Sequence[State]) -> str:
    """Returns a line per training that has stale or missing records."""
    lines = []
    for each in states:
        counts = {"stale": each.stale, "missing": each.missing}
        told = [f"{count} {what}" for what, count in counts.items() if count]
        if told:
            lines.append(f"{each.name}: {each.title}: {', '.join(told)}")
    return "\n".join(lines)
