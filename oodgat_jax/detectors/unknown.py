"""The probability of the unknown class, for a network with C + 1 of them."""

import jax
import jraph

from oodgat_jax import losses
from oodgat_jax.types import Array, Predict, Split


def unknown(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes softmax([f, u])_{C+1} = sigmoid(u - log sum_c exp f_c), u the OOD logit
    of the last layer; see `losses.unknown_class`."""
    outputs = predict(graph)
    gap = losses.unknown_logit(outputs) - losses.known_logit(outputs)
    return jax.nn.sigmoid(gap)
