"""What came out of runs: as arrays, as records and as a table."""

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jraph
import numpy as np

from oodgat_jax import tables, training
from oodgat_jax.methods import Method
from oodgat_jax.methods.recipes import Recipe
from oodgat_jax.records import Record, kept_metrics, made_by
from oodgat_jax.types import AnyArray, Split


class Result(NamedTuple):
    """What came out of S runs; arrays are numpy, the run is their first axis."""

    dataset: str
    method: str
    definition: Method
    settings: tuple[Recipe, ...]  # one recipe each
    setting: np.ndarray  # [S] number of a run's setting
    split_seeds: np.ndarray  # [S]
    model_seeds: np.ndarray  # [S]
    module: nn.Module
    task: training.Task
    graph: jraph.GraphsTuple
    splits: Split  # [S, N]
    states: training.State  # [S]
    logits: np.ndarray | None  # [S, N, C]; None if the graph was sharded
    predictions: np.ndarray  # [S, N] int32
    scores: dict[str, np.ndarray]  # detector -> [S, N]
    metrics: dict[str, dict[str, np.ndarray]]  # detector -> metric -> [S]
    split_digest: str
    seconds: float  # training and scoring

    @property
    def failed(self) -> np.ndarray:
        """Returns the numbers of the runs whose loss stopped being finite."""
        return np.flatnonzero(self.states.failed_at >= 0)

    def __str__(self) -> str:
        """Returns the table that `experiments.detect` prints."""
        return table(self)


def records(result: Result) -> list[Record]:
    """Returns one record per setting and detector, as `append_records` takes them."""
    return [
        _record(result, number, detector)
        for number in range(len(result.settings))
        for detector in result.scores
    ]


def failures(result: Result) -> list[str]:
    """Returns one sentence for each run that failed."""
    return [
        f"Run {run} (split {result.split_seeds[run]}, seed "
        f"{result.model_seeds[run]}) failed: its loss was not finite at step "
        f"{result.states.failed_at[run]}; it is left out of the means."
        for run in result.failed
    ]


def table(
    result: Result,
    paper: Callable[[Record, str], float | None] = lambda record, metric: None,
    note: str = "",
) -> str:
    """Returns the result as a text table, under a line that says what was run.

    Args:
      result: of one setting.
      paper: (record, metric) -> the figure in percent to set beside, if there is one.
      note: added to the first line.
    """
    found = records(result)
    rows = []
    for record in found:
        values = kept_metrics(record)
        cells = [
            tables.result(values[metric], paper(record, metric))
            if values[metric]
            else "-"
            for metric in tables.COLUMNS
        ]
        rows.append([record["detector"], *cells])
    count = len(result.setting)
    noun = "run" if count == 1 else "runs"
    text = tables.as_text(tables.Table(["detector", *tables.COLUMNS.values()], rows))
    return (
        f"{result.method} on {result.dataset}: {count} {noun}, "
        f"{result.states.step.sum()} steps, {result.seconds:.0f} s; percent, "
        f"mean ± deviation{note}\n\n{text}"
    )


def without_failed(
    measured: dict[str, dict[str, np.ndarray]], states: training.State
) -> dict[str, dict[str, np.ndarray]]:
    """Returns metrics with NaN for failed runs, so that none passes for a result."""
    failed = states.failed_at >= 0
    return jax.tree.map(lambda values: np.where(failed, np.nan, values), measured)


def _record(result: Result, number: int, detector: str) -> Record:
    runs = np.flatnonzero(result.setting == number)
    share = len(runs) / len(result.setting)
    return {
        "dataset": result.dataset,
        "method": result.method,
        "detector": detector,
        "metrics": {k: v[runs] for k, v in result.metrics[detector].items()},
        "split_seeds": result.split_seeds[runs],
        "model_seeds": result.model_seeds[runs],
        "hyperparameters": result.settings[number],
        "regularizers": result.definition.regularizers,
        "steps_run": result.states.step[runs],
        "best_step": result.states.best_step[runs],
        "validation": _or_none(result.states.best_score[runs]),
        "failed_runs": _failed_runs(result.states.failed_at[runs]),
        "split_digest": result.split_digest,
        **made_by(),
        "devices": [device.device_kind for device in jax.local_devices()],
        "seconds": round(share * result.seconds, 3),
    }


def _or_none(scores: AnyArray) -> list[float | None]:
    """Replaces the infinity of a run that failed before its check, for JSON."""
    return [float(score) if np.isfinite(score) else None for score in scores]


def _failed_runs(failed_at: AnyArray) -> list[dict[str, Any]]:
    failed = np.flatnonzero(failed_at >= 0)
    return [{"run": int(run), "step": int(failed_at[run])} for run in failed]
