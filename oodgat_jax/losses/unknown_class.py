"""Regularizers that turn a network's OOD logit into a class of its own, C + 1.

With the OOD logit u_i of the last layer (the mean of its heads) and l_i = log sum_c
exp f_ic, the probabilities of C + 1 classes are softmax([f_i, u_i]); that of the
unknown class is sigmoid(u_i - l_i). Cross-entropy over C + 1 classes is cross-entropy
over the C known ones plus the first two of these terms, with a weight of 1:

  L = mean_in -log(1 - P_i(unknown)) + mean_out -log P_i(unknown)
      + complement mean_in -log P_i(unknown | not y_i)

The last is G2Pxy's: with its own class left out, a labeled node should be unknown.
"""

import jax
import jax.numpy as jnp

from oodgat_jax.graphs import reductions
from oodgat_jax.losses.node_values import masked_mean
from oodgat_jax.types import AnyArray, Array, Hyper, Outputs, Split


def unknown_class(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes L, where `in` are the labeled and `out` the exposed nodes."""
    return _unknown_loss(outputs, split, hyper, split.exposure)


def unknown_class_pseudo(
    outputs: Outputs, split: Split, hyper: Hyper, *, step: Array | int
) -> Array:
    """Computes L, where `out` are the `pseudo_share` of all unlabeled nodes with the
    highest energies -l_i; none up to step `pseudo_after`."""
    energy = jax.lax.stop_gradient(-known_logit(outputs))
    unlabeled = reductions.without_padding(~jnp.asarray(split.train))
    bound = _upper_quantile(energy, unlabeled, hyper["pseudo_share"])
    chosen = unlabeled & (energy >= bound)
    begun = jnp.asarray(step) > hyper["pseudo_after"]
    return _unknown_loss(outputs, split, hyper, chosen & begun)


def known_logit(outputs: Outputs) -> Array:
    """Computes l = log sum_c exp f_c over the known classes: [N]."""
    return jax.nn.logsumexp(outputs.logits, axis=-1)


def unknown_logit(outputs: Outputs) -> Array:
    """Returns u, the mean over heads of the last layer's OOD logits: [N]."""
    return outputs.attention[-1].mean(-1)


def _unknown_loss(outputs: Outputs, split: Split, hyper: Hyper, out: AnyArray) -> Array:
    gap = unknown_logit(outputs) - known_logit(outputs)
    known = masked_mean(jax.nn.softplus(gap), split.train)
    unknown = masked_mean(jax.nn.softplus(-gap), out)
    rest = masked_mean(_second_best(outputs, split), split.train)
    return known + unknown + hyper["complement"] * rest


def _second_best(outputs: Outputs, split: Split) -> Array:
    """Computes -log P(unknown | not y) of every node: [N]."""
    own = jax.nn.one_hot(split.labels, outputs.logits.shape[1], dtype=bool)
    others = jnp.where(own, -jnp.inf, outputs.logits)
    unknown = unknown_logit(outputs)
    every = jnp.concatenate([others, unknown[:, None]], axis=-1)
    return jax.nn.logsumexp(every, axis=-1) - unknown


def _upper_quantile(values: Array, mask: AnyArray, share: Array) -> Array:
    """Returns the value that a share of the nodes in a mask reach; inf for none."""
    values, inside = reductions.whole(values), reductions.whole(jnp.asarray(mask))
    falling = -jnp.sort(jnp.where(inside, -values, jnp.inf))
    count = jnp.floor(share * jnp.sum(inside)).astype(jnp.int32)
    last = jnp.take(falling, jnp.clip(count - 1, 0, falling.shape[0] - 1))
    return jnp.where(count > 0, last, jnp.inf)
