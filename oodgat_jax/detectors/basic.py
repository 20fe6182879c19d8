"""Scores that are a formula of the model's outputs: f the logits, p = softmax(f)."""

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import losses
from oodgat_jax.types import Array, Detector, InputError, Outputs, Predict, Split


def entropy(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes ENT: -sum_c p_c log p_c, in nats (Song and Wang, 2022)."""
    return losses.softmax_entropy(predict(graph).logits)


def msp(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes 1 - max_c p_c (A Baseline for Detecting OOD Examples, 2017)."""
    return 1.0 - jax.nn.softmax(predict(graph).logits).max(-1)


def max_logit(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes -max_c f_c (Scaling OOD Detection for Real-World Settings, 2022)."""
    return -predict(graph).logits.max(-1)


def energy(temperature: Array | float = 1.0) -> Detector:
    """Returns -T log sum_c exp(f_c / T) (Energy-based OOD Detection, 2020).

    Args:
      temperature: T > 0; may be traced.
    """

    def detector(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        logits = predict(graph).logits
        return -temperature * jax.nn.logsumexp(logits / temperature, axis=-1)

    return detector


def attention(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes ATT as coded: sigmoid of the mean OOD logit over heads and layers."""
    return jax.nn.sigmoid(mean_ood_logit(predict(graph)))


def mean_ood_logit(outputs: Outputs) -> Array:
    """Returns the mean OOD logit over heads and layers, which ATT squashes: [N]."""
    return _ood_logits(outputs).mean(-1)


def attention_printed(
    predict: Predict, graph: jraph.GraphsTuple, split: Split
) -> Array:
    """Computes ATT as printed: mean of the sigmoids over heads and layers."""
    return jax.nn.sigmoid(_ood_logits(predict(graph))).mean(-1)


def _ood_logits(outputs: Outputs) -> Array:
    """Joins the OOD logits of all heads of all layers: [N, L * H]."""
    if not outputs.attention:
        raise InputError(
            "ATT needs a backbone with OOD attention, such as oodgat; this has none."
        )
    return jnp.concatenate(outputs.attention, axis=-1)
