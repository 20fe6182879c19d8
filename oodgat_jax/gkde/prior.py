"""The kernel prior: evidence that spreads from the labeled nodes, on the host.

Distances come from a breadth-first search that starts at the labeled nodes and goes
a few hops, all sources of a block at once: sparse products with the frontier, memory
[N, BLOCK], never all pairs.
"""

import numpy as np
import scipy.sparse

MAX_HOPS = 5  # beyond, exp(-d^2 / 2) <= 2e-8 is lost next to 1 in float32
BLOCK = 128  # sources searched from at a time


def kernel_prior(
    senders: np.ndarray,
    receivers: np.ndarray,
    labels: np.ndarray,
    train: np.ndarray,
    num_classes: int,
    max_hops: int = MAX_HOPS,
) -> np.ndarray:
    """Computes prior_i = 1 + sum over labeled j of exp(-d(i, j)^2 / 2) onehot(y_j).

    d counts hops from j to i along the edges; nodes that are further than `max_hops`,
    or cannot be reached, get no evidence from j. Labels outside `train` are not read.

    Args:
      senders: [E] int.
      receivers: [E] int.
      labels: [N] int, in 0..C-1 where `train` holds.
      train: [N] bool.
      num_classes: C.
      max_hops: how far to search.

    Returns:
      [N, C] float32, 1 without any evidence.
    """
    num_nodes = len(train)
    ones = np.ones(len(senders), np.float32)
    shape = (num_nodes, num_nodes)
    adjacency = scipy.sparse.csr_array((ones, (receivers, senders)), shape=shape)
    prior = np.ones((num_nodes, num_classes))
    for label in range(num_classes):
        sources = np.flatnonzero(train & (labels == label))
        for begin in range(0, len(sources), BLOCK):
            block = sources[begin : begin + BLOCK]
            prior[:, label] += spread(adjacency, block, max_hops)
    return prior.astype(np.float32)


def spread(
    adjacency: scipy.sparse.csr_array, sources: np.ndarray, max_hops: int
) -> np.ndarray:
    """Sums exp(-d(i, j)^2 / 2) over sources j, float64 [N]; adjacency [to, from]."""
    frontier = np.zeros((adjacency.shape[0], len(sources)), np.float32)
    frontier[sources, np.arange(len(sources))] = 1.0
    seen = frontier > 0
    total = seen.sum(1).astype(np.float64)
    for hops in range(1, max_hops + 1):
        reached = (adjacency @ frontier > 0) & ~seen
        if not reached.any():
            break
        total += np.exp(-(hops**2) / 2) * reached.sum(1)
        seen |= reached
        frontier = reached.astype(np.float32)
    return total
