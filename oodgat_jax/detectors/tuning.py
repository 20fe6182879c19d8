"""Settings of detectors, chosen on validation; and those best on test, as oracle."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from oodgat_jax import metrics
from oodgat_jax.detectors.table import FACTORIES, GRIDS, Settings
from oodgat_jax.types import Array, Detector, Outputs, Predict, Split

Predictor = Callable[[Any], Predict]  # parameters -> predict


class Tuned(NamedTuple):
    """AUROC of every setting in every run, from which one serves all runs."""

    grid: Sequence[Settings]  # G settings
    val_auroc: np.ndarray  # [G, S], on validation nodes, ID and OOD
    test_auroc: np.ndarray  # [G, S], on test nodes

    @property
    def chosen(self) -> Settings:
        """Returns the settings with the best mean AUROC on validation."""
        return self.grid[_best(self.val_auroc)]

    @property
    def oracle(self) -> Settings:
        """Returns the best on test, as the paper tunes: no detector may know these."""
        return self.grid[_best(self.test_auroc)]


def tune(
    name: str,
    predictor: Predictor,
    params: Any,
    graph: jraph.GraphsTuple,
    splits: Split,
    grid: Sequence[Settings] | None = None,
) -> Tuned:
    """Tries a detector's settings on all runs at once.

    Settings that are floats are traced, so that they share one compilation; others
    (whole numbers, names, switches) are part of the program.

    Args:
      name: key of FACTORIES.
      predictor: one run's parameters -> predict.
      params: parameters, stacked [S].
      graph: shared by all runs.
      splits: stacked [S].
      grid: GRIDS[name] by default.
    """
    factory = FACTORIES[name]
    grid = GRIDS[name] if grid is None else grid
    found = np.full((len(grid), 2, len(splits.train)), np.nan)
    for rows, fixed, floats in programs(grid):

        def make(floats: Settings, fixed: Settings = fixed) -> Detector:
            return factory(**fixed, **floats)

        found[rows] = _aurocs(make, predictor, floats, params, graph, splits)
    return Tuned(grid, found[:, 0], found[:, 1])


def score_runs(
    detector: Detector,
    predictor: Predictor,
    params: Any,
    graph: jraph.GraphsTuple,
    splits: Split,
) -> Array:
    """Scores all runs with one detector: [S, N]; arguments as in `tune`."""

    def one(graph: jraph.GraphsTuple, run: tuple[Any, Split]) -> Array:
        params, split = run
        return detector(remember(predictor(params), graph), graph, split)

    return _over_runs(one, graph, (params, splits))


def remember(predict: Predict, graph: jraph.GraphsTuple) -> Predict:
    """Caches `predict(graph)`; other graphs are evaluated as usual."""
    outputs = predict(graph)

    def remembered(asked: jraph.GraphsTuple) -> Outputs:
        return outputs if asked is graph else predict(asked)

    return remembered


def _best(aurocs: np.ndarray) -> int:
    """Returns the first of the rows [G, S] with the highest mean; a NaN never wins."""
    return int(np.argmax(np.nan_to_num(aurocs.mean(axis=1), nan=-1.0)))


def programs(grid: Sequence[Settings]) -> list[tuple[list[int], Settings, dict]]:
    """Groups rows of the grid that share a program: (rows, fixed, {name: floats})."""
    groups: dict[tuple, list[int]] = {}
    for row, settings in enumerate(grid):
        pairs = sorted(settings.items())
        kind = tuple((name, None if _is_float(v) else v) for name, v in pairs)
        groups.setdefault(kind, []).append(row)
    found = []
    for kinds, rows in groups.items():
        fixed = {name: grid[rows[0]][name] for name, v in kinds if v is not None}
        traced = [name for name, value in kinds if value is None]
        floats = {name: np.array([grid[r][name] for r in rows]) for name in traced}
        found.append((rows, fixed, floats))
    return found


def _is_float(value: Any) -> bool:
    return isinstance(value, float)


def _aurocs(
    make: Callable[[Settings], Detector],
    predictor: Predictor,
    floats: dict[str, np.ndarray],
    params: Any,
    graph: jraph.GraphsTuple,
    splits: Split,
) -> np.ndarray:
    """Computes validation and test AUROC of a program's settings: [G', 2, S]."""

    def one(graph: jraph.GraphsTuple, run: tuple[Any, Split, dict]) -> Array:
        params, split, floats = run
        predict = remember(predictor(params), graph)

        def both(floats: dict) -> Array:
            scores = make(floats)(predict, graph, split)
            masks = (split.val, split.test)
            return jnp.stack([metrics.auroc(scores, split.is_ood, m) for m in masks])

        return jax.lax.map(both, floats) if floats else both({})[None]

    repeated = {
        name: jnp.broadcast_to(jnp.asarray(v, jnp.float32), (len(splits.train), len(v)))
        for name, v in floats.items()
    }
    return np.moveaxis(
        np.asarray(_over_runs(one, graph, (params, splits, repeated))), 0, -1
    )


def _over_runs(one: Callable, graph: jraph.GraphsTuple, runs: Any) -> Array:
    """Calls `one(graph, run)` for every run of a stack, compiled once."""
    # The graph is an argument: arrays captured by closure would become constants.
    program = jax.jit(lambda graph, runs: jax.lax.map(lambda r: one(graph, r), runs))
    return program(graph, jax.tree.map(jnp.asarray, runs))
