"""Parts of a graph as pieces for devices: local numbers, padding and the halo plan.

All pieces have the same shapes, which is what devices need to run one program. What
the shapes must hold is the largest of what any block needs (`Sizes`), over all
processes if there are several.
"""

from typing import Any, NamedTuple

import jax
import jraph
import numpy as np
import scipy.sparse

from oodgat_jax import graphs, sparse
from oodgat_jax.sharding.layout import Layout
from oodgat_jax.types import Part


class Sizes(NamedTuple):
    """Shapes that fit every block."""

    edges: int  # padding included
    halo: int  # M, the most nodes that a block asks another one for
    entries: int  # stored features, padding included; 0 if they are dense


class Wanted(NamedTuple):
    """The nodes of other blocks that a block's edges come from, by rising rank."""

    ranks: np.ndarray  # [w] int64
    owner: np.ndarray  # [w] block of each
    place: np.ndarray  # [w] place of each among those of one owner


def wanted(layout: Layout, block: int, part: Part) -> Wanted:
    """What a block has to ask for."""
    start, stop = layout.starts[block : block + 2]
    outside = (part.senders < start) | (part.senders >= stop)
    ranks = np.unique(part.senders[outside])
    owner = layout.block_of(ranks)
    first = np.searchsorted(owner, np.arange(layout.num_blocks))
    return Wanted(ranks, owner, np.arange(len(ranks)) - first[owner])


def sizes(layout: Layout, block: int, part: Part) -> Sizes:
    """What this block needs; every node of padding has a loop of its own."""
    padding = layout.size - part.features.shape[0]
    place = wanted(layout, block, part).place
    halo = int(place.max()) + 1 if len(place) else 0
    is_sparse = scipy.sparse.issparse(part.features)
    entries = part.features.nnz + 1 if is_sparse else 0
    return Sizes(len(part.senders) + padding, max(halo, 1), entries)


def piece(
    layout: Layout,
    block: int,
    part: Part,
    fit: Sizes,
    num_edges: int,
    first_edge: int,
    use_sparse: bool,
) -> jraph.GraphsTuple:
    """A device's piece, as numpy arrays; `send` holds what it wants, not what it sends.

    Args:
      layout: of the whole graph.
      block: whose piece it is.
      part: its nodes and edges.
      fit: the shapes of all pieces.
      num_edges: of the whole graph.
      first_edge: number of the first edge, if the part does not say.
      use_sparse: whether products go through the CSR kernel.
    """
    want = wanted(layout, block, part)
    senders, receivers = _local_edges(layout, block, part, fit, want)
    pattern = None
    if use_sparse:
        columns = layout.size + layout.num_blocks * fit.halo
        pattern = _pattern(receivers, senders, (layout.size, columns))
    return jraph.GraphsTuple(
        nodes=_features(part, layout.size, fit),
        edges=None,
        senders=senders,
        receivers=receivers,
        n_node=np.array([layout.size], np.int32),
        n_edge=np.array([fit.edges], np.int32),
        globals=graphs.Piece(
            pattern=pattern,
            send=_ask(layout, fit, want),
            ids=layout.ids(block),
            real=np.arange(layout.size) < part.features.shape[0],
            edges=_numbers(part.edges, first_edge, len(part.senders), fit.edges),
            num_edges=np.array(num_edges, np.uint32),
            entries=_entry_numbers(part, fit),
        ),
    )


def shapes(
    layout: Layout, fit: Sizes, num_features: int, use_sparse: bool
) -> jraph.GraphsTuple:
    """Shapes of a piece with dense features, to size a graph without making it."""
    rows, edges = layout.size, fit.edges
    columns = rows + layout.num_blocks * fit.halo

    def of(*shape: int, kind: type = np.int32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, kind)

    pattern = None
    if use_sparse:
        each = [of(edges)] * 2
        pointers = (of(rows + 1), of(columns + 1))
        pattern = sparse.Pattern(*each, *pointers, of(edges), tuple(each))
    return jraph.GraphsTuple(
        nodes=of(rows, num_features, kind=np.float32),
        edges=None,
        senders=of(edges),
        receivers=of(edges),
        n_node=of(1),
        n_edge=of(1),
        globals=graphs.Piece(
            pattern=pattern,
            send=of(layout.num_blocks, fit.halo),
            ids=of(rows),
            real=of(rows, kind=np.bool_),
            edges=of(edges, kind=np.uint32),
            num_edges=of(kind=np.uint32),
            entries=None,
        ),
    )


def _local_edges(layout, block, part, fit, want) -> tuple[np.ndarray, np.ndarray]:
    start, stop = layout.starts[block : block + 2]
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
    """With both orders always, so that all devices have the same arrays."""
    found = sparse.pattern(rows, columns, shape)
    second = (found.rows_by_column, found.columns_by_column)
    return found._replace(second=second)


def _ask(layout: Layout, fit: Sizes, want: Wanted) -> np.ndarray:
    """[P, M] local numbers of what is asked of each owner; padding asks for padding."""
    ask = np.full((layout.num_blocks, fit.halo), layout.size - 1, np.int32)
    ask[want.owner, want.place] = want.ranks - layout.starts[want.owner]
    return ask


def _features(part: Part, size: int, fit: Sizes) -> Any:
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
    return sparse.SparseFeatures(values, _pattern(row, column, (size, width)))


def _entry_numbers(part: Part, fit: Sizes) -> np.ndarray | None:
    if part.entries is None:
        return None
    return _numbers(part.entries, 0, len(part.entries), fit.entries)


def _numbers(given, first: int, count: int, size: int) -> np.ndarray:
    """Numbers [size] uint32 that wrap around, as positions of dropout do; padded."""
    numbers = np.zeros(size, np.uint32)
    given = np.arange(first, first + count) if given is None else given
    numbers[:count] = (given % (1 << 32)).astype(np.uint32)
    return numbers
