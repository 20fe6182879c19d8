"""A node order in which neighbours are near each other, so that blocks need little.

What a spread graph costs is the halo: the nodes of other blocks that a block's edges
come from. Orders are compared by it, and the one that moves least is taken.
"""

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph

from oodgat_jax.sharding import layout


def locality(
    senders: np.ndarray, receivers: np.ndarray, num_nodes: int, blocks: int
) -> np.ndarray | None:
    """The better of the given order and reverse Cuthill-McKee's: [N], None: as given.

    Files often come in an order that means something (by time, by site, by community),
    which a search from a far node cannot know; where the order is arbitrary, the
    search finds most of what there is to find.
    """
    if blocks == 1:
        return None
    candidates = [None, cuthill_mckee(senders, receivers, num_nodes)]
    needs = [
        halo(senders, receivers, layout.even(num_nodes, blocks, order)).max()
        for order in candidates
    ]
    return candidates[int(np.argmin(needs))]


def cuthill_mckee(
    senders: np.ndarray, receivers: np.ndarray, num_nodes: int
) -> np.ndarray:
    """Reverse Cuthill-McKee of the graph, edges taken both ways: [N]."""
    ones = np.ones(len(senders), np.int8)
    shape = (num_nodes, num_nodes)
    matrix = scipy.sparse.csr_array((ones, (receivers, senders)), shape=shape)
    return csgraph.reverse_cuthill_mckee(
        (matrix + matrix.T).tocsr(), symmetric_mode=True
    )


def halo(senders: np.ndarray, receivers: np.ndarray, to: layout.Layout) -> np.ndarray:
    """Nodes that each block needs from each other one: [P, P], zero to itself."""
    rank = np.arange(to.num_nodes)
    if to.order is not None:
        rank[to.order] = np.arange(to.num_nodes)
    reader = to.block_of(rank[receivers]).astype(np.int64)
    wanted = np.unique(reader * to.num_nodes + rank[senders])
    reader, owner = wanted // to.num_nodes, to.block_of(wanted % to.num_nodes)
    counts = np.zeros((to.num_blocks, to.num_blocks), np.int64)
    np.add.at(counts, (reader, owner), 1)
    np.fill_diagonal(counts, 0)
    return counts
