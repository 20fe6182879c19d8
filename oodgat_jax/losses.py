"""Cross-entropy and the paper's three regularisers; table REGULARIZERS; compose().

A regulariser is `(outputs, split, hyper) -> scalar`, lower is better, finite with a
finite gradient on an empty mask. Its weight is the entry of `hyper` that bears its
name. The plain names follow the authors' code, from which the published figures come;
those that end in `_printed` follow the paper's equations.
"""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import optax

from oodgat_jax import nodes
from oodgat_jax.types import Array, Hyper, Outputs, Regularizer, Split

_TINY = 1e-12

# Eq. 12's a^(b t) with a = 0.9 and b = 0.01.
DECAY = optax.exponential_decay(1.0, transition_steps=100, decay_rate=0.9)


def cross_entropy(outputs: Outputs, split: Split) -> Array:
    """Mean of -log z_iy over the labelled nodes."""
    labels = jnp.clip(split.labels, 0, outputs.logits.shape[1] - 1)
    losses = optax.softmax_cross_entropy_with_integer_labels(outputs.logits, labels)
    return masked_mean(losses, split.train)


def consistency(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Eq. 9, -(cos(w^1, e) + cos(w^2, e)) / 2, with w^l = sigmoid(mean_k s^lk)."""
    layers = [jax.nn.sigmoid(s.mean(-1)) for s in outputs.attention]
    return _mean_alignment(layers, outputs)


def consistency_printed(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Eq. 9 as printed: w^l is the mean over heads of sigmoid(s^lk)."""
    layers = [jax.nn.sigmoid(s).mean(-1) for s in outputs.attention]
    return _mean_alignment(layers, outputs)


def entropy(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Eq. 10: mean of CE(uniform, z_i) over pseudo-OOD nodes, ATT >= threshold."""
    scores = jax.nn.sigmoid(_stack_heads(outputs).mean(-1))
    return _uniform_loss(outputs, scores >= hyper["threshold"])


def entropy_printed(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Eq. 10 as printed: w(i) > threshold, w the mean of sigmoids."""
    scores = jax.nn.sigmoid(_stack_heads(outputs)).mean(-1)
    return _uniform_loss(outputs, scores > hyper["threshold"])


def discrepancy(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Eq. 11 as coded: -cos of the two layers' head-mean raw OOD logits."""
    first, second = (s.mean(-1) for s in outputs.attention)
    return -cosine(first, second)


def discrepancy_printed(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Eq. 11 as printed: -cos(w^1, w^2)."""
    first, second = (jax.nn.sigmoid(s).mean(-1) for s in outputs.attention)
    return -cosine(first, second)


REGULARIZERS: dict[str, Regularizer] = {
    "consistency": consistency,
    "consistency_printed": consistency_printed,
    "discrepancy": discrepancy,
    "discrepancy_printed": discrepancy_printed,
    "entropy": entropy,
    "entropy_printed": entropy_printed,
}


def compose(
    terms: Mapping[str, Regularizer], schedule: optax.Schedule = DECAY
) -> Callable[[Outputs, Split, Hyper, Array], Array]:
    """Cross-entropy plus the given regularisers, weighted and decayed together.

    Eq. 12: L = CE + schedule(t) sum_k weight_k term_k. The weight of a term is the
    entry of `hyper` with its name (without `_printed`).
    """

    def objective(outputs: Outputs, split: Split, hyper: Hyper, step: Array) -> Array:
        total = cross_entropy(outputs, split)
        for name, term in terms.items():
            weight = schedule(step) * hyper[name.removesuffix("_printed")]
            total += weight * term(outputs, split, hyper)
        return total

    return objective


def softmax_entropy(logits: Array) -> Array:
    """H(softmax(logits)) in nats: [N, C] -> [N]."""
    return -jnp.sum(jax.nn.softmax(logits) * jax.nn.log_softmax(logits), axis=-1)


def cosine(x: Array, y: Array) -> Array:
    """Cosine of the angle between two vectors [N]; 0 where one of them is zero."""
    norms = nodes.total(x * x) * nodes.total(y * y)
    return nodes.total(x * y) * jax.lax.rsqrt(jnp.maximum(norms, _TINY))


def masked_mean(values: Array, mask: Array) -> Array:
    """Mean of values [N] over a mask [N]; 0 for an empty mask."""
    count = nodes.total(mask)
    return nodes.total(values, where=mask) / jnp.maximum(count, 1)


def _mean_alignment(layers: list[Array], outputs: Outputs) -> Array:
    target = jax.nn.sigmoid(standardize(softmax_entropy(outputs.logits)))
    return -sum(cosine(w, target) for w in layers) / len(layers)


def standardize(x: Array) -> Array:
    """z-score with the sample standard deviation (n - 1): [N] -> [N]."""
    centred = x - nodes.mean(x)
    variance = nodes.total(centred**2) / jnp.maximum(nodes.count(x) - 1, 1)
    return centred * jax.lax.rsqrt(jnp.maximum(variance, _TINY))


def _stack_heads(outputs: Outputs) -> Array:
    """OOD logits of all heads of all layers, without gradient: [N, L * H]."""
    return jax.lax.stop_gradient(jnp.concatenate(outputs.attention, axis=-1))


def _uniform_loss(outputs: Outputs, mask: Array) -> Array:
    """CE(uniform, z) = -mean_c log z_c, averaged over a mask."""
    losses = -jnp.mean(jax.nn.log_softmax(outputs.logits), axis=-1)
    return masked_mean(losses, mask)
