"""Digits whose neighbors are found once in every process; many tests train on them."""

import functools

from oodgat_jax.datasets import loading
from oodgat_jax.datasets.readers import digits

_found = functools.cache(digits.neighbor_graph)


def use():
    """Keeps the neighbors for both that ask for them."""
    digits.neighbor_graph = loading.neighbor_graph = _found
