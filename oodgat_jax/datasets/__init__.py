"""Raw files or arrays -> Dataset: the table of data sets, readers, download, cache."""

from oodgat_jax.datasets.array_dataset import from_arrays
from oodgat_jax.datasets.catalog import DATASETS
from oodgat_jax.datasets.loading import digits, is_available, load, register_dataset
from oodgat_jax.datasets.source import Source

__all__ = [
    "DATASETS",
    "Source",
    "digits",
    "from_arrays",
    "is_available",
    "load",
    "register_dataset",
]
