"""Trained runs on a spread graph: predictions, scores and metrics of all of them.

Metrics are computed where the nodes are; what comes back to the host is one number per
node and run, and the metrics.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from oodgat_jax import graphs, methods, metrics
from oodgat_jax.detectors import DETECTORS, remember
from oodgat_jax.methods import Method
from oodgat_jax.sharding import place
from oodgat_jax.sharding.mesh import GRAPH, RUNS
from oodgat_jax.sharding.spread import Spread
from oodgat_jax.types import InputError, Split


class Scored(NamedTuple):
    """Of S runs, as numpy arrays, nodes in the order of the whole graph."""

    predictions: np.ndarray  # [S, N] int32
    scores: dict[str, np.ndarray]  # detector -> [S, N]
    metrics: dict[str, dict[str, np.ndarray]]  # detector -> metric -> [S]


def check(method: Method) -> None:
    """Raises InputError for a method that needs the whole graph in one place."""
    if method.prepare is not None:
        raise InputError(
            f"The method of {method.backbone} looks at the whole graph before training "
            "and cannot be spread over devices: leave the axis graph of --mesh at 1."
        )


def score_all(
    module: nn.Module,
    params: Any,
    spread: Spread,
    splits: Split,
    detectors: Sequence[str],
) -> Scored:
    """Scores and metrics of all runs: params [S], splits [S, P B] of the layout."""
    total, rows = len(splits.labels), spread.mesh.shape[RUNS]
    # Rows of devices take equally many runs, the last ones some that are done twice.
    runs = np.arange(-(-total // rows) * rows) % total
    params, splits = jax.tree.map(lambda leaf: leaf[runs], (params, splits))
    chosen = tuple((name, DETECTORS[name]) for name in detectors)
    program = _program(module, chosen, spread.mesh)
    params = place.put(params, spread.mesh, P(RUNS))
    splits = place.put(splits, spread.mesh, P(RUNS, GRAPH))
    found = place.fetch(program(spread.graph, params, splits))
    found = jax.tree.map(lambda leaf: leaf[:total], found)
    collect = spread.layout.collect
    return Scored(
        collect(found.predictions), jax.tree.map(collect, found.scores), found.metrics
    )


@functools.lru_cache(maxsize=64)
def _program(module: nn.Module, detectors: tuple, mesh: Mesh):
    def body(graph, params, splits):
        def one(run):
            return _one(module, detectors, piece, *run)

        with graphs.on_device(graph) as piece:
            return jax.lax.map(one, (params, splits))

    by_node = P(RUNS, GRAPH)
    return jax.jit(
        jax.shard_map(
            body,
            mesh=mesh,
            in_specs=(P(GRAPH), P(RUNS), by_node),
            out_specs=Scored(by_node, by_node, P(RUNS)),
            check_vma=False,
        )
    )


def _one(module, detectors, graph, params, split) -> Scored:
    predict = remember(methods.predictor(module, params), graph)
    logits = predict(graph).logits
    scores = {name: score(predict, graph, split) for name, score in detectors}
    measured = {
        name: metrics.evaluate(values, logits, split) for name, values in scores.items()
    }
    return Scored(jnp.argmax(logits, -1).astype(jnp.int32), scores, measured)
