"""GKDE's network, and its output as a Dirichlet distribution over classes."""

from typing import ClassVar

import flax.linen as nn
import jraph

from oodgat_jax import graphs
from oodgat_jax.models.layers import Linear, drop_features, drop_hidden
from oodgat_jax.types import Outputs, Rates


class EvidentialGCN(nn.Module):
    """GKDE's network: A relu(A X W1) W2, A as in GCN, without biases.

    Its logits are log evidence. Both layers drop their inputs, and `rate` is kept when
    the trained network predicts (Monte Carlo), which makes it a part of the model.
    """

    num_classes: int
    hidden: int = 16
    rate: ClassVar[float] = 0.5

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Returns outputs without OOD logits."""
        weights = graphs.symmetric_weights(graph)
        x = drop_features(self, graph, rates)
        x = graphs.aggregate(graph, weights, Linear(self.hidden, name="first")(x))
        hidden = nn.relu(x)
        x = drop_hidden(self, graph, hidden, rates)
        x = Linear(self.num_classes, name="second")(x)
        return Outputs(graphs.aggregate(graph, weights, x), hidden, ())
