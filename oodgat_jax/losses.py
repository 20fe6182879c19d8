"""Cross-entropy and the paper's three regularizers; table REGULARIZERS; compose().

A regularizer is `(outputs, split, hyper) -> scalar`, lower is better, finite with a
finite gradient on an empty mask. Its weight is the entry of `hyper` that bears its
name; `hyper["step"]` is the number of steps taken before this one. The plain names follow the authors' code, from which the published figures come;
those that end in `_printed` follow the paper's equations. All of them take outputs
with any number of attention layers.
"""

import itertools
import math
import numbers
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from oodgat_jax.graphs import reductions
from oodgat_jax.registry import Registry, check_function
from oodgat_jax.types import (
    AnyArray,
    Array,
    Hyper,
    InputError,
    Outputs,
    Regularizer,
    Split,
)

_TINY = 1e-12

# Eq. 12's a^(b t) with a = 0.9 and b = 0.01.
DECAY = optax.exponential_decay(1.0, transition_steps=100, decay_rate=0.9)

# From a run's hyper-parameters to the factor of all regularizers at a step.
WeightSchedule = Callable[[Hyper], optax.Schedule]


class Term(NamedTuple):
    """An entry of REGULARIZERS: a function and what it wants to know."""

    function: Regularizer
    weight: str  # the hyper-parameter that weighs it
    hyper: Mapping[str, float]  # defaults of all it uses, the weight among them
    needs: tuple[str, ...] = ()  # what the backbone must give, such as "attention"


def paper_decay(hyper: Hyper) -> optax.Schedule:
    """Returns the paper's schedule of the regularizers' weights, for all runs alike."""
    del hyper
    return DECAY


def cross_entropy(outputs: Outputs, split: Split) -> Array:
    """Computes the mean of -log z_iy over the labeled nodes."""
    labels = jnp.clip(split.labels, 0, outputs.logits.shape[1] - 1)
    losses = optax.softmax_cross_entropy_with_integer_labels(outputs.logits, labels)
    return masked_mean(losses, split.train)


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
    return _uniform_loss(outputs, _coded(_stack_heads(outputs)) >= hyper["threshold"])


def entropy_printed(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes eq. 10 as printed, over the nodes with w(i) > threshold."""
    return _uniform_loss(outputs, _printed(_stack_heads(outputs)) > hyper["threshold"])


def discrepancy(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes eq. 11 as coded: -cos of successive layers' head-mean OOD logits."""
    return _successive([logits.mean(-1) for logits in outputs.attention])


def discrepancy_printed(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes eq. 11 as printed: -cos(w^l, w^(l+1))."""
    return _successive([_printed(logits) for logits in outputs.attention])


# Weights where neither the paper nor experience says better; see also `recipes`.
_CONSISTENCY = {"consistency": 2.0}
_ENTROPY = {"entropy": 0.05, "threshold": 0.5}
_DISCREPANCY = {"discrepancy": 0.005}
_NEEDS = ("attention",)

REGULARIZERS: Registry[Term] = Registry(
    "regularizer",
    {
        "consistency": Term(consistency, "consistency", _CONSISTENCY, _NEEDS),
        "consistency_printed": Term(
            consistency_printed, "consistency", _CONSISTENCY, _NEEDS
        ),
        "discrepancy": Term(discrepancy, "discrepancy", _DISCREPANCY, _NEEDS),
        "discrepancy_printed": Term(
            discrepancy_printed, "discrepancy", _DISCREPANCY, _NEEDS
        ),
        "entropy": Term(entropy, "entropy", _ENTROPY, _NEEDS),
        "entropy_printed": Term(entropy_printed, "entropy", _ENTROPY, _NEEDS),
    },
)


def register_regularizer(
    name: str,
    function: Regularizer,
    *,
    hyper: Mapping[str, float] = MappingProxyType({}),
    needs: tuple[str, ...] = (),
) -> None:
    """Adds a regularizer to the table, so that methods and --regularizers can name it.

    Args:
      name: of the regularizer and of the hyper-parameter that weighs it.
      function: (outputs, split, hyper) -> scalar, lower is better.
      hyper: defaults of the hyper-parameters it uses; its weight is 1 unless given.
      needs: what it reads that not every backbone has, such as "attention".
    """
    check_function("regularizer", name, function)
    try:
        values = {name: 1.0} | {key: float(value) for key, value in hyper.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"hyper of regularizer '{name}' must map names to numbers."
        ) from error
    if not all(map(math.isfinite, values.values())):
        raise InputError(f"hyper of regularizer '{name}' must hold finite numbers.")
    REGULARIZERS.register(name, Term(function, name, values, tuple(needs)))


def compose(
    terms: Mapping[str, Term], schedule: WeightSchedule = paper_decay
) -> Callable[[Outputs, Split, Hyper, Array], Array]:
    """Returns cross-entropy plus the given regularizers, weighted and scheduled.

    Eq. 12: L = CE + schedule(t) sum_k weight_k term_k.
    """

    def objective(outputs: Outputs, split: Split, hyper: Hyper, step: Array) -> Array:
        total, now = cross_entropy(outputs, split), {**hyper, "step": step}
        for name, term in terms.items():
            weight = schedule(hyper)(step) * hyper[term.weight]
            value = term.function(outputs, split, now)
            _check_scalar(name, value)
            total += weight * value
        return total

    return objective


def _check_scalar(name: str, value: Any) -> None:
    shape = getattr(value, "shape", None)
    if shape == () or isinstance(value, numbers.Number):
        return
    found = type(value).__name__ if shape is None else f"an array {list(shape)}"
    raise InputError(f"Regularizer '{name}' must return a scalar, not {found}.")


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


def standardize(x: Array) -> Array:
    """Computes z-scores with the sample standard deviation (n - 1): [N] -> [N]."""
    centered = x - reductions.mean(x)
    variance = reductions.total(centered**2) / jnp.maximum(reductions.count(x) - 1, 1)
    return centered * jax.lax.rsqrt(jnp.maximum(variance, _TINY))


def _stack_heads(outputs: Outputs) -> Array:
    """Joins the OOD logits of all heads and layers, without gradient: [N, L * H]."""
    return jax.lax.stop_gradient(jnp.concatenate(outputs.attention, axis=-1))


def _uniform_loss(outputs: Outputs, mask: Array) -> Array:
    """Averages CE(uniform, z) = -mean_c log z_c over a mask."""
    losses = -jnp.mean(jax.nn.log_softmax(outputs.logits), axis=-1)
    return masked_mean(losses, mask)
