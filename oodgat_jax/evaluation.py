"""Trained runs on a graph: predictions, scores and metrics of all of them.

On a sharded graph metrics are computed where the nodes are; what comes back to the
host is one number per node and run, and the metrics.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from oodgat_jax import graphs, metrics
from oodgat_jax.detectors import named, remember
from oodgat_jax.methods import Method
from oodgat_jax.sharding.shards import Sharded
from oodgat_jax.training import Aux, Params, State, Task, placement
from oodgat_jax.training.mesh import GRAPH, RUNS
from oodgat_jax.types import Array, InputError, Outputs, Predict, Split

Trained = tuple[Params, Aux]  # of one run, or stacked [S]

evaluate = jax.jit(jax.vmap(metrics.evaluate))  # (scores, logits, splits), all [S, ...]


class Scored(NamedTuple):
    """Of S runs, as numpy arrays, nodes in the order of the whole graph."""

    predictions: np.ndarray  # [S, N] int32
    scores: dict[str, np.ndarray]  # detector -> [S, N]
    metrics: dict[str, dict[str, np.ndarray]]  # detector -> metric -> [S]
    logits: np.ndarray | None = None  # [S, N, C]; None if the graph is sharded


def trained(states: State) -> Trained:
    """Returns what detectors need of trained runs: their best parameters."""
    return states.best, states.best_aux


def predictor(task: Task) -> Callable[[Trained], Predict]:
    """Returns a function from one run's parameters to the model as detectors see it."""

    def bind(found: Trained) -> Predict:
        def predict(graph: jraph.GraphsTuple) -> Outputs:
            return task.predict(*found, graph)

        return predict

    return bind


def score_all(
    task: Task,
    found: Trained,
    graph: jraph.GraphsTuple,
    splits: Split,
    detectors: Sequence[str],
) -> tuple[Array, dict[str, Array]]:
    """Returns logits [S, N, C] and scores {detector: [S, N]} of all runs [S]."""
    chosen = tuple((name, named(name)) for name in detectors)
    return _score_all(task, chosen, graph, found, splits)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _score_all(task, detectors, graph, found, splits):
    def one(run):
        found, split = run
        predict = remember(predictor(task)(found), graph)
        scores = {name: score(predict, graph, split) for name, score in detectors}
        return predict(graph).logits, scores

    return jax.lax.map(one, (found, splits))


def score(
    task: Task,
    found: Trained,
    graph: jraph.GraphsTuple,
    splits: Split,
    detectors: Sequence[str],
) -> Scored:
    """Scores and measures all runs on a graph that is in one place."""
    logits, scores = score_all(task, found, graph, splits, detectors)
    measured = jax.device_get(
        {name: evaluate(values, logits, splits) for name, values in scores.items()}
    )
    logits, scores = jax.device_get((logits, scores))
    return Scored(logits.argmax(-1).astype(np.int32), scores, measured, logits)


def check_shardable(method: Method) -> None:
    """Raises InputError for a method that needs the whole graph in one place."""
    if method.prepare is not None:
        raise InputError(
            f"The method of {method.backbone} looks at the whole graph before training "
            "and cannot be sharded: leave the axis graph of --mesh at 1."
        )


def score_sharded(
    task: Task,
    found: Trained,
    sharded: Sharded,
    splits: Split,
    detectors: Sequence[str],
) -> Scored:
    """Scores and measures all runs on a sharded graph, splits [S, P B] by place."""
    total, rows = len(splits.labels), sharded.mesh.shape[RUNS]
    # Rows of devices take equally many runs, the last ones some that are done twice.
    runs = np.arange(-(-total // rows) * rows) % total
    found, splits = jax.tree.map(lambda leaf: leaf[runs], (found, splits))
    chosen = tuple((name, named(name)) for name in detectors)
    program = _sharded_program(task, chosen, sharded.mesh)
    found = placement.put(found, sharded.mesh, P(RUNS))
    splits = placement.put(splits, sharded.mesh, P(RUNS, GRAPH))
    values = placement.fetch(program(sharded.graph, found, splits))
    predictions, scores, measured = jax.tree.map(lambda leaf: leaf[:total], values)
    from_shards = sharded.layout.from_shards
    return Scored(from_shards(predictions), jax.tree.map(from_shards, scores), measured)


@functools.lru_cache(maxsize=64)
def _sharded_program(task: Task, detectors: tuple, mesh: Mesh):
    def body(graph, found, splits):
        def one(run):
            return _one(task, detectors, here, *run)

        with graphs.on_device(graph) as here:
            return jax.lax.map(one, (found, splits))

    by_node = P(RUNS, GRAPH)
    return jax.jit(
        jax.shard_map(
            body,
            mesh=mesh,
            in_specs=(P(GRAPH), P(RUNS), by_node),
            out_specs=(by_node, by_node, P(RUNS)),
            check_vma=False,
        )
    )


def _one(task, detectors, graph, found, split) -> tuple[Array, Mapping, Mapping]:
    predict = remember(predictor(task)(found), graph)
    logits = predict(graph).logits
    scores = {name: score(predict, graph, split) for name, score in detectors}
    measured: dict[str, Any] = {
        name: metrics.evaluate(values, logits, split) for name, values in scores.items()
    }
    return jnp.argmax(logits, -1).astype(jnp.int32), scores, measured
