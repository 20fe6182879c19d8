"""GPN's protocol: the last classes are OOD and stay in the graph ("poisoning").

Of every class, known or not, 5 % are drawn for training, then 15 % of the rest for
validation, then 80 % of what is left for testing, by numpy's generator as the published
code does: the same nodes. Left-out nodes of the first draw are not labeled, those of
the second are not validated on, and those of the third are the OOD test nodes.
"""

import numpy as np

from oodgat_jax.splits import shares
from oodgat_jax.splits.assembly import from_ids, random_state
from oodgat_jax.splits.shift import Shift
from oodgat_jax.types import Dataset, InputError, Split

SEED = 42  # of the published configurations
# How many of the last classes are left out; from the published code.
LEFT_OUT = {
    "cora": 3,
    "citeseer": 2,
    "pubmed": 1,
    "amazon-photo": 3,
    "amazon-computers": 5,
    "coauthor-cs": 4,
}
_SHARES = (0.05, 0.15, 0.8)  # of train, validation and test


def under_gpn(dataset: Dataset) -> Shift:
    """Returns a data set with GPN's classes left out."""
    count = LEFT_OUT.get(dataset.name)
    if count is None:
        raise InputError(
            f"GPN's protocol leaves no classes of {dataset.name} out: choose from "
            f"{', '.join(LEFT_OUT)}."
        )
    known = range(shares.num_all_classes(dataset) - count)
    changed = shares.leave_out(dataset, known)
    return Shift(changed, changed, changed, draw_gpn)


def draw_gpn(dataset: Dataset, number: int, *, seed: int = SEED) -> Split:
    """Draws split `number`, from 1 on, of those that the published code makes one after
    the other from one seed."""
    if number < 1:
        raise InputError(f"GPN's splits are numbered from 1 on, not {number}.")
    random = random_state(seed)
    for _ in range(number):
        train, val, test = _draw(dataset.labels, random)
    is_known = np.isin(dataset.labels, dataset.id_classes)
    parts = train[is_known[train]], val[is_known[val]], test
    return from_ids(dataset.labels, dataset.id_classes, *parts)


def _draw(labels: np.ndarray, random: np.random.RandomState) -> list[np.ndarray]:
    """Draws each share of every class from the nodes that are still free."""
    free = labels >= 0
    drawn = []
    for share in _SHARES:
        chosen = []
        for label in range(labels.max() + 1):
            nodes = np.flatnonzero(free & (labels == label))
            size = int(share * len(nodes))
            chosen.append(random.choice(nodes, size, replace=False))
        drawn.append(np.concatenate(chosen))
        free[drawn[-1]] = False
    return drawn
