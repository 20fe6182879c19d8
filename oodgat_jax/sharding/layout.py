"""Which node is in which shard: consecutive nodes of an order, padded to one size.

A node's rank is its position in the order; its place is its position among the shards
laid end to end, padding included. Every shard has at least one node of padding, at its
end, so that padding edges have somewhere to go.

What a sharded graph costs is the halo: the nodes of other shards that a shard's edges
come from. Orders are compared by it, and the one with the smallest halo is taken.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph

from oodgat_jax.types import AnyArray, InputError, Split

# What the padding of a split's arrays holds: nodes of no kind.
_NOBODY = (-1, *[False] * 5)


class Layout(NamedTuple):
    """N nodes in P shards of B; `starts` says how many of each are real."""

    order: np.ndarray | None  # [N] node of each rank; None: as they are numbered
    starts: np.ndarray  # [P + 1] int64, ranks at which shards begin, and N
    size: int  # B

    @property
    def num_shards(self) -> int:
        """Returns P."""
        return len(self.starts) - 1

    @property
    def num_nodes(self) -> int:
        """Returns N."""
        return int(self.starts[-1])

    def places(self) -> np.ndarray:
        """Returns the place of every node: [N] int64, below P B."""
        ranks = np.arange(self.num_nodes)
        shard = self.shard_of(ranks)
        places = ranks - self.starts[shard] + shard * self.size
        if self.order is None:
            return places
        found = np.empty_like(places)
        found[self.order] = places
        return found

    def shard_of(self, ranks: np.ndarray) -> np.ndarray:
        """Returns the shard of each rank."""
        return np.searchsorted(self.starts, ranks, side="right") - 1

    def ids(self, shard: int) -> np.ndarray:
        """Returns numbers [B] of a shard's nodes, then of its padding, from N up."""
        start, stop = self.starts[shard : shard + 2]
        nodes = np.arange(start, stop) if self.order is None else self.order[start:stop]
        padding = self.size * np.arange(self.num_shards + 1) - self.starts
        return np.concatenate(
            [nodes, self.num_nodes + np.arange(*padding[shard : shard + 2])]
        ).astype(np.int32)

    def to_shards(self, values: AnyArray, fill: float = 0) -> np.ndarray:
        """Arranges values [..., N] by place, padding filled: [..., P B]."""
        values = np.asarray(values)
        shape = (*values.shape[:-1], self.num_shards * self.size)
        found = np.full(shape, fill, values.dtype)
        found[..., self.places()] = values
        return found

    def split_to_shards(self, split: Split) -> Split:
        """Arranges splits [S, N] by place: [S, P B]; padding is in no mask."""
        leaves = zip(split, _NOBODY, strict=True)
        return Split(*(self.to_shards(values, fill) for values, fill in leaves))

    def from_shards(self, values: AnyArray) -> np.ndarray:
        """Returns values [..., P B] by place as values [..., N] by node."""
        return np.asarray(values)[..., self.places()]


def even(num_nodes: int, shards: int, order: np.ndarray | None = None) -> Layout:
    """Returns shards of as equal a number of nodes as possible."""
    if shards > num_nodes:
        raise InputError(
            f"A graph of {num_nodes} nodes cannot be sharded over {shards} devices: "
            "make the axis graph of --mesh smaller."
        )
    starts = np.linspace(0, num_nodes, shards + 1).astype(np.int64)
    return Layout(order, starts, int(np.diff(starts).max()) + 1)


def locality(
    senders: np.ndarray, receivers: np.ndarray, num_nodes: int, shards: int
) -> np.ndarray | None:
    """Returns the better of the given order (None) and reverse Cuthill-McKee's: [N].

    Files often come in an order that means something (by time, by site, by community),
    which a search from a far node cannot know; where the order is arbitrary, the
    search finds most of what there is to find.
    """
    if shards == 1:
        return None
    candidates = [None, cuthill_mckee(senders, receivers, num_nodes)]
    needs = [
        halo(senders, receivers, even(num_nodes, shards, order)).max()
        for order in candidates
    ]
    return candidates[int(np.argmin(needs))]


def cuthill_mckee(
    senders: np.ndarray, receivers: np.ndarray, num_nodes: int
) -> np.ndarray:
    """Returns the reverse Cuthill-McKee order, edges taken both ways: [N]."""
    ones = np.ones(len(senders), np.int8)
    shape = (num_nodes, num_nodes)
    matrix = scipy.sparse.csr_array((ones, (receivers, senders)), shape=shape)
    return csgraph.reverse_cuthill_mckee(
        (matrix + matrix.T).tocsr(), symmetric_mode=True
    )


def halo(senders: np.ndarray, receivers: np.ndarray, to: Layout) -> np.ndarray:
    """Counts the nodes that each shard needs from each other one: [P, P]."""
    rank = np.arange(to.num_nodes)
    if to.order is not None:
        rank[to.order] = np.arange(to.num_nodes)
    reader = to.shard_of(rank[receivers]).astype(np.int64)
    wanted = np.unique(reader * to.num_nodes + rank[senders])
    reader, owner = wanted // to.num_nodes, to.shard_of(wanted % to.num_nodes)
    counts = np.zeros((to.num_shards, to.num_shards), np.int64)
    np.add.at(counts, (reader, owner), 1)
    np.fill_diagonal(counts, 0)
    return counts
