"""Small graphs for tests, odd ones among them."""

import numpy as np

CASES = {  # name: nodes, senders, receivers
    "one node": (1, [], []),
    "no edges": (5, [], []),
    # A loop, a repeat, a star, nodes that only send, nodes without edges.
    "mixed": (9, [0, 0, 1, 1, 1, 2, 3, 4, 5, 6], [0, 1, 0, 0, 2, 1, 1, 1, 1, 1]),
}


def random_edges(nodes, edges, seed, directed=True):
    """Senders and receivers [M], with repeats and loops as chance has it."""
    senders, receivers = np.random.default_rng(seed).integers(0, nodes, (2, edges))
    if directed:
        return senders, receivers
    return np.concatenate([senders, receivers]), np.concatenate([receivers, senders])


def dense_adjacency(nodes, senders, receivers):
    """[N, N] bool with self-loops: does row i receive from column j?"""
    adjacency = np.eye(nodes, dtype=bool)
    adjacency[np.asarray(receivers, int), np.asarray(senders, int)] = True
    return adjacency
