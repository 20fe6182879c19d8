"""Node ids -> a checked Split; splits stacked and hashed."""

import hashlib
import operator
from collections.abc import Sequence

import numpy as np

from oodgat_jax.datasets.arrays import as_mask
from oodgat_jax.types import AnyArray, Dataset, InputError, Split, StreamedGraph


def from_ids(
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


def expose(split: Split, nodes: AnyArray) -> Split:
    """Returns the split with nodes that training may use as examples of OOD.

    Args:
      split: who is labeled, validated on and tested on.
      nodes: [N] bool, or node numbers.

    Raises:
      InputError: one of them is a train, validation or test node.
    """
    exposed = split._replace(exposure=as_mask(nodes, len(np.asarray(split.labels))))
    check_exposure(exposed)
    return exposed


def check_exposure(split: Split) -> None:
    """Raises InputError if exposure nodes are train, validation or test nodes too."""
    exposed = np.asarray(split.exposure)
    for name in ("train", "val", "test"):
        both = np.argwhere(exposed & np.asarray(getattr(split, name)))
        if both.size:
            kind = {"val": "validation"}.get(name, name)
            raise InputError(
                f"Node {both[0][-1]} is an exposure node and a {kind} node: examples "
                f"of OOD for training must not be {kind} nodes."
            )


def stack(splits: Sequence[Split]) -> Split:
    """Stacks splits of one data set on a leading axis [S]."""
    if not splits:
        raise InputError("No splits were given to stack; draw at least one.")
    if len({np.shape(split.labels) for split in splits}) > 1:
        raise InputError("The splits to stack are of different data sets.")
    return Split(*(np.stack(leaves) for leaves in zip(*splits, strict=True)))


def digest(split: Split) -> str:
    """Hashes a split's arrays with SHA-256, the same on every machine.

    Exposure counts only if there is any, so that splits without it keep their digest.
    """
    total = hashlib.sha256()
    for name, leaf in split._asdict().items():
        leaf = np.ascontiguousarray(leaf)
        leaf = leaf.astype("<i4" if name == "labels" else "|b1")
        if name == "exposure" and not leaf.any():
            continue
        total.update(f"{name}{leaf.shape}".encode())
        total.update(leaf.tobytes())
    return total.hexdigest()


def random_state(seed: int) -> np.random.RandomState:
    """Returns the generator of a split seed, checked."""
    try:
        return np.random.RandomState(operator.index(seed))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The split seed {seed!r} must be an integer in 0..{2**32 - 1}."
        ) from error


def enough(name: str, what: str, found: int, needed: int) -> None:
    """Raises InputError unless there are as many as the split needs."""
    if found < needed:
        raise InputError(
            f"{name} has {found} {what} where the split needs {needed}: "
            "take a larger graph, or a split of fewer nodes."
        )


def other_class_nodes(labels: np.ndarray, id_classes: Sequence[int]) -> np.ndarray:
    """Returns ids of the OOD nodes; a node without a label is neither ID nor OOD."""
    return np.flatnonzero((labels >= 0) & ~np.isin(labels, id_classes))


def exposed_nodes(dataset: Dataset | StreamedGraph) -> np.ndarray:
    """Returns the mask [N] of the data set's exposure nodes; nobody by default."""
    if dataset.exposure is None:
        return np.zeros(dataset.num_nodes, bool)
    exposed = as_mask(dataset.exposure, dataset.num_nodes)
    known = np.flatnonzero(exposed & np.isin(dataset.labels, dataset.id_classes))
    if known.size:
        raise InputError(
            f"Node {known[0]} is an exposure node, but of a known class: exposure is "
            "for nodes of other classes, or without a label."
        )
    return exposed
