"""Graph learning with out-of-distribution nodes, in JAX.

  import oodgat_jax as og

  result = og.run("digits", "oodgat", splits=3, seeds=3)
  print(result)

`run` trains a method on a data set; `register_*` add regularizers, detectors,
backbones, methods and data sets, which every function and binary then knows by name;
`OODGATClassifier` answers for a graph of your own; `testing` checks what you add.
"""

from typing import TYPE_CHECKING, Any

from oodgat_jax import gkde as _gkde  # registers itself
from oodgat_jax import gpn as _gpn
from oodgat_jax.datasets import DATASETS, from_arrays, load, register_dataset
from oodgat_jax.detectors import DETECTORS, register_detector
from oodgat_jax.experiment import Result, run
from oodgat_jax.losses import REGULARIZERS, register_regularizer
from oodgat_jax.methods import METHODS, Method, register_method
from oodgat_jax.models import BACKBONES, register_backbone
from oodgat_jax.training import Checkpoints, Run, Task, use_cores
from oodgat_jax.types import Dataset, InputError, Outputs, Split

if TYPE_CHECKING:
    from oodgat_jax import testing
    from oodgat_jax.estimator import OODGATClassifier

__all__ = [
    "BACKBONES",
    "DATASETS",
    "DETECTORS",
    "METHODS",
    "REGULARIZERS",
    "Checkpoints",
    "Dataset",
    "InputError",
    "Method",
    "OODGATClassifier",
    "Outputs",
    "Result",
    "Run",
    "Split",
    "Task",
    "from_arrays",
    "load",
    "register_backbone",
    "register_dataset",
    "register_detector",
    "register_method",
    "register_regularizer",
    "run",
    "testing",
    "use_cores",
]

del _gkde, _gpn


def __getattr__(name: str) -> Any:
    """Imports late what takes a second to import: scikit-learn's part."""
    import importlib

    if name == "OODGATClassifier":
        return importlib.import_module("oodgat_jax.estimator").OODGATClassifier
    if name == "testing":
        return importlib.import_module("oodgat_jax.testing")
    raise AttributeError(f"module 'oodgat_jax' has no attribute {name!r}")
