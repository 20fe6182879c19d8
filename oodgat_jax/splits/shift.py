"""Shift: what is learned from and what is scored, under one protocol."""

from collections.abc import Callable
from typing import NamedTuple

from oodgat_jax.types import Dataset, Split


class Shift(NamedTuple):
    """A data set and a shift of it.

    Under a shift of structure or features the OOD nodes are those of another graph, and
    a network that is trained on `learned` never sees it. What is `scored` begins with
    the nodes of `learned`.
    """

    learned: Dataset  # for methods without examples of OOD
    exposed: Dataset  # for those with; begins with the nodes of `learned`
    scored: Dataset  # whose ID test nodes are told from its OOD nodes
    draw: Callable[[Dataset, int], Split]  # of each of the three
