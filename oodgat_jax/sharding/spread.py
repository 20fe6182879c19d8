"""A graph spread over the axis `graph` of a mesh: read, cut, padded, placed.

Every process reads only the parts that its devices hold. What one block asks of
another is told to it by the devices themselves, in one exchange.
"""

from typing import NamedTuple

import jax
import jraph
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from oodgat_jax import graphs, nodes
from oodgat_jax.sharding import layout, order, parts, pieces, place
from oodgat_jax.sharding.mesh import GRAPH
from oodgat_jax.types import Dataset, Large, Read


class Spread(NamedTuple):
    """A graph on devices, and where its nodes are."""

    graph: jraph.GraphsTuple  # arrays [P, ...], one piece per block
    layout: layout.Layout
    mesh: Mesh


def dataset(dataset: Dataset, mesh: Mesh, path: str = "auto") -> Spread:
    """Spreads a data set that every process has in memory, by locality."""
    blocks = mesh.shape[GRAPH]
    ends = (dataset.senders, dataset.receivers)
    found = order.locality(*ends, dataset.num_nodes, blocks)
    to = layout.even(dataset.num_nodes, blocks, found)
    return read(parts.of_dataset(dataset, found), to, mesh, path)


def large(graph: Large, mesh: Mesh, path: str = "auto") -> Spread:
    """Spreads a graph of which no process holds more than its part, as numbered."""
    to = layout.even(graph.num_nodes, mesh.shape[GRAPH])
    return read(graph.read, to, mesh, path)


def read(source: Read, to: layout.Layout, mesh: Mesh, path: str = "auto") -> Spread:
    """Spreads a graph that is read part by part, as its layout says."""
    use_sparse = graphs.use_sparse(path)
    here = place.blocks_here(mesh)
    found = {b: source(int(to.starts[b]), int(to.starts[b + 1])) for b in here}
    needs = [pieces.sizes(to, block, part) for block, part in found.items()]
    fit = pieces.Sizes(*place.largest(np.max(needs, axis=0)).tolist())
    counts = np.zeros(to.num_blocks, np.int64)
    counts[here] = [len(part.senders) for part in found.values()]
    counts = place.largest(counts)
    firsts = np.cumsum(counts) - counts
    local = {
        b: pieces.piece(
            to, b, found.pop(b), fit, int(counts.sum()), int(firsts[b]), use_sparse
        )
        for b in here
    }
    graph = place.stack_blocks(mesh, local)
    return Spread(_tell(graph, mesh), to, mesh)


def _tell(graph: jraph.GraphsTuple, mesh: Mesh) -> jraph.GraphsTuple:
    """Every device tells the others what it wants of them: `send` is what to send."""

    def exchange(ask):
        return jax.lax.all_to_all(ask[0], nodes.AXIS, 0, 0)[None]

    told = jax.jit(
        jax.shard_map(
            exchange,
            mesh=mesh,
            in_specs=P(GRAPH),
            out_specs=P(GRAPH),
            check_vma=False,
        )
    )
    send = told(graph.globals.send)
    return graph._replace(globals=graph.globals._replace(send=send))
