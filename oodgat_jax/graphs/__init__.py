"""Graphs as jraph GraphsTuples: built on the host, propagated over on device."""

from oodgat_jax.graphs.build import (
    DENSE_FROM,
    KERNELS,
    build,
    from_edges,
    stored,
    uses_native,
    uses_sparse,
    with_self_loops,
)
from oodgat_jax.graphs.context import (
    Context,
    Native,
    context,
    is_sharded,
    on_device,
    pattern,
    sources,
)
from oodgat_jax.graphs.ops import (
    aggregate,
    degree,
    is_self_loop,
    mean_weights,
    num_nodes,
    sum_by,
    sum_edges,
    symmetric_weights,
    take,
)

__all__ = [
    "DENSE_FROM",
    "KERNELS",
    "Context",
    "Native",
    "aggregate",
    "build",
    "context",
    "degree",
    "from_edges",
    "is_self_loop",
    "is_sharded",
    "mean_weights",
    "num_nodes",
    "on_device",
    "pattern",
    "sources",
    "stored",
    "sum_by",
    "sum_edges",
    "symmetric_weights",
    "take",
    "uses_native",
    "uses_sparse",
    "with_self_loops",
]
