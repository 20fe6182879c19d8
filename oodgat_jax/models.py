"""Linen layers and backbones: GraphsTuple in, Outputs out; table BACKBONES.

A backbone takes the graph and, in training, dropout rates (`rates=None` switches
dropout off); its bits come from the `dropout` key. Layers follow the paper: two of
them, hidden width per head, heads concatenated first and averaged last.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import attention, edge_attention, graphs, sparse
from oodgat_jax.dropout import dropout
from oodgat_jax.types import Array, Outputs, Rates

_glorot = nn.initializers.glorot_uniform()


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
        logits = edge_attention.pair_logits(graph, query, h)
        return edge_attention.attend(
            graph, logits, h, edge_dropout(self, graph, rate)
        ), ()


class SAGELayer(nn.Module):
    """GraphSAGE: W_l mean over neighbours of x_j + b + W_r x_i, without self-loops.

    The mean is taken after the linear map, which is the narrower side.
    """

    width: int

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, x: Array) -> Array:
        """[N, F] -> [N, width]."""
        neighbours = Linear(self.width, name="neighbours")(x)
        mean = graphs.aggregate(graph, graphs.mean_weights(graph), neighbours)
        return Bias()(mean) + Linear(self.width, name="itself")(x)


class Linear(nn.Module):
    """x W without a bias; x may be dense [N, F] or SparseFeatures."""

    width: int

    @nn.compact
    def __call__(self, x: Array | sparse.SparseFeatures) -> Array:
        """[N, F] -> [N, width]."""
        kernel = self.param("kernel", _glorot, (x.shape[1], self.width))
        if isinstance(x, sparse.SparseFeatures):
            return sparse.matmul(x.values, x.pattern, kernel)
        return x @ kernel


class Bias(nn.Module):
    """Adds a bias that starts at zero; layers add it after aggregation."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """[N, D] -> [N, D]."""
        return x + self.param("bias", nn.initializers.zeros, (x.shape[-1],))


class OODGAT(nn.Module):
    """The paper's model: two layers of OOD attention."""

    num_classes: int
    hidden: int = 32
    heads: int = 4

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Outputs with the OOD logits of both layers."""
        return two_layers(self, OODGATLayer, graph, rates)


class GAT(nn.Module):
    """Two layers of graph attention, otherwise as OODGAT."""

    num_classes: int
    hidden: int = 32
    heads: int = 4

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Outputs without OOD logits."""
        return two_layers(self, GATLayer, graph, rates)


class GATv2(nn.Module):
    """Two layers of GATv2 attention, otherwise as GAT."""

    num_classes: int
    hidden: int = 32
    heads: int = 4

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Outputs without OOD logits."""
        return two_layers(self, GATv2Layer, graph, rates)


class GCN(nn.Module):
    """Two graph convolutions D^-1/2 (A + I) D^-1/2 X W with ReLU between."""

    num_classes: int
    hidden: int = 32
    heads: int = 1

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Outputs without OOD logits; only the hidden layer is dropped."""
        weights = graphs.symmetric_weights(graph)
        x = graphs.aggregate(graph, weights, Linear(self.hidden)(graph.nodes))
        hidden = nn.relu(Bias()(x))
        x = Linear(self.num_classes)(drop_hidden(self, graph, hidden, rates))
        return Outputs(Bias()(graphs.aggregate(graph, weights, x)), hidden, ())


class SAGE(nn.Module):
    """Two GraphSAGE layers with ReLU between."""

    num_classes: int
    hidden: int = 32
    heads: int = 1

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Outputs without OOD logits; only the hidden layer is dropped."""
        hidden = nn.relu(SAGELayer(self.hidden)(graph, graph.nodes))
        x = drop_hidden(self, graph, hidden, rates)
        return Outputs(SAGELayer(self.num_classes)(graph, x), hidden, ())


class EvidentialGCN(nn.Module):
    """GKDE's network: A relu(A X W1) W2, A as in GCN, without biases.

    Its logits are log evidence. Both layers drop their inputs, and `rate` is kept when
    the trained network is asked (Monte Carlo), which makes it a part of the model.
    """

    num_classes: int
    hidden: int = 16
    heads: int = 1
    rate: float = 0.5

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Outputs without OOD logits."""
        weights = graphs.symmetric_weights(graph)
        x = drop_features(self, graph, rates)
        x = graphs.aggregate(graph, weights, Linear(self.hidden, name="first")(x))
        hidden = nn.relu(x)
        x = drop_hidden(self, graph, hidden, rates)
        x = Linear(self.num_classes, name="second")(x)
        return Outputs(graphs.aggregate(graph, weights, x), hidden, ())


class MLP(nn.Module):
    """Two linear layers without bias: what the features alone can say."""

    num_classes: int
    hidden: int = 32
    heads: int = 1

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Outputs without OOD logits; edges are ignored."""
        x = drop_features(self, graph, rates)
        hidden = nn.relu(Linear(self.hidden)(x))
        x = drop_hidden(self, graph, hidden, rates)
        return Outputs(Linear(self.num_classes)(x), hidden, ())


BACKBONES: dict[str, type[nn.Module]] = {
    "evidential-gcn": EvidentialGCN,
    "gat": GAT,
    "gatv2": GATv2,
    "gcn": GCN,
    "mlp": MLP,
    "oodgat": OODGAT,
    "sage": SAGE,
}


def two_layers(
    module: nn.Module,
    layer: type[nn.Module],
    graph: jraph.GraphsTuple,
    rates: Rates | None,
) -> Outputs:
    """Two attention layers with dropout and ELU; the module gives sizes and keys."""
    rate = None if rates is None else rates.attention
    x = drop_features(module, graph, rates)
    out, first = layer(module.heads, module.hidden)(graph, x, rate)
    hidden = nn.elu(Bias()(join_heads(out)))
    x = drop_hidden(module, graph, hidden, rates)
    out, second = layer(module.heads, module.num_classes)(graph, x, rate)
    return Outputs(Bias()(out.mean(1)), hidden, first + second)


def split_heads(x: Array, heads: int) -> Array:
    """[N, H * D] -> [N, H, D]."""
    return x.reshape(x.shape[0], heads, -1)


def join_heads(x: Array) -> Array:
    """[N, H, D] -> [N, H * D]."""
    return x.reshape(x.shape[0], -1)


def drop_features(
    module: nn.Module, graph: jraph.GraphsTuple, rates: Rates | None
) -> Array | sparse.SparseFeatures:
    """Dropout on features; on stored entries alone it has the same distribution."""
    x = graph.nodes
    if rates is None:
        return x
    key = module.make_rng("dropout")
    if isinstance(x, sparse.SparseFeatures):
        entries = graph.globals.entries if graphs.is_piece(graph) else None
        return x._replace(values=dropout(key, x.values, rates.input, entries))
    return dropout(key, x, rates.input, _node_numbers(graph))


def drop_hidden(
    module: nn.Module, graph: jraph.GraphsTuple, x: Array, rates: Rates | None
) -> Array:
    """Dropout on a hidden layer [N, D]."""
    if rates is None:
        return x
    key = module.make_rng("dropout")
    return dropout(key, x, rates.hidden, _node_numbers(graph))


def edge_dropout(
    module: nn.Module, graph: jraph.GraphsTuple, rate: Array | None
) -> attention.EdgeDropout | None:
    """Dropout on attention weights, None for none."""
    if rate is None:
        return None
    key = module.make_rng("dropout")
    if not graphs.is_piece(graph):
        return attention.EdgeDropout(key, rate)
    piece = graph.globals
    return attention.EdgeDropout(key, rate, piece.edges, piece.num_edges)


def _node_numbers(graph: jraph.GraphsTuple) -> Array | None:
    """Of a piece's nodes in the whole graph; None for a graph that is whole."""
    return graph.globals.ids if graphs.is_piece(graph) else None
