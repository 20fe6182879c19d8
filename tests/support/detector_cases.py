"""A small graph, a linear model on it, and both again in plain numpy."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from oodgat_jax import graphs
from oodgat_jax.graphs import sparse
from oodgat_jax.types import Outputs, Split

CLASSES, PER_CLASS, OOD = 3, 20, 40
NODES = CLASSES * PER_CLASS + OOD + 1  # the last node has no neighbors
WIDTH = 20  # of the features, and of the hidden layer
HEADS = 2


class Case(NamedTuple):
    """The same thing twice: for the library, and as dense float64 arrays."""

    graph: object
    split: Split
    predict: object
    features: np.ndarray  # [N, F]
    adjacency: np.ndarray  # [N, N], row i has the senders to i, no self-loops
    weights: np.ndarray  # [F, C]


def make(path: str = "sparse", stored: str = "sparse", seed: int = 0) -> Case:
    """Communities: three ID classes and OOD nodes of another direction, few links."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(CLASSES + 1), [PER_CLASS] * CLASSES + [OOD + 1])
    features = _features(random, labels)
    adjacency = _adjacency(random, labels)
    senders, receivers = np.nonzero(adjacency.T)
    matrix = scipy.sparse.csr_array(features.astype(np.float32))
    given = matrix if stored == "sparse" else features.astype(np.float32)
    graph = graphs.from_edges(given, senders, receivers, path)
    if stored == "sparse":
        graph = graph._replace(nodes=jnp_tree(sparse.features(matrix)))
    weights = np.zeros((WIDTH, CLASSES))
    weights[:CLASSES] = 2.0 * np.eye(CLASSES)
    weights[CLASSES:-1] = random.normal(size=(WIDTH - CLASSES - 1, CLASSES)) / 10
    split = draw(random, labels)
    return Case(graph, split, linear(weights), features, adjacency, weights)


def jnp_tree(features):
    """SparseFeatures on the device."""
    return jax.tree.map(jnp.asarray, features)


def linear(weights: np.ndarray):
    """hidden = Ahat x, logits = hidden W, OOD logits from the last feature."""
    weights = jnp.asarray(weights, jnp.float32)

    def predict(graph) -> Outputs:
        x = graph.nodes
        if isinstance(x, sparse.SparseFeatures):
            x = sparse.matmul(x.values, x.pattern, jnp.eye(WIDTH))
        hidden = graphs.aggregate(graph, graphs.symmetric_weights(graph), x)
        ood = hidden[:, -1:] - 0.5 + jnp.arange(HEADS)
        return Outputs(hidden @ weights, hidden, (ood, 2.0 * ood))

    return predict


def hidden(case: Case, features: np.ndarray | None = None) -> np.ndarray:
    """The linear model's hidden layer in float64."""
    return smoothing(case) @ (case.features if features is None else features)


def smoothing(case: Case) -> np.ndarray:
    """Ahat as a dense matrix."""
    looped = case.adjacency + np.eye(NODES)
    scale = 1.0 / np.sqrt(looped.sum(1))
    return scale[:, None] * looped * scale


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    exp = np.exp(logits - logits.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def scramble(split: Split, labels: np.ndarray, is_ood: np.ndarray, seed=0) -> Split:
    """Other labels and is_ood where the two masks say so."""
    random = np.random.default_rng(seed)
    return split._replace(
        labels=np.where(labels, random.integers(-1, CLASSES + 1, NODES), split.labels),
        is_ood=np.where(is_ood, random.random(NODES) < 0.5, split.is_ood),
    )


def draw(random: np.random.Generator, labels: np.ndarray) -> Split:
    """Eleven train, four validation and five test nodes a class, as many OOD ones."""
    train, val, test = np.zeros((3, NODES), bool)
    for label in range(CLASSES):
        nodes = random.permutation(np.flatnonzero(labels == label))
        train[nodes[:11]] = val[nodes[11:15]] = test[nodes[15:]] = True
    others = random.permutation(np.flatnonzero(labels == CLASSES))
    val[others[:12]] = test[others[12:27]] = True
    return Split(labels.astype(np.int32), labels == CLASSES, train, val, test)


def _features(random: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    features = random.normal(size=(NODES, WIDTH)) / 4
    features[random.random(features.shape) < 0.5] = 0.0
    known = labels < CLASSES
    features[known, labels[known]] += 3.0
    features[~known, -1] += 3.0
    return features.astype(np.float32).astype(np.float64)


def _adjacency(random: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    same = labels[:, None] == labels
    adjacency = random.random((NODES, NODES)) < np.where(same, 0.2, 0.02)
    adjacency = (adjacency | adjacency.T) & ~np.eye(NODES, dtype=bool)
    adjacency[-1] = adjacency[:, -1] = False
    return adjacency.astype(float)
