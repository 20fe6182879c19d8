"""Linen layers, and what backbones are built from.

In training a backbone gets dropout rates (`rates=None` switches dropout off); its bits
come from the `dropout` key. Attention stacks follow the paper: hidden width per head,
heads concatenated in all layers but the last, where they are averaged.
"""

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs
from oodgat_jax.dropout import dropout
from oodgat_jax.graphs import sparse
from oodgat_jax.kernels import features as native
from oodgat_jax.kernels import library
from oodgat_jax.models import attention, gatv2_attention
from oodgat_jax.types import Array, Outputs, Rates

_glorot = nn.initializers.glorot_uniform()


# Names of the parameters that turn a node's representation into attention logits.
ATTENTION_VECTORS = ("query", "receiver", "sender")


class OODGATLayer(nn.Module):
    """OOD attention (eq. 1-5): h = x W, s = a.h, w = sigmoid(s), e = 1 - |w_i - w_j|.

    As every attention layer it returns the aggregated heads [N, H, D] and a tuple of
    OOD logits: here one entry, s [N, H]; for the others none.
    """

    heads: int
    width: int

    @nn.compact
    def __call__(
        self, graph: jraph.GraphsTuple, x: Array, rate: Array | None
    ) -> tuple[Array, tuple[Array, ...]]:
        """Aggregates x [N, F]; rate is attention dropout, None for none."""
        h = split_heads(Linear(self.heads * self.width)(x), self.heads)
        query = self.param("query", _glorot, (self.heads, self.width))
        logits = jnp.einsum("nhd,hd->nh", h, query)
        w = jax.nn.sigmoid(logits)
        dropout = edge_dropout(self, graph, rate)
        out = attention.attend(graph, attention.OOD_LOGIT, w, w, h, dropout)
        return out, (logits,)


class GATLayer(nn.Module):
    """GAT: h = x W, e_ij = leaky_relu(a_dst.h_i + a_src.h_j), slope 0.2."""

    heads: int
    width: int

    @nn.compact
    def __call__(
        self, graph: jraph.GraphsTuple, x: Array, rate: Array | None
    ) -> tuple[Array, tuple[Array, ...]]:
        """Aggregates x [N, F]; rate is attention dropout, None for none."""
        h = split_heads(Linear(self.heads * self.width)(x), self.heads)
        shape = (self.heads, self.width)
        receiver = jnp.einsum("nhd,hd->nh", h, self.param("receiver", _glorot, shape))
        sender = jnp.einsum("nhd,hd->nh", h, self.param("sender", _glorot, shape))
        dropout = edge_dropout(self, graph, rate)
        edge_logit = attention.GAT_LOGIT
        return attention.attend(graph, edge_logit, receiver, sender, h, dropout), ()


class GATv2Layer(nn.Module):
    """GATv2: h = x W + b, e_ij = a . leaky_relu(h_i + h_j), slope 0.2."""

    heads: int
    width: int

    @nn.compact
    def __call__(
        self, graph: jraph.GraphsTuple, x: Array, rate: Array | None
    ) -> tuple[Array, tuple[Array, ...]]:
        """Aggregates x [N, F]; rate is attention dropout, None for none."""
        h = split_heads(Bias()(Linear(self.heads * self.width)(x)), self.heads)
        query = self.param("query", _glorot, (self.heads, self.width))
        h = graphs.sources(graph, h)
        logits = gatv2_attention.pair_logits(graph, query, h)
        dropout = edge_dropout(self, graph, rate)
        return attention.attend_logits(graph, logits, h, dropout), ()


class SAGELayer(nn.Module):
    """GraphSAGE: W_l mean over neighbors of x_j + b + W_r x_i, without self-loops.

    The mean is taken after the linear map, which is the narrower side.
    """

    width: int

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, x: Array) -> Array:
        """Maps [N, F] -> [N, width]."""
        neighbors = Linear(self.width, name="neighbors")(x)
        mean = graphs.aggregate(graph, graphs.mean_weights(graph), neighbors)
        return Bias()(mean) + Linear(self.width, name="itself")(x)


class Linear(nn.Module):
    """Multiplies by a weight matrix, x W without a bias; x may be SparseFeatures."""

    width: int

    @nn.compact
    def __call__(self, x: Array | sparse.SparseFeatures | native.Dropped) -> Array:
        """Maps [N, F] -> [N, width]."""
        kernel = self.param("kernel", _glorot, (x.shape[1], self.width))
        if isinstance(x, sparse.SparseFeatures):
            x = native.Dropped(x, None, 0.0, None)
        if not isinstance(x, native.Dropped):
            return x @ kernel
        if x.features.tiles is not None and library.serves(x.features.values, kernel):
            return native.product(x, kernel)
        stored = native.drop(x)
        return sparse.matmul(stored.values, stored.pattern, kernel)


class Bias(nn.Module):
    """Adds a bias that starts at zero; layers add it after aggregation."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Maps [N, D] -> [N, D]."""
        return x + self.param("bias", nn.initializers.zeros, (x.shape[-1],))


def split_heads(x: Array, heads: int) -> Array:
    """Reshapes [N, H * D] -> [N, H, D]."""
    return x.reshape(x.shape[0], heads, -1)


def join_heads(x: Array) -> Array:
    """Reshapes [N, H, D] -> [N, H * D]."""
    return x.reshape(x.shape[0], -1)


def attention_stack(
    module: nn.Module,
    layer: Callable[[int, int], nn.Module],
    graph: jraph.GraphsTuple,
    rates: Rates | None,
    depth: int = 2,
) -> Outputs:
    """Stacks attention layers with dropout and ELU between them.

    Args:
      module: gives `heads`, `hidden`, `num_classes` and the dropout keys.
      layer: (heads, width) -> a layer such as OODGATLayer.
      graph: whose nodes hold the features.
      rates: of dropout, None for none.
      depth: number of layers, at least 1.
    """
    rate = None if rates is None else rates.attention
    x, hidden, attentions = drop_features(module, graph, rates), None, ()
    for _ in range(depth - 1):
        out, found = layer(module.heads, module.hidden)(graph, x, rate)
        hidden = nn.elu(Bias()(join_heads(out)))
        x = drop_hidden(module, graph, hidden, rates)
        attentions += found
    out, found = layer(module.heads, module.num_classes)(graph, x, rate)
    logits = Bias()(out.mean(1))
    hidden = logits if hidden is None else hidden
    return Outputs(logits, hidden, attentions + found)


def drop_features(
    module: nn.Module, graph: jraph.GraphsTuple, rates: Rates | None
) -> Array | sparse.SparseFeatures | native.Dropped:
    """Drops features; on stored entries alone it has the same distribution.

    Sparse features are dropped when they are multiplied, see `Linear`.
    """
    x = graph.nodes
    if rates is None:
        return x
    key, here = module.make_rng("dropout"), graphs.context(graph)
    if isinstance(x, sparse.SparseFeatures):
        return native.Dropped(x, key, rates.input, here.entry_ids)
    return dropout(key, x, rates.input, here.node_ids)


def drop_hidden(
    module: nn.Module, graph: jraph.GraphsTuple, x: Array, rates: Rates | None
) -> Array:
    """Drops entries of a hidden layer [N, D]."""
    if rates is None:
        return x
    key = module.make_rng("dropout")
    return dropout(key, x, rates.hidden, graphs.context(graph).node_ids)


def edge_dropout(
    module: nn.Module, graph: jraph.GraphsTuple, rate: Array | None
) -> attention.EdgeDropout | None:
    """Returns the dropout of attention weights, None for none."""
    if rate is None:
        return None
    here = graphs.context(graph)
    key = module.make_rng("dropout")
    return attention.EdgeDropout(key, rate, here.edge_ids, here.num_edges)
