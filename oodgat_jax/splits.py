"""(Dataset, seed) -> Split, in numpy on the host.

`draw` is the paper's protocol and draws exactly the nodes the authors' code draws for
the same seed, because people compare against it. `draw_citation` is the protocol of
GKDE on the public Planetoid splits. Neither touches numpy's global random state.
"""

import hashlib
import operator
from collections.abc import Sequence

import numpy as np

from oodgat_jax.types import Dataset, InputError, Split

# GKDE's code has these ID classes; the paper's appendix prints them as OOD classes.
CITATION_ID_CLASSES: dict[str, tuple[int, ...]] = {
    "cora": (0, 1, 2, 3),
    "citeseer": (0, 1, 2),
    "pubmed": (0, 1),
}
CITATION_VAL_NODES = 500
CITATION_TEST_NODES = 1000


def draw(
    dataset: Dataset, seed: int, *, train_per_class: int = 20, val_per_class: int = 10
) -> Split:
    """Draws the paper's split for a seed.

    Per ID class `train_per_class` train and `val_per_class` validation nodes, as many
    OOD validation nodes as ID ones, and `test_size` ID and as many OOD test nodes.
    The first OOD nodes of the draw, as many as there are train nodes, stay unused.
    """
    _check_sizes(dataset, train_per_class, val_per_class)
    random = _random_state(seed)
    pool = np.flatnonzero(np.isin(dataset.labels, dataset.id_classes))
    others = _other_class_nodes(dataset.labels, dataset.id_classes)
    train, val = _draw_per_class(dataset, random, train_per_class, val_per_class)
    # The authors permute the list of a set difference, so its order, which follows
    # from how CPython keeps integers in sets, is part of the draw.
    rest = list(set(pool.tolist()) - set(train.tolist()) - set(val.tolist()))
    test = random.permutation(rest)[: dataset.test_size]
    others = random.permutation(others)[train.size :]
    val_ood, test_ood = np.split(others[: val.size + dataset.test_size], [val.size])
    return _split(
        dataset.labels,
        dataset.id_classes,
        train,
        np.concatenate([val, val_ood]),
        np.concatenate([test, test_ood]),
    )


def draw_citation(dataset: Dataset, id_classes: Sequence[int] | None = None) -> Split:
    """GKDE's split of a citation data set, which leaves nothing to chance.

    Train: the public train nodes of the ID classes, which are GKDE's (Cora 0-3,
    Citeseer 0-2, Pubmed 0-1) unless given; they need not be `dataset.id_classes`.
    Validation: the public validation nodes, the 500 that follow the public train nodes.
    Test: all nodes that follow the public train nodes, those for validation included,
    as in GKDE, which validates on nothing; results are means over `evaluation_draws`
    of them. Nodes without a label are in none of the three.
    """
    if not dataset.num_public_train:
        raise InputError(
            f"{dataset.name} has no public train split, which the citation protocol "
            f"needs; use one of {', '.join(CITATION_ID_CLASSES)}."
        )
    if id_classes is None:
        id_classes = CITATION_ID_CLASSES.get(dataset.name, dataset.id_classes)
    labels = np.where(np.isin(dataset.labels, id_classes), dataset.labels, -1)
    train = np.flatnonzero(labels[: dataset.num_public_train] >= 0)
    for label in id_classes:
        found = int((labels[train] == label).sum())
        _enough(dataset.name, f"public train nodes of class {label}", found, 1)
    test = np.flatnonzero(dataset.labels >= 0)
    test = test[test >= dataset.num_public_train]
    val = test[test < dataset.num_public_train + CITATION_VAL_NODES]
    return _split(dataset.labels, id_classes, train, val, test)


def evaluation_draws(
    nodes: np.ndarray, seed: int, *, draws: int = 10, size: int = CITATION_TEST_NODES
) -> np.ndarray:
    """Draws random subsets of a mask [N], without replacement: bool [draws, N]."""
    pool = np.flatnonzero(nodes)
    _enough("The data set", "nodes to evaluate on", pool.size, size)
    random = _random_state(seed)
    drawn = np.zeros((draws, len(nodes)), bool)
    for row in drawn:
        row[random.choice(pool, size, replace=False)] = True
    return drawn


def stack(splits: Sequence[Split]) -> Split:
    """Stacks splits of one data set on a leading axis [S]."""
    if not splits:
        raise InputError("No splits were given to stack; draw at least one.")
    if len({np.shape(split.labels) for split in splits}) > 1:
        raise InputError("The splits to stack are of different data sets.")
    return Split(*(np.stack(leaves) for leaves in zip(*splits, strict=True)))


def digest(split: Split) -> str:
    """Hashes a split's arrays with SHA-256, the same on every machine."""
    total = hashlib.sha256()
    for name, leaf in split._asdict().items():
        leaf = np.ascontiguousarray(leaf)
        leaf = leaf.astype("<i4" if name == "labels" else "|b1")
        total.update(f"{name}{leaf.shape}".encode())
        total.update(leaf.tobytes())
    return total.hexdigest()


def _random_state(seed: int) -> np.random.RandomState:
    try:
        return np.random.RandomState(operator.index(seed))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The split seed {seed!r} must be an integer in 0..{2**32 - 1}."
        ) from error


def _enough(name: str, what: str, found: int, needed: int) -> None:
    if found < needed:
        raise InputError(
            f"{name} has {found} {what} where the split needs {needed}: "
            "take a larger graph, or a split of fewer nodes."
        )


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
        _enough(dataset.name, f"nodes of class {label}", found, per_class)
    labeled = per_class * dataset.num_classes
    num_id = int(np.isin(dataset.labels, dataset.id_classes).sum())
    num_ood = _other_class_nodes(dataset.labels, dataset.id_classes).size
    for side, found in (("ID", num_id), ("OOD", num_ood)):
        _enough(dataset.name, f"{side} nodes", found, labeled + dataset.test_size)


def _other_class_nodes(labels: np.ndarray, id_classes: Sequence[int]) -> np.ndarray:
    """Returns ids of the OOD nodes; a node without a label is neither ID nor OOD."""
    return np.flatnonzero((labels >= 0) & ~np.isin(labels, id_classes))


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


def _split(
    labels: np.ndarray,
    id_classes: Sequence[int],
    train: np.ndarray,
    val: np.ndarray,
    test: np.ndarray,
) -> Split:
    """Builds the split of drawn node ids: labels 0..C-1 by class, C for OOD."""
    classes = sorted(id_classes)
    is_ood = (labels >= 0) & ~np.isin(labels, classes)
    relabeled = np.where(is_ood, len(classes), -1).astype(np.int32)
    for new, old in enumerate(classes):
        relabeled[labels == old] = new
    masks = [np.zeros(labels.size, dtype=bool) for _ in range(3)]
    for mask, nodes in zip(masks, (train, val, test), strict=True):
        mask[nodes] = True
    return Split(relabeled, is_ood, *masks)
