"""`run`: trains a method on a data set, both by name if need be."""

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jax.sharding import Mesh

from oodgat_jax import datasets, methods, training
from oodgat_jax.datasets import arrays, streaming
from oodgat_jax.detectors import DETECTORS
from oodgat_jax.experiment.execution import execute, split_seeds
from oodgat_jax.experiment.result import Result
from oodgat_jax.losses import REGULARIZERS
from oodgat_jax.methods import METHODS, Method, recipes
from oodgat_jax.registry import check_names
from oodgat_jax.training.checkpoints import Checkpoints
from oodgat_jax.training.mesh import AXES
from oodgat_jax.types import Dataset, InputError, StreamedGraph


def run(
    dataset: str | Dataset | StreamedGraph,
    method: str | Method = "oodgat",
    *,
    splits: int | Sequence[int] = 3,
    seeds: int | Sequence[int] = 3,
    settings: Mapping[str, Any] | Sequence[str] = (),
    regularizers: Sequence[str] | None = None,
    detectors: Sequence[str] | None = None,
    exposure: Any = None,
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
      exposure: nodes known to be OOD, [N] bool or their numbers, which training may
        learn from; no split has them for validation or test.
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
    if exposure is not None:
        mask = arrays.as_mask(exposure, dataset.num_nodes)
        dataset = dataset._replace(exposure=mask)
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
