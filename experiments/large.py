"""Graphs by name that no table holds: generated ones, and OGB's from a folder.

generated-NODES-EDGES    made part by part, with known and unknown communities
ogbn-NAME                from DATA_DIR/ogbn_NAME, in OGB's file layout
"""

import os
import pathlib
import re

from oodgat_jax.datasets import ogb
from oodgat_jax.datasets.communities import Communities
from oodgat_jax.datasets.loading import DATA_DIR_VARIABLE
from oodgat_jax.types import InputError, Large

TEST_SIZE = 1000


def is_large(name: str) -> bool:
    """Whether a name means a graph that is read part by part."""
    return name.startswith(("generated-", "ogbn-"))


def open_large(name: str, data_dir: str | None) -> Large:
    """The graph of that name, of which only labels are read."""
    if name.startswith("ogbn-"):
        return _ogb(name, data_dir or os.environ.get(DATA_DIR_VARIABLE))
    numbers = re.fullmatch(r"generated-(\d+)-(\d+)", name)
    if not numbers:
        raise InputError(
            f"--dataset=generated-NODES-EDGES takes two whole numbers, not '{name}'."
        )
    nodes, edges = map(int, numbers.groups())
    # Small graphs have small communities, so that every class has one.
    size = max(1, min(1000, nodes // 16))
    test_size = max(1, min(TEST_SIZE, nodes // 8))
    return Communities(nodes, edges, size=size).open(test_size)


def _ogb(name: str, data_dir: str | None) -> Large:
    if not data_dir:
        raise InputError(
            f"{name} is read from a folder: give the one that holds "
            f"{name.replace('-', '_')} with --data_dir."
        )
    folder = pathlib.Path(data_dir) / name.replace("-", "_")
    # Citations are read both ways, as the small citation graphs are.
    return ogb.open_folder(folder, test_size=TEST_SIZE)
