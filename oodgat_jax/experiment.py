"""The one place where methods are trained: many runs, scored and recorded.

Runs are all combinations of settings, splits and seeds, in this order, the last one
changing fastest. Nine runs of one setting are splits 123, 1, 2 with seeds 0, 1, 2.
"""

import itertools
import math
import numbers
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
import numpy as np
from jax.sharding import Mesh

from oodgat_jax import datasets, evaluation, graphs, methods, tables, training
from oodgat_jax import splits as protocols
from oodgat_jax.datasets import streaming
from oodgat_jax.detectors import DETECTORS
from oodgat_jax.losses import REGULARIZERS
from oodgat_jax.methods import METHODS, Method, recipes
from oodgat_jax.methods.recipes import Recipe
from oodgat_jax.records import Record, kept_metrics, versions
from oodgat_jax.registry import check_names
from oodgat_jax.sharding import shards
from oodgat_jax.training import capacity
from oodgat_jax.training.checkpoints import Checkpoints
from oodgat_jax.training.mesh import AXES, GRAPH
from oodgat_jax.types import AnyArray, Array, Dataset, InputError, Split, StreamedGraph

MOST_RUNS = 100_000
MOST_SEEDS = 2**32
FIRST_SPLIT = 123  # the authors' first split seed; 1, 2, 3, ... follow


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


def run(
    dataset: str | Dataset | StreamedGraph,
    method: str | Method = "oodgat",
    *,
    splits: int | Sequence[int] = 3,
    seeds: int | Sequence[int] = 3,
    settings: Mapping[str, Any] | Sequence[str] = (),
    regularizers: Sequence[str] | None = None,
    detectors: Sequence[str] | None = None,
    name: str | None = None,
    data_dir: str | None = None,
    kernel: str = "auto",
    mesh: Mesh | None = None,
    progress: Callable[[training.Progress], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> Result:
    """Trains a method on a data set, every split with every seed, and scores it.

    Args:
      dataset: a name from the table of data sets, or a data set.
      method: a name from the table of methods, or a method.
      splits: how many of the split seeds 123, 1, 2, 3, ..., or the seeds themselves.
      seeds: how many of the model seeds 0, 1, 2, ..., or the seeds themselves.
      settings: hyper-parameters that replace the recipe's, {"lr": 0.02}.
      regularizers: if they are not the method's own.
      detectors: scores to report, if they are not the method's own.
      name: how records and tables call the method; by default its name in the table.
      data_dir: folder of raw files; see `datasets.load`.
      kernel: of products with the graph, one of `graphs.KERNELS`.
      mesh: devices to use; along its axis `graph` the graph is sharded.
      progress: called now and then with a `training.Progress`.
      checkpoints: of the training; see `training.train`.
    """
    if isinstance(dataset, str):
        dataset = open_dataset(dataset, data_dir)
    if not isinstance(dataset, Dataset | StreamedGraph):
        kind = type(dataset).__name__
        raise InputError(f"dataset must be a name or a Dataset, not {kind}.")
    base = METHODS[method] if isinstance(method, str) else method
    if not isinstance(base, Method):
        kind = type(method).__name__
        raise InputError(f"method must be a name or a Method, not {kind}.")
    _check_options(mesh, progress, checkpoints)
    title = name or (method if isinstance(method, str) else base.backbone)
    definition = define(base, detectors, regularizers)
    recipe = recipes.recipe(dataset.name, definition)
    return execute(
        dataset,
        label(title, base, regularizers),
        recipes.override(recipe, as_settings(settings)),
        _seeds("splits", splits, split_seeds),
        _seeds("seeds", seeds, range),
        definition=definition,
        kernel=kernel,
        mesh=mesh,
        progress=progress,
        checkpoints=checkpoints,
    )


def _check_options(mesh: Any, progress: Any, checkpoints: Any) -> None:
    """Raises InputError unless each is what `run` takes, or None."""
    if mesh is not None and not (isinstance(mesh, Mesh) and mesh.axis_names == AXES):
        raise InputError(
            f"mesh must be one of training.mesh.build, with the axes "
            f"{' and '.join(AXES)}, not {mesh!r}."
        )
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function, not {progress!r}.")
    if not isinstance(checkpoints, Checkpoints | None):
        raise InputError(
            f"checkpoints must be training.Checkpoints(folder), not {checkpoints!r}."
        )


def _seeds(
    name: str, given: Any, first: Callable[[int], Sequence[int]]
) -> Sequence[int]:
    """Returns the seeds given, or the first ones if it is their number."""
    if isinstance(given, numbers.Integral):
        return first(int(given))
    if not isinstance(given, Iterable):
        raise InputError(
            f"{name} must be a number of them or a list of seeds, not {given!r}."
        )
    return list(given)


def open_dataset(name: str, data_dir: str | None = None) -> Dataset | StreamedGraph:
    """Loads a data set by name, or opens one that is read part by part."""
    if streaming.is_streamed(name):
        return streaming.open_streamed(name, data_dir)
    return datasets.load(name, data_dir)


def as_settings(settings: Mapping[str, Any] | Sequence[str]) -> list[str]:
    """Returns settings as `name=value`, as --set has them."""
    if isinstance(settings, Mapping):
        return [f"{name}={value}" for name, value in settings.items()]
    if isinstance(settings, str) or not isinstance(settings, Iterable):
        raise InputError(f"settings must be a dict, not {settings!r}.")
    listed = list(settings)
    if not all(isinstance(setting, str) for setting in listed):
        raise InputError(f"settings must be a dict or name=value, not {listed!r}.")
    return listed


def define(
    method: Method,
    detectors: Sequence[str] | None = None,
    regularizers: Sequence[str] | None = None,
) -> Method:
    """Returns the method, with other detectors or regularizers if some are given."""
    if regularizers is not None:
        check_names("regularizer", regularizers, REGULARIZERS)
        method = method._replace(regularizers=tuple(regularizers))
    if detectors is not None:
        check_names("detector", detectors, DETECTORS)
        method = method._replace(detectors=tuple(detectors))
    methods.check(method)
    return method


def label(name: str, method: Method, regularizers: Sequence[str] | None) -> str:
    """Returns what records call a method: its name, with other regularizers if any."""
    if regularizers is None or tuple(regularizers) == method.regularizers:
        return name
    return f"{name}-{'+'.join(['ce', *regularizers])}"


def split_seeds(count: int) -> tuple[int, ...]:
    """Returns the first seeds of 123, 1, 2, 3, ..."""
    return (FIRST_SPLIT, *range(1, count))[:count]


def execute(
    dataset: Dataset | StreamedGraph,
    method: str,
    recipe: Recipe,
    split_seeds: Sequence[int],
    model_seeds: Sequence[int],
    *,
    hypers: Sequence[Mapping[str, float]] = ({},),
    definition: Method | None = None,
    draw: Callable[[Any, int], Split] = protocols.draw,
    kernel: str = "auto",
    mesh: Mesh | None = None,
    progress: Callable[[training.Progress], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> Result:
    """Trains and scores every combination of hypers, splits and seeds.

    Args:
      dataset: what to learn; a changed graph is a changed data set.
      method: how records call it; a key of METHODS unless `definition` is given.
      recipe: from `recipes.recipe`.
      split_seeds: one split each.
      model_seeds: one initialization and stream of dropout each.
      hypers: floats of the recipe to replace, one dict per setting.
      definition: the method, if it is not the one of that name.
      draw: the protocol of the splits.
      kernel: of products with the graph, one of `graphs.KERNELS`.
      mesh: devices to use; along its axis `graph` the graph is sharded.
      progress: see `training.train`.
      checkpoints: of the training; see `training.train`.
    """
    began = time.perf_counter()
    definition = definition or METHODS[method]
    settings = tuple(_setting(recipe, definition, hyper) for hyper in hypers)
    chosen = _combinations(settings, split_seeds, model_seeds)
    capacity.check_runs(
        len(chosen), dataset.num_nodes, dataset.num_classes, len(definition.detectors)
    )
    drawn = [draw(dataset, seed) for seed in split_seeds]
    module = recipes.module(definition, recipe, dataset.num_classes)
    runs = make_runs(
        definition,
        [settings[n] for n in chosen[:, 0]],
        [drawn[n] for n in chosen[:, 1]],
        keys([model_seeds[n] for n in chosen[:, 2]]),
    )
    task = methods.assemble(definition, module)
    graph, states, scored = _train_and_score(
        dataset, definition, module, task, runs, recipe, kernel, mesh,
        progress=progress, checkpoints=checkpoints,
    )  # fmt: skip
    return Result(
        dataset=dataset.name,
        method=method,
        definition=definition,
        settings=settings,
        setting=chosen[:, 0],
        split_seeds=np.array(split_seeds)[chosen[:, 1]],
        model_seeds=np.array(model_seeds)[chosen[:, 2]],
        module=module,
        task=task,
        graph=graph,
        splits=runs.split,
        states=states,
        logits=scored.logits,
        predictions=scored.predictions,
        scores={name: scored.scores[name] for name in definition.detectors},
        metrics=without_failed(scored.metrics, states),
        split_digest=protocols.digest(protocols.stack(drawn)),
        seconds=time.perf_counter() - began,
    )


def keys(seeds: Sequence[int]) -> Array:
    """Returns the PRNG keys of model seeds: [S]."""
    for seed in seeds:
        if not isinstance(seed, numbers.Integral) or not 0 <= seed < MOST_SEEDS:
            raise InputError(
                f"The seed {seed!r} must be an integer in 0..{MOST_SEEDS - 1}."
            )
    return jax.vmap(jax.random.key)(jnp.array(list(seeds), jnp.uint32))


def make_runs(
    method: Method, settings: Sequence[Recipe], drawn: Sequence[Split], keys: Array
) -> training.Run:
    """Stacks runs [S] from one recipe, one split and one key each."""
    hypers = [recipes.leaves(setting, method) for setting in settings]
    return training.Run(
        key=keys,
        split=protocols.stack(drawn),
        hyper={
            name: np.array([hyper[name] for hyper in hypers], np.float32)
            for name in hypers[0]
        },
    )


def _train_and_score(
    dataset, definition, module, task, runs, recipe, kernel, mesh, **options
) -> tuple[jraph.GraphsTuple, training.State, evaluation.Scored]:
    """Returns the graph, the states and the scores; sharded if the mesh says so."""
    schedule = recipes.schedule(definition, recipe)
    width = dataset.features.shape[1] if isinstance(dataset, Dataset) else 1
    methods.check_needs(definition, module, width)
    if mesh is not None and mesh.shape[GRAPH] > 1:
        evaluation.check_shardable(definition)
        streamed = isinstance(dataset, StreamedGraph)
        shard = shards.shard_stream if streamed else shards.shard_dataset
        placed = shard(dataset, mesh, kernel)
        runs = runs._replace(split=placed.layout.split_to_shards(runs.split))
        states = training.train(
            task, placed.graph, runs, schedule, mesh=mesh, **options
        )
        found = evaluation.trained(states), placed, runs.split, definition.detectors
        return placed.graph, states, evaluation.score_sharded(task, *found)
    if isinstance(dataset, StreamedGraph):
        capacity.check_edges(streaming.num_edges(dataset.name))
        dataset = streaming.in_memory(dataset)
    graph = graphs.build(dataset, kernel)
    runs = methods.prepare(definition, module, graph, runs)
    states = training.train(task, graph, runs, schedule, mesh=mesh, **options)
    found = evaluation.trained(states), graph, runs.split, definition.detectors
    return graph, states, evaluation.score(task, *found)


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


def _setting(recipe: Recipe, method: Method, hyper: Mapping[str, float]) -> Recipe:
    known = recipes.floats(recipe, method)
    for name in hyper:
        if name not in known:
            raise InputError(
                f"A run cannot have its own '{name}': choose from {', '.join(known)}."
            )
    return recipe | {name: float(value) for name, value in hyper.items()}


def _combinations(*axes: Sequence) -> np.ndarray:
    """Returns positions along each axis, one row per run."""
    if not all(len(axis) for axis in axes):
        raise InputError("There is nothing to run: give a setting, a split and a seed.")
    if math.prod(len(axis) for axis in axes) > MOST_RUNS:
        raise InputError(
            f"{math.prod(len(axis) for axis in axes)} runs are more than one command "
            f"takes: ask for at most {MOST_RUNS} splits times seeds."
        )
    return np.array(list(itertools.product(*(range(len(axis)) for axis in axes))))


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
        "versions": versions(),
        "devices": [device.device_kind for device in jax.local_devices()],
        "seconds": round(share * result.seconds, 3),
    }


def _or_none(scores: AnyArray) -> list[float | None]:
    """Replaces the infinity of a run that failed before its check, for JSON."""
    return [float(score) if np.isfinite(score) else None for score in scores]


def _failed_runs(failed_at: AnyArray) -> list[dict[str, Any]]:
    failed = np.flatnonzero(failed_at >= 0)
    return [{"run": int(run), "step": int(failed_at[run])} for run in failed]
