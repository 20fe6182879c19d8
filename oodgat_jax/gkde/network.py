"""The evidential GCN: its logits are log evidence."""

import flax.linen as nn
import jraph

from oodgat_jax import graphs
from oodgat_jax.models import Linear, drop_features, drop_hidden
from oodgat_jax.types import Array, Outputs, Rates


class EvidentialGCN(nn.Module):
    """o = A relu(A X W1) W2 with A = D^-1/2 (A + I) D^-1/2, no biases.

    Dropout is on the inputs of both layers. Its rate is the width of the approximate
    posterior, kept at inference, and so a part of the model. The teacher has the same
    form; its logits go into a softmax.
    """

    num_classes: int
    hidden: int = 16
    heads: int = 1
    rate: float = 0.5

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Outputs without OOD logits."""
        weights = graphs.symmetric_weights(graph)
        x = drop_features(self, graph.nodes, rates)
        x = graphs.aggregate(graph, weights, Linear(self.hidden, name="first")(x))
        hidden = nn.relu(x)
        x = drop_hidden(self, hidden, rates)
        x = Linear(self.num_classes, name="second")(x)
        return Outputs(graphs.aggregate(graph, weights, x), hidden, ())


def apply_dropped(
    module: EvidentialGCN, params: dict, graph: jraph.GraphsTuple, key: Array
) -> Outputs:
    """One pass with dropout, as in training and in Monte Carlo inference."""
    rates = Rates(module.rate, module.rate, 0.0)
    return module.apply(params, graph, rates, rngs={"dropout": key})


def first_layer(params: dict) -> Array:
    """W1 [F, D], the only weights that are decayed."""
    return params["params"]["first"]["kernel"]
