"""Trains and scores many runs at once.

Runs are all combinations of settings, splits and seeds, in this order, the last one
changing fastest. Nine runs of one setting are splits 123, 1, 2 with seeds 0, 1, 2.
"""

import itertools
import math
import numbers
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from jax.sharding import Mesh

from oodgat_jax import evaluation, graphs, methods, models, source_digest, training
from oodgat_jax import splits as protocols
from oodgat_jax.datasets import streaming
from oodgat_jax.experiment.result import Result, without_failed
from oodgat_jax.methods import METHODS, Method, recipes
from oodgat_jax.methods.recipes import Recipe
from oodgat_jax.sharding import shards
from oodgat_jax.training import capacity
from oodgat_jax.training.checkpoints import Checkpoints
from oodgat_jax.training.mesh import GRAPH
from oodgat_jax.types import Array, Dataset, InputError, Split, StreamedGraph

MOST_RUNS = 100_000
MOST_SEEDS = 2**32
FIRST_SPLIT = 123  # the authors' first split seed; 1, 2, 3, ... follow


class Scored(NamedTuple):
    """A second graph for detectors: the one learned from, with more beside it."""

    dataset: Dataset  # begins with the nodes of the one learned from
    draw: Callable[[Any, int], Split]


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
    scored_on: Scored | None = None,
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
      scored_on: what to score if it is not what was learned from; the result then is
        about its nodes and splits.
      kernel: of products with the graph, one of `graphs.KERNELS`.
      mesh: devices to use; along its axis `graph` the graph is sharded.
      progress: see `training.train`.
      checkpoints: of the training; see `training.train`.
    """
    began = time.perf_counter()
    source_digest.digest()  # before files can change under a long training
    definition = definition or METHODS[method]
    settings = tuple(_setting(recipe, definition, hyper) for hyper in hypers)
    chosen = _combinations(settings, split_seeds, model_seeds)
    largest = dataset.num_nodes if scored_on is None else scored_on.dataset.num_nodes
    capacity.check_runs(
        len(chosen), largest, dataset.num_classes, len(definition.detectors)
    )
    drawn = _draw(draw, dataset, split_seeds)
    second = None
    if scored_on is not None:
        _check_begins_with(scored_on.dataset, dataset)
        drawn_there = _draw(scored_on.draw, scored_on.dataset, split_seeds)
        stacked = protocols.stack([drawn_there[n] for n in chosen[:, 1]])
        second = scored_on.dataset, stacked
    module = recipes.module(definition, recipe, dataset.num_classes)
    runs = make_runs(
        definition,
        [settings[n] for n in chosen[:, 0]],
        [drawn[n] for n in chosen[:, 1]],
        keys([model_seeds[n] for n in chosen[:, 2]]),
    )
    task = methods.assemble(definition, module)
    graph, states, scored = _train_and_score(
        dataset, definition, module, task, runs, recipe, kernel, mesh, second,
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
        splits=runs.split if second is None else second[1],
        states=states,
        logits=scored.logits,
        predictions=scored.predictions,
        scores={name: scored.scores[name] for name in definition.detectors},
        metrics=without_failed(scored.metrics, states),
        split_digest=protocols.digest(
            protocols.stack(drawn if second is None else drawn_there)
        ),
        seconds=time.perf_counter() - began,
    )


def score_again(result: Result, scored_on: Scored, kernel: str = "auto") -> Result:
    """Returns the result of runs that are trained already, on another graph.

    Args:
      result: of runs whose graph was in one place.
      scored_on: what to score; it begins with the nodes learned from.
      kernel: of products with the graph, one of `graphs.KERNELS`.
    """
    began = time.perf_counter()
    seeds = list(dict.fromkeys(result.split_seeds.tolist()))
    drawn = _draw(scored_on.draw, scored_on.dataset, seeds)
    places = [seeds.index(seed) for seed in result.split_seeds]
    splits = protocols.stack([drawn[place] for place in places])
    graph = graphs.build(scored_on.dataset, kernel)
    found = evaluation.trained(result.states), graph, splits
    scored = evaluation.score(result.task, *found, result.definition.detectors)
    return result._replace(
        graph=graph,
        splits=splits,
        logits=scored.logits,
        predictions=scored.predictions,
        scores={name: scored.scores[name] for name in result.definition.detectors},
        metrics=without_failed(scored.metrics, result.states),
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


def _draw(draw, dataset, seeds: Sequence[int]) -> list[Split]:
    drawn = [draw(dataset, seed) for seed in seeds]
    for split in drawn:
        protocols.check_exposure(split)
    return drawn


def _check_begins_with(scored: Dataset, learned: Dataset | StreamedGraph) -> None:
    """Raises InputError unless one data set's nodes are the first of the other."""
    count = learned.num_nodes
    same = scored.num_nodes >= count and scored.id_classes == learned.id_classes
    if not same or not np.array_equal(scored.labels[:count], learned.labels):
        raise InputError(
            f"The graph to score of {scored.name} must begin with the nodes learned "
            "from, and have their known classes."
        )


def _train_and_score(
    dataset, definition, module, task, runs, recipe, kernel, mesh, second, **options
) -> tuple[jraph.GraphsTuple, training.State, evaluation.Scored]:
    """Returns the graph scored, the states and the scores; sharded if the mesh says
    so."""
    schedule = recipes.schedule(definition, recipe)
    width = dataset.features.shape[1] if isinstance(dataset, Dataset) else 1
    methods.check_needs(definition, module, width)
    methods.check_exposure(definition, runs.split)
    if mesh is not None and mesh.shape[GRAPH] > 1:
        evaluation.check_shardable(definition)
        _check_one_graph(dataset, module)
        placed, split = _sharded(dataset, runs.split, mesh, kernel)
        runs = runs._replace(split=split)
        states = training.train(
            task, placed.graph, runs, schedule, mesh=mesh, **options
        )
        if second is not None:
            placed, split = _sharded(second[0], second[1], mesh, kernel)
        found = evaluation.trained(states), placed, split, definition.detectors
        return placed.graph, states, evaluation.score_sharded(task, *found)
    if isinstance(dataset, StreamedGraph):
        capacity.check_edges(streaming.num_edges(dataset.name))
        dataset = streaming.in_memory(dataset)
    graph, split = graphs.build(dataset, kernel), runs.split
    runs = methods.prepare(definition, module, graph, runs)
    states = training.train(task, graph, runs, schedule, mesh=mesh, **options)
    if second is not None:
        graph, split = graphs.build(second[0], kernel), second[1]
    found = evaluation.trained(states), graph, split, definition.detectors
    return graph, states, evaluation.score(task, *found)


def _check_one_graph(dataset: Dataset | StreamedGraph, module: Any) -> None:
    """Raises InputError for joined graphs whose statistics shards would mix."""
    joined = isinstance(dataset, Dataset) and len(dataset.components) > 1
    if joined and models.keeps_statistics(module):
        raise InputError(
            f"{dataset.name} is several joined graphs, each with its own batch "
            "statistics, and cannot be sharded: leave the axis graph of --mesh at 1."
        )


def _sharded(
    dataset: Dataset | StreamedGraph, splits: Split, mesh: Mesh, kernel: str
) -> tuple[shards.Sharded, Split]:
    """Returns a sharded graph, and splits [S, N] by the places of its nodes."""
    streamed = isinstance(dataset, StreamedGraph)
    shard: Any = shards.shard_stream if streamed else shards.shard_dataset
    placed = shard(dataset, mesh, kernel)
    return placed, placed.layout.split_to_shards(splits)


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
