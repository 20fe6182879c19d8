"""Generated graphs with known and unknown classes, for tests.

Communities as classes, heavy-tailed degrees, features of chosen difficulty.
"""

import numpy as np

from oodgat_jax.types import Dataset, InputError


def generate(
    num_nodes: int,
    num_edges: int,
    num_features: int = 128,
    *,
    num_classes: int = 8,
    num_id: int = 4,
    homophily: float = 0.8,
    signal: float = 1.0,
    tail: float = 3.5,
    test_size: int | None = None,
    seed: int = 0,
) -> Dataset:
    """A symmetric graph with about `num_edges` directed edges.

    Args:
      num_nodes: N.
      num_edges: directed edges drawn, self-loops and duplicates still among them.
      num_features: F; dense standard normal features around a mean per class.
      num_classes: equally likely classes, the first `num_id` of them known.
      num_id: number of known classes.
      homophily: share of edges drawn inside of a class.
      signal: distance of the class means from zero; 0 makes features useless.
      tail: exponent of the power law of the degrees, above 2; larger is more even.
      test_size: ID test nodes of a split, and as many OOD ones; N / 8 by default.
      seed: the same seed gives the same graph.
    """
    if not 0 < num_id < num_classes <= num_nodes:
        raise InputError(
            f"A generated graph needs 0 < known classes < classes <= nodes, not "
            f"{num_id}, {num_classes} and {num_nodes}."
        )
    rng = np.random.default_rng(seed)
    labels = rng.integers(num_classes, size=num_nodes).astype(np.int32)
    half = _edges(rng, labels, num_classes, num_edges // 2, homophily, tail)
    senders, receivers = np.concatenate([half, half[::-1]], axis=1)
    return Dataset(
        name="made",
        features=_features(rng, labels, num_classes, num_features, signal),
        senders=senders,
        receivers=receivers,
        labels=labels,
        id_classes=tuple(range(num_id)),
        test_size=num_nodes // 8 if test_size is None else test_size,
    )


def _edges(
    rng: np.random.Generator,
    labels: np.ndarray,
    num_classes: int,
    count: int,
    homophily: float,
    tail: float,
) -> np.ndarray:
    """[2, count] int32: one end by popularity, the other one mostly of its class."""
    order = np.argsort(labels, kind="stable").astype(np.int32)
    starts = np.searchsorted(labels[order], np.arange(num_classes + 1))
    first = order[_popular(rng, np.zeros(count, int), len(labels), tail)]
    group = np.where(rng.random(count) < homophily, labels[first], num_classes)
    low = np.append(starts[:-1], 0)[group]
    high = np.append(starts[1:], len(labels))[group]
    second = order[_popular(rng, low, high - low, tail)]
    unequal = first != second
    return np.stack([first[unequal], second[unequal]]).astype(np.int32)


def _popular(rng, low, size, tail) -> np.ndarray:
    """Positions low + k, k < size, drawn with probability falling as a power of k."""
    share = rng.random(len(low)) ** ((tail - 1) / (tail - 2))
    return low + np.minimum((share * size).astype(np.int64), size - 1)


def _features(rng, labels, num_classes, num_features, signal) -> np.ndarray:
    means = rng.standard_normal((num_classes, num_features), dtype=np.float32)
    means *= signal / np.linalg.norm(means, axis=1, keepdims=True)
    features = rng.standard_normal((len(labels), num_features), dtype=np.float32)
    features += means[labels]
    return features
