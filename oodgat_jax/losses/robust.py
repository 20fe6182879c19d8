"""Regularizers of OODGAT+: the paper's consistency with a teacher, and an anchor."""

import jax
import jax.numpy as jnp

from oodgat_jax.graphs import reductions
from oodgat_jax.losses import paper
from oodgat_jax.losses.node_values import masked_mean
from oodgat_jax.types import Array, Hyper, Outputs, Split


def consistency_led(
    outputs: Outputs, split: Split, hyper: Hyper, *, step: Array | int
) -> Array:
    """Computes eq. 9 as coded; before step `led_steps` entropy leads attention.

    The paper lets gradients flow into both sides from the first step, when both are
    noise, and attention does not change under w -> 1 - w: so entropy may follow
    whatever side the start of attention happened to be on, and stay there. While
    entropy leads, the gradient into it is stopped.
    """
    led = jnp.asarray(step) < hyper["led_steps"]
    stopped = jax.lax.stop_gradient(outputs.logits)
    logits = jnp.where(led, stopped, outputs.logits)
    return paper.consistency(outputs._replace(logits=logits), split, hyper)


def anchor(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes a non-negative PU risk of the OOD logits s, averaged over layers.

        rho mean_L g(s) + max(0, mean_U g(-s) - rho mean_L g(-s)),  g = softplus

    Labeled nodes L are known; of the others U the share rho = `known_share` is taken
    to be known (Kiryo et al., Positive-Unlabeled Learning with Non-Negative Risk
    Estimator, 2017). It tells the two sides of attention apart from the first step.
    """
    train = jnp.asarray(split.train)
    others = jnp.asarray(reductions.without_padding(~train))
    found = [
        _risk(logits.mean(-1), train, others, hyper["known_share"])
        for logits in outputs.attention
    ]
    return sum(found[1:], found[0]) / len(found)


def _risk(s: Array, train: Array, others: Array, share: Array | float) -> Array:
    known = share * masked_mean(jax.nn.softplus(s), train)
    unknown = masked_mean(jax.nn.softplus(-s), others)
    unknown -= share * masked_mean(jax.nn.softplus(-s), train)
    return known + jnp.maximum(0.0, unknown)
