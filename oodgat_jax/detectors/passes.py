"""Uncertainty of several Monte Carlo passes: in total, of the data, of the model.

With p the probabilities of a pass, H(mean p) = mean H(p) + I: total = aleatoric +
epistemic. Outputs without passes are taken for a single one, which has no epistemic
uncertainty.
"""

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import losses
from oodgat_jax.types import Array, Outputs, Predict, Split


def total(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes H(mean p), in nats."""
    return _entropy(_passes(predict(graph))[0])


def aleatoric(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes mean H(p): what remains if the weights are known."""
    return _passes(predict(graph))[1]


def epistemic(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes the mutual information H(mean p) - mean H(p) of class and weights."""
    p, mean_entropy = _passes(predict(graph))
    return _entropy(p) - mean_entropy


def _passes(outputs: Outputs) -> tuple[Array, Array]:
    if outputs.passes:
        p, mean_entropy = outputs.passes
        return p, mean_entropy
    p = jax.nn.softmax(outputs.logits)
    return p, losses.softmax_entropy(outputs.logits)


def _entropy(p: Array) -> Array:
    return -jnp.sum(p * jnp.log(jnp.maximum(p, 1e-12)), -1)
