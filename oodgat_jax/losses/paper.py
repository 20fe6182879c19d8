"""The paper's three regularizers, as coded and as printed.

The plain names follow the authors' code, from which the published figures come; those
that end in `_printed` follow the paper's equations. All of them take outputs with any
number of attention layers.
"""

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from oodgat_jax.losses.node_values import (
    cosine,
    softmax_entropy,
    standardize,
    uniform_loss,
)
from oodgat_jax.types import Array, Hyper, Outputs, Split


def _coded(logits: Array) -> Array:
    """Squashes OOD logits [N, H] to scores [N] as coded: sigmoid of the mean."""
    return jax.nn.sigmoid(logits.mean(-1))


def _printed(logits: Array) -> Array:
    """Squashes OOD logits [N, H] to scores [N] as printed: mean of the sigmoids."""
    return jax.nn.sigmoid(logits).mean(-1)


def consistency(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes eq. 9, minus the mean over layers of cos(w^l, e), as coded."""
    return _mean_alignment(outputs, _coded)


def consistency_printed(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes eq. 9 as printed."""
    return _mean_alignment(outputs, _printed)


def entropy(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes eq. 10: mean of CE(uniform, z_i) over nodes with ATT >= threshold."""
    chosen = _coded(_stack_heads(outputs)) >= hyper["threshold"]
    return uniform_loss(outputs.logits, chosen)


def entropy_printed(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes eq. 10 as printed, over the nodes with w(i) > threshold."""
    chosen = _printed(_stack_heads(outputs)) > hyper["threshold"]
    return uniform_loss(outputs.logits, chosen)


def discrepancy(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes eq. 11 as coded: -cos of successive layers' head-mean OOD logits."""
    return _successive([logits.mean(-1) for logits in outputs.attention])


def discrepancy_printed(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes eq. 11 as printed: -cos(w^l, w^(l+1))."""
    return _successive([_printed(logits) for logits in outputs.attention])


def _mean_alignment(outputs: Outputs, squash: Callable[[Array], Array]) -> Array:
    layers = [squash(logits) for logits in outputs.attention]
    target = jax.nn.sigmoid(standardize(softmax_entropy(outputs.logits)))
    found = [cosine(w, target) for w in layers]
    return -sum(found[1:], found[0]) / len(found)


def _successive(layers: list[Array]) -> Array:
    """Averages -cos over pairs of successive layers; 0 for a single one."""
    found = [cosine(*pair) for pair in itertools.pairwise(layers)]
    if not found:
        return jnp.array(0.0)
    return -sum(found[1:], found[0]) / len(found)


def _stack_heads(outputs: Outputs) -> Array:
    """Joins the OOD logits of all heads and layers, without gradient: [N, L * H]."""
    return jax.lax.stop_gradient(jnp.concatenate(outputs.attention, axis=-1))
