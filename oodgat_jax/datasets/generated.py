"""Labeled graphs of any size, made part by part: no array has the size of the whole.

Nodes are cut into communities of consecutive nodes, one class each; communities are
packed into chunks. The edges between two chunks come from a random stream of these two
alone, so that whoever needs them makes the same ones, and a part of the graph is made
from the streams of its own chunks. Inside of a community, and elsewhere, nodes are
drawn with a probability that falls as a power of their place: degrees have heavy tails.
"""

from typing import NamedTuple

import numpy as np

from oodgat_jax import graphs
from oodgat_jax.types import InputError, Part, StreamedGraph

MOST_CHUNKS = 64
_FEATURES, _LABELS, _MEANS = 1 << 20, 1 << 21, 1 << 22  # streams that are no chunk's


class Communities(NamedTuple):
    """What a graph is made from; the same numbers give the same graph.

    The edges are symmetric. Their number counts both directions, before repeats and
    loops are taken out.
    """

    num_nodes: int
    num_edges: int
    num_features: int = 128
    num_classes: int = 8  # equally likely for a community
    num_id: int = 4  # the first classes are the known ones
    size: int = 1000  # nodes of a community
    homophily: float = 0.9  # share of edges inside of a community
    signal: float = 1.0  # distance of class means from zero; 0 makes features useless
    tail: float = (
        3.5  # exponent of the degrees' power law, above 2; larger is more even
    )
    seed: int = 0

    @property
    def starts(self) -> np.ndarray:
        """Ranks at which chunks begin, and N; chunks are whole communities."""
        communities = -(-self.num_nodes // self.size)
        chunks = min(MOST_CHUNKS, communities)
        starts = np.linspace(0, communities, chunks + 1).astype(np.int64) * self.size
        starts[-1] = self.num_nodes
        return starts

    def labels(self, start: int, stop: int) -> np.ndarray:
        """Returns classes of consecutive nodes, int32."""
        communities = -(-self.num_nodes // self.size)
        # Every class has a community: the first ones go round.
        drawn = self._stream(_LABELS).integers(self.num_classes, size=communities)
        drawn[: self.num_classes] = np.arange(self.num_classes)[:communities]
        return drawn[np.arange(start, stop) // self.size].astype(np.int32)

    def read(self, start: int, stop: int) -> Part:
        """Returns the nodes from start to stop and the edges into them."""
        starts = self.starts
        first, last = np.searchsorted(starts, [start, stop - 1], side="right") - 1
        pieces = [self._into(chunk, starts) for chunk in range(first, last + 1)]
        senders, receivers = np.concatenate(pieces, axis=1)
        inside = (receivers >= start) & (receivers < stop)
        ends = (senders[inside], receivers[inside])
        edges = graphs.with_self_loops(*ends, stop - start, start)
        return Part(self._features(start, stop, first, last, starts), *edges)

    def open(self, test_size: int | None = None) -> StreamedGraph:
        """Returns the graph for reading part by part, its labels known."""
        if not 0 < self.num_id < self.num_classes <= -(-self.num_nodes // self.size):
            raise InputError(
                "A generated graph needs 0 < known classes < classes <= communities, "
                f"not {self.num_id}, {self.num_classes} and "
                f"{-(-self.num_nodes // self.size)}."
            )
        return StreamedGraph(
            name=f"generated-{self.num_nodes}-{self.num_edges}",
            num_nodes=self.num_nodes,
            labels=self.labels(0, self.num_nodes),
            id_classes=tuple(range(self.num_id)),
            test_size=self.num_nodes // 8 if test_size is None else test_size,
            read=self.read,
        )

    def _stream(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *numbers))

    def _into(self, chunk: int, starts: np.ndarray) -> np.ndarray:
        """Returns senders and receivers of all edges into a chunk: [2, e]."""
        found = []
        for other in range(len(starts) - 1):
            low, high = sorted((chunk, other))
            ends = self._between(low, high, starts)  # [2, m], in low and in high
            found.append(ends if other == low else ends[::-1])
            if low == high:
                found.append(ends[::-1])
        return np.concatenate(found, axis=1)

    def _between(self, low: int, high: int, starts: np.ndarray) -> np.ndarray:
        """Returns ends in chunk `low` and in chunk `high`, each edge once: [2, m]."""
        random = self._stream(low, high)
        sizes = np.diff(starts)
        pairs = self.num_edges / 2
        share = sizes[low] * sizes[high] / self.num_nodes**2
        count = round((1 - self.homophily) * pairs * share * (2 - (low == high)))
        ends = np.stack(
            [
                starts[low] + self._popular(random, count, sizes[low]),
                starts[high] + self._popular(random, count, sizes[high]),
            ]
        )
        if low != high:
            return ends
        near = round(self.homophily * pairs * sizes[low] / self.num_nodes)
        return np.concatenate([ends, self._inside(random, near, low, starts)], axis=1)

    def _inside(self, random, count: int, chunk: int, starts) -> np.ndarray:
        """Draws pairs with both ends in one community of the chunk: [2, count]."""
        begin, end = starts[chunk : chunk + 2]
        offset = self.size * random.integers(-(-(end - begin) // self.size), size=count)
        size = np.minimum(self.size, end - begin - offset)
        ends = [self._popular(random, count, size) for _ in range(2)]
        return begin + offset + np.stack(ends)

    def _popular(self, random, count: int, size) -> np.ndarray:
        """Draws [count] numbers below size with a probability that falls as a power.

        In a community and in a chunk alike the first nodes are the popular ones.
        """
        share = random.random(count) ** ((self.tail - 1) / (self.tail - 2))
        return np.minimum((share * size).astype(np.int64), size - 1)

    def _features(self, start, stop, first, last, starts) -> np.ndarray:
        means = self._stream(_MEANS).standard_normal(
            (self.num_classes, self.num_features), dtype=np.float32
        )
        means *= self.signal / np.linalg.norm(means, axis=1, keepdims=True)
        found = means[self.labels(start, stop)]
        for chunk in range(first, last + 1):
            low, high = max(start, starts[chunk]), min(stop, starts[chunk + 1])
            shape = (starts[chunk + 1] - starts[chunk], self.num_features)
            stream = self._stream(_FEATURES, chunk)
            noise = stream.standard_normal(shape, dtype=np.float32)
            found[low - start : high - start] += noise[
                low - starts[chunk] : high - starts[chunk]
            ]
        return found
