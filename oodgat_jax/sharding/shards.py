"""Graphs sharded over the mesh axis `graph`: read, cut, padded, placed.

Every process reads only the parts that its devices hold. All shards have the same
shapes, which is what devices need to run one program: the largest that any of them
needs (`Sizes`). What one shard asks of another is exchanged by the devices themselves.
"""

from typing import Any, NamedTuple

import jax
import jraph
import numpy as np
import scipy.sparse
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from oodgat_jax import graphs
from oodgat_jax.datasets import streaming
from oodgat_jax.graphs import reductions, sparse
from oodgat_jax.sharding import layout as layouts
from oodgat_jax.sharding.layout import Layout
from oodgat_jax.training import placement
from oodgat_jax.training.mesh import GRAPH
from oodgat_jax.types import Dataset, Part, ReadPart, StreamedGraph


class Sharded(NamedTuple):
    """A graph on devices, and where its nodes are."""

    graph: jraph.GraphsTuple  # arrays [P, ...], a row per shard
    layout: Layout
    mesh: Mesh


def shard_dataset(dataset: Dataset, mesh: Mesh, kernel: str = "auto") -> Sharded:
    """Shards a data set that every process has in memory, by locality."""
    count = mesh.shape[GRAPH]
    ends = (dataset.senders, dataset.receivers)
    order = layouts.locality(*ends, dataset.num_nodes, count)
    layout = layouts.even(dataset.num_nodes, count, order)
    read = streaming.of_dataset(dataset, order)
    return shard_parts(read, layout, mesh, kernel)


def shard_stream(graph: StreamedGraph, mesh: Mesh, kernel: str = "auto") -> Sharded:
    """Shards a graph of which no process holds more than its parts, as numbered."""
    layout = layouts.even(graph.num_nodes, mesh.shape[GRAPH])
    return shard_parts(graph.read, layout, mesh, kernel)


def shard_parts(
    read: ReadPart, layout: Layout, mesh: Mesh, kernel: str = "auto"
) -> Sharded:
    """Shards a graph that is read part by part, as its layout says."""
    kernels = graphs.uses_sparse(kernel), graphs.uses_native(kernel)
    here = placement.shards_here(mesh)
    found = {n: read(*layout.starts[n : n + 2].tolist()) for n in here}
    needs = [sizes(layout, number, part) for number, part in found.items()]
    fit = Sizes(*placement.largest(np.max(needs, axis=0)).tolist())
    counts = np.zeros(layout.num_shards, np.int64)
    counts[here] = [len(part.senders) for part in found.values()]
    counts = placement.largest(counts)
    firsts = np.cumsum(counts) - counts
    total = int(counts.sum())
    local = {
        n: build(layout, n, found.pop(n), fit, total, int(firsts[n]), *kernels)
        for n in here
    }
    graph = placement.stack_shards(mesh, local)
    return Sharded(_exchange(graph, mesh), layout, mesh)


def _exchange(graph: jraph.GraphsTuple, mesh: Mesh) -> jraph.GraphsTuple:
    """Turns what each device requests in `send` into what it has to send."""

    def exchange(ask):
        return jax.lax.all_to_all(ask[0], reductions.AXIS, 0, 0)[None]

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


class Sizes(NamedTuple):
    """Shapes that fit every shard."""

    edges: int  # padding included
    halo: int  # M, the most nodes that one shard requests of another
    entries: int  # stored features, padding included; 0 if they are dense


class Wanted(NamedTuple):
    """The nodes of other shards that a shard's edges come from, by rising rank."""

    ranks: np.ndarray  # [w] int64
    owner: np.ndarray  # [w] shard of each
    place: np.ndarray  # [w] place of each among those of one owner


def wanted(layout: Layout, shard: int, part: Part) -> Wanted:
    """Returns what a shard has to request."""
    start, stop = layout.starts[shard : shard + 2]
    outside = (part.senders < start) | (part.senders >= stop)
    ranks = np.unique(part.senders[outside])
    owner = layout.shard_of(ranks)
    first = np.searchsorted(owner, np.arange(layout.num_shards))
    return Wanted(ranks, owner, np.arange(len(ranks)) - first[owner])


def sizes(layout: Layout, shard: int, part: Part) -> Sizes:
    """Returns what this shard needs; every node of padding has a loop of its own."""
    padding = layout.size - part.features.shape[0]
    place = wanted(layout, shard, part).place
    halo = int(place.max()) + 1 if len(place) else 0
    is_sparse = scipy.sparse.issparse(part.features)
    entries = part.features.nnz + 1 if is_sparse else 0
    return Sizes(len(part.senders) + padding, max(halo, 1), entries)


def build(
    layout: Layout,
    shard: int,
    part: Part,
    fit: Sizes,
    num_edges: int,
    first_edge: int,
    use_sparse: bool,
    use_native: bool = False,
) -> jraph.GraphsTuple:
    """Builds one device's shard, as numpy arrays.

    `send` lists the rows it requests until `_exchange` has swapped the lists.

    Args:
      layout: of the whole graph.
      shard: its number.
      part: its nodes and edges.
      fit: the shapes of all shards.
      num_edges: of the whole graph.
      first_edge: number of the first edge, if the part does not say.
      use_sparse: whether products go through the CSR kernel.
      use_native: whether the native kernels are used where they serve.
    """
    want = wanted(layout, shard, part)
    senders, receivers = _local_edges(layout, shard, part, fit, want)
    pattern = None
    if use_sparse:
        columns = layout.size + layout.num_shards * fit.halo
        pattern = _pattern(receivers, senders, (layout.size, columns))
    return jraph.GraphsTuple(
        nodes=_features(part, layout.size, fit, use_native),
        edges=None,
        senders=senders,
        receivers=receivers,
        n_node=np.array([layout.size], np.int32),
        n_edge=np.array([fit.edges], np.int32),
        globals=graphs.Context(
            pattern=pattern,
            native=graphs.Native() if use_native else None,
            send=_ask(layout, fit, want),
            node_ids=layout.ids(shard),
            is_real=np.arange(layout.size) < part.features.shape[0],
            edge_ids=_numbers(part.edges, first_edge, len(part.senders), fit.edges),
            num_edges=np.array(num_edges, np.uint32),
            entry_ids=_entry_numbers(part, fit),
        ),
    )


def shapes(
    layout: Layout, fit: Sizes, num_features: int, use_sparse: bool
) -> jraph.GraphsTuple:
    """Returns shapes of a shard with dense features, to size a graph unmade."""
    rows, edges = layout.size, fit.edges
    columns = rows + layout.num_shards * fit.halo

    def of(*shape: int, kind: type = np.int32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, kind)

    pattern = None
    if use_sparse:
        ends, pointers = [of(edges)] * 2, [of(rows + 1), of(columns + 1)]
        pattern = sparse.Pattern._make([*ends, *pointers, of(edges), tuple(ends)])
    context: dict[str, Any] = {
        "pattern": pattern,
        "send": of(layout.num_shards, fit.halo),
        "node_ids": of(rows),
        "is_real": of(rows, kind=np.bool_),
        "edge_ids": of(edges, kind=np.uint32),
        "num_edges": of(kind=np.uint32),
    }
    return jraph.GraphsTuple(
        nodes=of(rows, num_features, kind=np.float32),
        edges=None,
        senders=of(edges),
        receivers=of(edges),
        n_node=of(1),
        n_edge=of(1),
        globals=graphs.Context(**context),
    )


def _local_edges(layout, shard, part, fit, want) -> tuple[np.ndarray, np.ndarray]:
    start, stop = layout.starts[shard : shard + 2]
    padding = np.arange(stop - start, layout.size)
    more = np.full(fit.edges - len(part.senders) - len(padding), layout.size - 1)
    inside = (part.senders >= start) & (part.senders < stop)
    position = np.searchsorted(want.ranks, part.senders)
    far = layout.size + want.owner * fit.halo + want.place
    near = part.senders - start
    senders = np.where(inside, near, np.append(far, 0)[position])
    senders = np.concatenate([senders, padding, more])
    receivers = np.concatenate([part.receivers - start, padding, more])
    return senders.astype(np.int32), receivers.astype(np.int32)


def _pattern(rows, columns, shape) -> sparse.Pattern:
    """Indexes both orders always, so that all devices have the same arrays."""
    found = sparse.pattern(rows, columns, shape)
    second = (found.rows_by_column, found.columns_by_column)
    return found._replace(second=second)


def _ask(layout: Layout, fit: Sizes, want: Wanted) -> np.ndarray:
    """Lists [P, M] local numbers of the rows requested of each owner, padded."""
    ask = np.full((layout.num_shards, fit.halo), layout.size - 1, np.int32)
    ask[want.owner, want.place] = want.ranks - layout.starts[want.owner]
    return ask


def _features(part: Part, size: int, fit: Sizes, use_native: bool) -> Any:
    rows, width = part.features.shape
    if not scipy.sparse.issparse(part.features):
        padded = np.zeros((size, width), np.float32)
        padded[:rows] = part.features
        return padded
    stored, more = part.features, fit.entries - part.features.nnz
    row = np.repeat(np.arange(rows), np.diff(stored.indptr))
    row = np.concatenate([row, np.full(more, size - 1)])
    column = np.concatenate([stored.indices, np.zeros(more, int)])
    values = np.concatenate([stored.data, np.zeros(more, np.float32)])
    features = sparse.SparseFeatures(values, _pattern(row, column, (size, width)))
    return sparse.with_tiles(features) if use_native else features


def _entry_numbers(part: Part, fit: Sizes) -> np.ndarray | None:
    if part.entries is None:
        return None
    return _numbers(part.entries, 0, len(part.entries), fit.entries)


def _numbers(given, first: int, count: int, size: int) -> np.ndarray:
    """Returns numbers [size] uint32 that wrap around, as dropout positions do."""
    numbers = np.zeros(size, np.uint32)
    given = np.arange(first, first + count) if given is None else given
    numbers[:count] = (given % (1 << 32)).astype(np.uint32)
    return numbers
