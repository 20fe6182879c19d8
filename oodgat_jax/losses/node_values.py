"""Numbers of nodes that losses are made of: entropies, cosines, means over masks."""

import jax
import jax.numpy as jnp
import optax

from oodgat_jax.graphs import reductions
from oodgat_jax.types import AnyArray, Array, Outputs, Split

_TINY = 1e-12


def cross_entropy(outputs: Outputs, split: Split) -> Array:
    """Computes the mean of -log z_iy over the labeled nodes."""
    labels = jnp.clip(split.labels, 0, outputs.logits.shape[1] - 1)
    losses = optax.softmax_cross_entropy_with_integer_labels(outputs.logits, labels)
    return masked_mean(losses, split.train)


def softmax_entropy(logits: Array) -> Array:
    """Computes H(softmax(logits)) in nats: [N, C] -> [N]."""
    return -jnp.sum(jax.nn.softmax(logits) * jax.nn.log_softmax(logits), axis=-1)


def cosine(x: Array, y: Array) -> Array:
    """Computes the cosine of the angle between vectors [N]; 0 if one is zero."""
    norms = reductions.total(x * x) * reductions.total(y * y)
    return reductions.total(x * y) * jax.lax.rsqrt(jnp.maximum(norms, _TINY))


def masked_mean(values: Array, mask: AnyArray) -> Array:
    """Averages values [N] over a mask [N]; 0 for an empty mask."""
    count = reductions.total(mask)
    return reductions.total(values, where=mask) / jnp.maximum(count, 1)


def standardize(x: Array) -> Array:
    """Computes z-scores with the sample standard deviation (n - 1): [N] -> [N]."""
    centered = x - reductions.mean(x)
    variance = reductions.total(centered**2) / jnp.maximum(reductions.count(x) - 1, 1)
    return centered * jax.lax.rsqrt(jnp.maximum(variance, _TINY))


def uniform_loss(logits: Array, mask: AnyArray) -> Array:
    """Averages CE(uniform, z) = -mean_c log z_c over a mask."""
    losses = -jnp.mean(jax.nn.log_softmax(logits), axis=-1)
    return masked_mean(losses, mask)
