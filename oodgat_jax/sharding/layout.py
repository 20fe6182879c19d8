"""Which node is in which block: consecutive nodes of an order, padded to one size.

A node's rank is its place in the order, its place its position among the blocks laid
end to end, padding included. Every block has at least one node of padding, at its end:
padding edges have somewhere to go.
"""

from typing import NamedTuple

import numpy as np

from oodgat_jax.types import InputError, Split

# What the padding of a split's arrays holds: nodes of no kind.
_NOBODY = Split(labels=-1, is_ood=False, train=False, val=False, test=False)


class Layout(NamedTuple):
    """N nodes in P blocks of B, as many real ones in each as starts say."""

    order: np.ndarray | None  # [N] node of each rank; None: as they are numbered
    starts: np.ndarray  # [P + 1] int64, ranks at which blocks begin, and N
    size: int  # B

    @property
    def num_blocks(self) -> int:
        """P."""
        return len(self.starts) - 1

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.starts[-1])

    def places(self) -> np.ndarray:
        """Place of every node: [N] int64, numbers below P B."""
        ranks = np.arange(self.num_nodes)
        block = self.block_of(ranks)
        places = ranks - self.starts[block] + block * self.size
        if self.order is None:
            return places
        found = np.empty_like(places)
        found[self.order] = places
        return found

    def block_of(self, ranks: np.ndarray) -> np.ndarray:
        """Block of each rank."""
        return np.searchsorted(self.starts, ranks, side="right") - 1

    def ids(self, block: int) -> np.ndarray:
        """Numbers [B] of a block's nodes, then those of its padding, from N up."""
        start, stop = self.starts[block : block + 2]
        nodes = np.arange(start, stop) if self.order is None else self.order[start:stop]
        padding = self.size * np.arange(self.num_blocks + 1) - self.starts
        return np.concatenate(
            [nodes, self.num_nodes + np.arange(*padding[block : block + 2])]
        ).astype(np.int32)

    def spread(self, values: np.ndarray, fill: float = 0) -> np.ndarray:
        """Values [..., N] by place, with a filling for padding: [..., P B]."""
        values = np.asarray(values)
        shape = (*values.shape[:-1], self.num_blocks * self.size)
        found = np.full(shape, fill, values.dtype)
        found[..., self.places()] = values
        return found

    def spread_split(self, split: Split) -> Split:
        """Splits [S, N] by place: [S, P B]; padding is in no mask and has no label."""
        leaves = zip(split, _NOBODY, strict=True)
        return Split(*(self.spread(values, fill) for values, fill in leaves))

    def collect(self, values: np.ndarray) -> np.ndarray:
        """Values [..., P B] by place as values [..., N] by node."""
        return np.asarray(values)[..., self.places()]


def even(num_nodes: int, blocks: int, order: np.ndarray | None = None) -> Layout:
    """Blocks of as equal a number of nodes as can be."""
    if blocks > num_nodes:
        raise InputError(
            f"A graph of {num_nodes} nodes cannot be spread over {blocks} devices: "
            "make the axis graph of --mesh smaller."
        )
    starts = np.linspace(0, num_nodes, blocks + 1).astype(np.int64)
    return Layout(order, starts, int(np.diff(starts).max()) + 1)
