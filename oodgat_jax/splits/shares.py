"""Splits by shares of the known nodes, and by the public Planetoid split.

The protocols of GNNSafe, GRASP and GPN label known nodes only, validate on known nodes
only, and test on the other known nodes against all OOD nodes that are not exposed.
"""

from collections.abc import Sequence

import numpy as np

from oodgat_jax.splits.assembly import (
    enough,
    expose,
    exposed_nodes,
    from_ids,
    other_class_nodes,
)
from oodgat_jax.splits.citation import CITATION_TEST_NODES, CITATION_VAL_NODES
from oodgat_jax.types import Dataset, InputError, Split

Ids = np.ndarray


def random_shares(
    nodes: Ids, random: np.random.RandomState, train: float, val: float
) -> tuple[Ids, Ids, Ids]:
    """Divides nodes at random by the shares of train and validation; test is the rest.

    Numbers are rounded down; the order is one permutation, as the published code has
    it.
    """
    shuffled = nodes[random.permutation(len(nodes))]
    num_train, num_val = int(len(nodes) * train), int(len(nodes) * val)
    first, second, rest = np.split(shuffled, [num_train, num_train + num_val])
    return first, second, rest


def public(dataset: Dataset) -> tuple[Ids, Ids, Ids]:
    """Returns the public train, validation and test nodes of a Planetoid data set.

    These are the leading nodes, the 500 that follow, and the last 1,000 that have a
    label; of joined graphs, those of the first.
    """
    if not dataset.num_public_train:
        raise InputError(f"{dataset.name} has no public split.")
    count = dataset.components[0] if dataset.components else dataset.num_nodes
    start = dataset.num_public_train
    labeled = np.flatnonzero(dataset.labels[:count] >= 0)
    test = labeled[-CITATION_TEST_NODES:]
    return np.arange(start), np.arange(start, start + CITATION_VAL_NODES), test


def known_nodes(dataset: Dataset) -> Ids:
    """Returns the nodes of the known classes, ascending."""
    return np.flatnonzero(np.isin(dataset.labels, dataset.id_classes))


def against_all_others(dataset: Dataset, parts: Sequence[Ids]) -> Split:
    """Returns the split of train, validation and test nodes, of which only known ones
    count; all OOD nodes that are not exposed are test nodes too."""
    is_known = np.isin(dataset.labels, dataset.id_classes)
    train, val, test = (part[is_known[part]] for part in parts)
    enough(dataset.name, "train nodes of known classes", len(train), 1)
    enough(dataset.name, "validation nodes of known classes", len(val), 1)
    exposed = exposed_nodes(dataset)
    others = other_class_nodes(dataset.labels, dataset.id_classes)
    others = others[~exposed[others]]
    test = np.concatenate([test, others])
    return expose(
        from_ids(dataset.labels, dataset.id_classes, train, val, test), exposed
    )


def leave_out(
    dataset: Dataset, id_classes: Sequence[int], exposed: Sequence[int] = ()
) -> Dataset:
    """Returns the data set with other known classes, and some exposed to training."""
    if len(id_classes) < 2:
        raise InputError(
            f"{dataset.name} would be left with {len(id_classes)} known class: a "
            "classifier needs two."
        )
    mask = np.isin(dataset.labels, exposed)
    return dataset._replace(
        id_classes=tuple(sorted(id_classes)), exposure=mask if mask.any() else None
    )


def num_all_classes(dataset: Dataset) -> int:
    """Returns the number of classes, known or not."""
    return int(dataset.labels.max()) + 1
