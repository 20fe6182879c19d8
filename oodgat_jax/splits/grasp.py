"""GRASP's protocol: the first classes are OOD, 10 % / 10 % / 80 % of the others.

The published code draws one permutation of the known nodes from numpy's generator,
seeded by the number of the run from 1 on; these are the same nodes.
"""

from oodgat_jax.splits import shares
from oodgat_jax.splits.assembly import random_state
from oodgat_jax.splits.shift import Shift
from oodgat_jax.types import Dataset, InputError, Split

SEEDS = (1, 2, 3, 4, 5)  # of the published runs
# How many classes, from 0 on, are OOD. Cora, Photo and CS are GRASP's; for the others
# nothing is published, and about half of the classes are taken.
LEFT_OUT = {
    "cora": 4,
    "citeseer": 3,
    "pubmed": 1,
    "amazon-photo": 5,
    "amazon-computers": 5,
    "coauthor-cs": 5,
}
_TRAIN, _VAL = 0.1, 0.1


def under_grasp(dataset: Dataset) -> Shift:
    """Returns a data set with GRASP's classes left out."""
    count = LEFT_OUT.get(dataset.name)
    if count is None:
        raise InputError(
            f"GRASP's protocol leaves no classes of {dataset.name} out: choose from "
            f"{', '.join(LEFT_OUT)}."
        )
    known = range(count, shares.num_all_classes(dataset))
    changed = shares.leave_out(dataset, known)
    return Shift(changed, changed, changed, draw_grasp)


def draw_grasp(dataset: Dataset, seed: int) -> Split:
    """Draws 10 % train, 10 % validation and 80 % test nodes of the known ones."""
    nodes = shares.known_nodes(dataset)
    parts = shares.random_shares(nodes, random_state(seed), _TRAIN, _VAL)
    return shares.against_all_others(dataset, parts)
