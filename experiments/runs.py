"""The one place where binaries train: many runs of a method, scored and recorded.

Runs are all combinations of settings, splits and seeds, in this order, the last one
changing fastest. Nine runs of one setting are splits 123, 1, 2 with seeds 0, 1, 2.
"""

import itertools
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
import numpy as np
from jax.sharding import Mesh

from experiments import results
from oodgat_jax import graphs, methods, metrics, recipes, splits, train
from oodgat_jax.checkpoints import Checkpoints
from oodgat_jax.methods import METHODS, Method
from oodgat_jax.sharding import parts, scoring, spread
from oodgat_jax.sharding.mesh import GRAPH
from oodgat_jax.types import Dataset, InputError, Large, Split

FIRST_SPLIT = 123  # the authors' first split seed; 1, 2, 3, ... follow

_PER_RUN = (*results.PER_RUN, "best_step", "validation")  # the last two may lack

_evaluate = jax.jit(jax.vmap(metrics.evaluate))


class Outcome(NamedTuple):
    """What came out of S runs; arrays are numpy, the run is their first axis."""

    dataset: str
    method: str
    definition: Method
    settings: tuple[recipes.Recipe, ...]  # one recipe each
    setting: np.ndarray  # [S] number of a run's setting
    split_seeds: np.ndarray  # [S]
    model_seeds: np.ndarray  # [S]
    module: nn.Module
    graph: jraph.GraphsTuple
    splits: Split  # [S, N]
    states: train.State  # [S]
    logits: np.ndarray | None  # [S, N, C]; None if the graph was spread
    predictions: np.ndarray  # [S, N] int32
    scores: dict[str, np.ndarray]  # detector -> [S, N]
    metrics: dict[str, dict[str, np.ndarray]]  # detector -> metric -> [S]
    split_digest: str
    seconds: float  # training and scoring

    @property
    def failed(self) -> np.ndarray:
        """Numbers of the runs whose loss stopped being finite."""
        return np.flatnonzero(self.states.failed_at >= 0)


def split_seeds(count: int) -> tuple[int, ...]:
    """The first seeds of 123, 1, 2, 3, ..."""
    return (FIRST_SPLIT, *range(1, count))[:count]


def run(
    dataset: Dataset | Large,
    method: str,
    recipe: recipes.Recipe,
    split_seeds: Sequence[int],
    model_seeds: Sequence[int],
    *,
    hypers: Sequence[Mapping[str, float]] = ({},),
    definition: Method | None = None,
    draw: Callable[[Dataset, int], Split] = splits.draw,
    path: str = "auto",
    mesh: Mesh | None = None,
    progress: Callable[[train.Progress], None] | None = None,
    keep: Checkpoints | None = None,
) -> Outcome:
    """Trains and scores every combination of hypers, splits and seeds.

    Args:
      dataset: what to learn; a changed graph is a changed data set.
      method: how records call it; a key of METHODS unless `definition` is given.
      recipe: from `recipes.recipe`.
      split_seeds: one split each.
      model_seeds: one initialisation and stream of dropout each.
      hypers: floats of the recipe to replace, one dict per setting.
      definition: the method, if it is not the one of that name.
      draw: the protocol of the splits.
      path: of the graph, one of `graphs.PATHS`.
      mesh: devices to use; along its axis `graph` the graph is spread.
      progress: see `train.train`.
      keep: checkpoints of the training; see `train.train`.
    """
    began = time.perf_counter()
    definition = definition or METHODS[method]
    settings = tuple(_setting(recipe, hyper) for hyper in hypers)
    chosen = _combinations(settings, split_seeds, model_seeds)
    drawn = splits.stack([draw(dataset, seed) for seed in split_seeds])
    module = recipes.module(definition, recipe, dataset.num_classes)
    stacked = _stack(chosen, drawn, settings, model_seeds)
    is_spread = mesh is not None and mesh.shape[GRAPH] > 1
    train_and_score = _spread if is_spread else _whole
    graph, states, logits, scored = train_and_score(
        dataset,
        definition,
        module,
        stacked,
        recipes.schedule(definition, recipe),
        path,
        mesh=mesh,
        progress=progress,
        keep=keep,
    )
    return Outcome(
        dataset=dataset.name,
        method=method,
        definition=definition,
        settings=settings,
        setting=chosen[:, 0],
        split_seeds=np.array(split_seeds)[chosen[:, 1]],
        model_seeds=np.array(model_seeds)[chosen[:, 2]],
        module=module,
        graph=graph,
        splits=stacked.split,
        states=states,
        logits=logits,
        predictions=scored.predictions,
        scores={name: scored.scores[name] for name in definition.detectors},
        metrics=_without_failed(scored.metrics, states),
        split_digest=splits.digest(drawn),
        seconds=time.perf_counter() - began,
    )


def _whole(dataset, definition, module, stacked, schedule, path, **options):
    """Graph, states, logits and scores of runs that each see the whole graph."""
    if isinstance(dataset, Large):
        dataset = parts.in_memory(dataset)
    graph = graphs.build(dataset, path)
    stacked = methods.prepare(definition, module, graph, stacked)
    task = methods.assemble(definition, module)
    states = train.train(task, graph, stacked, schedule, **options)
    logits, scores = methods.score_all(
        module, states.best, graph, stacked.split, definition.detectors
    )
    measured = _measure(scores, logits, stacked.split)
    logits, scores = jax.device_get((logits, scores))
    predictions = logits.argmax(-1).astype(np.int32)
    return graph, states, logits, scoring.Scored(predictions, scores, measured)


def _spread(dataset, definition, module, stacked, schedule, path, *, mesh, **options):
    """The same for a graph that is spread over the mesh, without its logits."""
    scoring.check(definition)
    spread_over = spread.large if isinstance(dataset, Large) else spread.dataset
    placed = spread_over(dataset, mesh, path)
    stacked = stacked._replace(split=placed.layout.spread_split(stacked.split))
    task = methods.assemble(definition, module)
    states = train.train(task, placed.graph, stacked, schedule, mesh=mesh, **options)
    scored = scoring.score_all(
        module, states.best, placed, stacked.split, definition.detectors
    )
    return placed.graph, states, None, scored


def records(outcome: Outcome) -> list[results.Record]:
    """One record per setting and detector, as `results.append` takes them."""
    return [
        _record(outcome, number, detector)
        for number in range(len(outcome.settings))
        for detector in outcome.scores
    ]


def kept(record: results.Record) -> dict[str, list[float]]:
    """The metrics of a record without its failed runs."""
    failed = {entry["run"] for entry in record.get("failed_runs", ())}
    return {
        name: [value for run, value in enumerate(values) if run not in failed]
        for name, values in record["metrics"].items()
    }


def with_seeds(record: results.Record, model_seeds: Sequence[int]) -> results.Record:
    """The same record with its runs of these model seeds only, on all of its splits."""
    places = [i for i, seed in enumerate(record["model_seeds"]) if seed in model_seeds]

    def cut(values: Sequence[Any]) -> list[Any]:
        return [values[place] for place in places]

    metrics = {name: cut(values) for name, values in record["metrics"].items()}
    failed = [
        entry | {"run": places.index(entry["run"])}
        for entry in record.get("failed_runs", ())
        if entry["run"] in places
    ]
    share = len(places) / len(record["model_seeds"])
    return {
        **record,
        **{name: cut(record[name]) for name in _PER_RUN if name in record},
        "metrics": metrics,
        "failed_runs": failed,
        "seconds": round(share * record["seconds"], 3),
    }


def recorded(
    records: Sequence[results.Record],
    dataset: str,
    method: str,
    recipe: recipes.Recipe,
    split_seeds: Sequence[int],
    model_seeds: Sequence[int],
    detectors: Sequence[str] | None = None,
) -> list[results.Record]:
    """The records of exactly these runs, the latest per detector; [] if there is none.

    Long commands skip what is recorded, so that they go on where they stopped. All of
    `detectors` must be there, by default those of the method.
    """
    seeds = list(zip(*itertools.product(split_seeds, model_seeds), strict=True))
    wanted = (dataset, method, recipe, *(list(each) for each in seeds))
    keys = ("dataset", "method", "hyperparameters", "split_seeds", "model_seeds")
    found = {
        record["detector"]: record
        for record in records
        if tuple(record[key] for key in keys) == wanted
    }
    complete = found.keys() >= set(detectors or METHODS[method].detectors)
    return list(found.values()) if complete else []


def borrow(
    log: pathlib.Path,
    others: Sequence[results.Record],
    dataset: str,
    method: str,
    recipe: recipes.Recipe,
    split_seeds: Sequence[int],
    model_seeds: Sequence[int],
) -> bool:
    """Appends to a log what other records have of these runs; whether they have it.

    Their records may have more model seeds.
    """
    there = [with_seeds(record, model_seeds) for record in others]
    found = recorded(there, dataset, method, recipe, split_seeds, model_seeds)
    if found:
        results.append(log, *found)
    return bool(found)


def failures(outcome: Outcome) -> list[str]:
    """One sentence for each run that failed."""
    return [
        f"Run {run} (split {outcome.split_seeds[run]}, seed "
        f"{outcome.model_seeds[run]}) failed: its loss was not finite at step "
        f"{outcome.states.failed_at[run]}; it is left out of the means."
        for run in outcome.failed
    ]


def _setting(recipe: recipes.Recipe, hyper: Mapping[str, float]) -> recipes.Recipe:
    known = recipes.floats(recipe)
    for name in hyper:
        if name not in known:
            raise InputError(
                f"A run cannot have its own '{name}': choose from {', '.join(known)}."
            )
    return recipe | {name: float(value) for name, value in hyper.items()}


def _combinations(*axes: Sequence) -> np.ndarray:
    """Positions along each axis, one row per run."""
    if not all(len(axis) for axis in axes):
        raise InputError("There is nothing to run: give a setting, a split and a seed.")
    return np.array(list(itertools.product(*(range(len(axis)) for axis in axes))))


def _stack(
    chosen: np.ndarray,
    drawn: Split,
    settings: Sequence[recipes.Recipe],
    model_seeds: Sequence[int],
) -> train.Run:
    """The runs, stacked; runs with the same seed start from the same parameters."""
    hypers = [recipes.leaves(setting) for setting in settings]
    keys = jax.vmap(jax.random.key)(jnp.array(model_seeds, jnp.uint32))
    return train.Run(
        key=keys[chosen[:, 2]],
        split=jax.tree.map(lambda leaf: leaf[chosen[:, 1]], drawn),
        hyper={
            name: np.array([hypers[n][name] for n in chosen[:, 0]], np.float32)
            for name in hypers[0]
        },
    )


def _measure(
    scores: Mapping[str, jax.Array], logits: jax.Array, stacked: Split
) -> dict[str, dict[str, np.ndarray]]:
    """Detector -> metric -> [S]."""
    measured = {name: _evaluate(s, logits, stacked) for name, s in scores.items()}
    return jax.device_get(measured)


def _without_failed(
    measured: dict[str, dict[str, np.ndarray]], states: train.State
) -> dict[str, dict[str, np.ndarray]]:
    """Metrics with NaN for failed runs, so that none passes for a result."""
    failed = states.failed_at >= 0
    return jax.tree.map(lambda values: np.where(failed, np.nan, values), measured)


def _record(outcome: Outcome, number: int, detector: str) -> results.Record:
    runs = np.flatnonzero(outcome.setting == number)
    share = len(runs) / len(outcome.setting)
    return {
        "dataset": outcome.dataset,
        "method": outcome.method,
        "detector": detector,
        "metrics": {k: v[runs] for k, v in outcome.metrics[detector].items()},
        "split_seeds": outcome.split_seeds[runs],
        "model_seeds": outcome.model_seeds[runs],
        "hyperparameters": outcome.settings[number],
        "terms": outcome.definition.terms,
        "steps_run": outcome.states.step[runs],
        "best_step": outcome.states.best_step[runs],
        "validation": _or_none(outcome.states.best_score[runs]),
        "failed_runs": _failed_runs(outcome.states.failed_at[runs]),
        "split_digest": outcome.split_digest,
        "versions": results.versions(),
        "devices": [device.device_kind for device in jax.local_devices()],
        "seconds": round(share * outcome.seconds, 3),
    }


def _or_none(scores: np.ndarray) -> list[float | None]:
    """JSON has no infinity, which is what a run has that failed before its check."""
    return [float(score) if np.isfinite(score) else None for score in scores]


def _failed_runs(failed_at: np.ndarray) -> list[dict[str, Any]]:
    failed = np.flatnonzero(failed_at >= 0)
    return [{"run": int(run), "step": int(failed_at[run])} for run in failed]
