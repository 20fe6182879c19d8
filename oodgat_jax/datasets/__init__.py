"""Raw files -> Dataset: the table of data sets, their readers, download and cache."""

from oodgat_jax.datasets.loading import at_hand, digits, load
from oodgat_jax.datasets.records import Source
from oodgat_jax.datasets.table import DATASETS

__all__ = ["DATASETS", "Source", "at_hand", "digits", "load"]
