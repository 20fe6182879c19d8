"""OOD scores `(predict, graph, split) -> [N]`, higher = more OOD; table DETECTORS."""

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import losses
from oodgat_jax.types import Array, Detector, Predict, Split


def entropy(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Entropy of the softmax, in nats (OODGAT-ENT)."""
    return losses.softmax_entropy(predict(graph).logits)


def attention(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """OODGAT-ATT as coded: sigmoid of the mean OOD logit over heads and layers."""
    return jax.nn.sigmoid(jnp.concatenate(predict(graph).attention, -1).mean(-1))


def attention_printed(
    predict: Predict, graph: jraph.GraphsTuple, split: Split
) -> Array:
    """OODGAT-ATT as printed: mean of the sigmoids over heads and layers."""
    return jax.nn.sigmoid(jnp.concatenate(predict(graph).attention, -1)).mean(-1)


DETECTORS: dict[str, Detector] = {
    "ATT": attention,
    "ATT_printed": attention_printed,
    "ENT": entropy,
}
