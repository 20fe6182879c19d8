"""The paper's protocol: exactly the nodes that the authors' code draws for a seed."""

import numpy as np

from oodgat_jax.splits.assembly import (
    enough,
    expose,
    exposed_nodes,
    from_ids,
    other_class_nodes,
    random_state,
)
from oodgat_jax.types import Dataset, InputError, Split


def draw(
    dataset: Dataset, seed: int, *, train_per_class: int = 20, val_per_class: int = 10
) -> Split:
    """Draws the paper's split for a seed.

    Per ID class `train_per_class` train and `val_per_class` validation nodes, as many
    OOD validation nodes as ID ones, and `test_size` ID and as many OOD test nodes.
    The first OOD nodes of the draw, as many as there are train nodes, stay unused.
    The data set's exposure nodes, if it has any, are not drawn for anything else.
    """
    _check_sizes(dataset, train_per_class, val_per_class)
    random = random_state(seed)
    pool = np.flatnonzero(np.isin(dataset.labels, dataset.id_classes))
    others, exposed = _other_nodes(dataset), exposed_nodes(dataset)
    train, val = _draw_per_class(dataset, random, train_per_class, val_per_class)
    # The authors permute the list of a set difference, so its order, which follows
    # from how CPython keeps integers in sets, is part of the draw.
    rest = list(set(pool.tolist()) - set(train.tolist()) - set(val.tolist()))
    test = random.permutation(rest)[: dataset.test_size]
    others = random.permutation(others)[train.size :]
    val_ood, test_ood = np.split(others[: val.size + dataset.test_size], [val.size])
    split = from_ids(
        dataset.labels,
        dataset.id_classes,
        train,
        np.concatenate([val, val_ood]),
        np.concatenate([test, test_ood]),
    )
    return expose(split, exposed)


def _other_nodes(dataset: Dataset) -> np.ndarray:
    """Returns ids of the OOD nodes that may be drawn."""
    others = other_class_nodes(dataset.labels, dataset.id_classes)
    return others[~exposed_nodes(dataset)[others]]


def _check_sizes(dataset: Dataset, train_per_class: int, val_per_class: int) -> None:
    """Refuses a protocol that the data set has too few nodes for."""
    per_class = train_per_class + val_per_class
    if train_per_class < 1 or val_per_class < 0 or dataset.test_size < 1:
        raise InputError(
            f"A split needs at least 1 train, 0 validation and 1 test node, not "
            f"{train_per_class}, {val_per_class} and {dataset.test_size}."
        )
    for label in dataset.id_classes:
        found = int((dataset.labels == label).sum())
        enough(dataset.name, f"nodes of class {label}", found, per_class)
    labeled = per_class * dataset.num_classes
    num_id = int(np.isin(dataset.labels, dataset.id_classes).sum())
    num_ood = _other_nodes(dataset).size
    for side, found in (("ID", num_id), ("OOD", num_ood)):
        enough(dataset.name, f"{side} nodes", found, labeled + dataset.test_size)


def _draw_per_class(
    dataset: Dataset, random: np.random.RandomState, num_train: int, num_val: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draws train and validation nodes, per ID class in ascending order."""
    train, val = [], []
    for label in sorted(dataset.id_classes):
        nodes = np.flatnonzero(dataset.labels == label)
        chosen = random.choice(nodes, num_train + num_val, replace=False)
        train.append(chosen[:num_train])
        val.append(chosen[num_train:])
    return np.concatenate(train), np.concatenate(val)
