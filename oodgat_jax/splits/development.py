"""For developing a method: nodes to judge by that no test has, other known classes."""

import numpy as np

from oodgat_jax.splits.paper import draw
from oodgat_jax.types import Dataset, InputError, Split

SHARES = (0.3, 0.7)  # of the nodes that random partitions leave known
FEWEST = 60  # nodes of a known class
TRIES = 10_000


def draw_development(dataset: Dataset, seed: int) -> Split:
    """Draws the paper's split, with the nodes that it uses for nothing as test nodes.

    What is chosen by them has not seen the test nodes of this split.
    """
    split = draw(dataset, seed)
    used = split.train | split.val | split.test | split.exposure
    return split._replace(test=~used & (split.labels >= 0))


def random_partition(dataset: Dataset, seed: int) -> Dataset:
    """Returns the data set with other known classes, drawn at random.

    At least two, with at least 60 nodes each and 30 to 70 % of the labeled nodes
    together. Half of the smaller side, less what train and validation take, is to test.

    Raises:
      InputError: no such choice was found.
    """
    random = np.random.default_rng(seed)
    names, sizes = np.unique(dataset.labels[dataset.labels >= 0], return_counts=True)
    for _ in range(TRIES):
        count = random.integers(2, max(len(names), 3))
        chosen = np.sort(random.permutation(len(names))[:count])
        share = sizes[chosen].sum() / sizes.sum()
        if SHARES[0] <= share <= SHARES[1] and sizes[chosen].min() >= FEWEST:
            return _with_known(dataset, names, sizes, chosen)
    raise InputError(
        f"{dataset.name} has no two classes of {FEWEST} nodes that hold 30 to 70 % of "
        "its nodes: choose another data set."
    )


def random_partitions(dataset: Dataset, count: int) -> list[Dataset]:
    """Returns the different ones among the partitions of the seeds 0, 1, ..."""
    found = [random_partition(dataset, seed) for seed in range(count)]
    return list({each.id_classes: each for each in found}.values())


def _with_known(
    dataset: Dataset, names: np.ndarray, sizes: np.ndarray, chosen: np.ndarray
) -> Dataset:
    known = int(sizes[chosen].sum())
    smaller = min(known, int(sizes.sum()) - known)
    return dataset._replace(
        id_classes=tuple(names[chosen].tolist()),
        test_size=max(smaller // 2 - 30 * len(chosen), 1),
    )
