"""NODESAFE's regularizer: logits of nearly equal norms and sums (Yang et al., Bounded
and Uniform Energy-based OOD Detection for Graphs, 2024).

With the norms n_i = |f_i| and the sums s_i = sum_c f_ic of the logits, Var the sample
variance and no gradient through the means below the line,

  L = share Var(n) / mean(n) + (1 - share) Var(s) / mean(s)

A mean sum may be negative, and then so is its term, as in the published code.
"""

import jax
import jax.numpy as jnp

from oodgat_jax.graphs import reductions
from oodgat_jax.losses.node_values import masked_mean
from oodgat_jax.types import AnyArray, Array, Hyper, Outputs, Split

_TINY = 1e-12


def bounded_energy(
    outputs: Outputs, split: Split, hyper: Hyper, *, step: Array | int
) -> Array:
    """Computes L over the labeled nodes; 0 up to step `bounded_after`."""
    share = hyper["bounded_share"]
    norms = _dispersion(_norms(outputs.logits), split.train)
    sums = _dispersion(outputs.logits.sum(-1), split.train)
    return _after(step, hyper["bounded_after"]) * (share * norms + (1 - share) * sums)


def bounded_energy_exposed(
    outputs: Outputs, split: Split, hyper: Hyper, *, step: Array | int
) -> Array:
    """Computes L with exposed nodes: norms over labeled and exposed nodes together,
    from the start; sums of each alone, both after step `uniform_after`."""
    share, sums = hyper["bounded_share"], outputs.logits.sum(-1)
    norms = _dispersion(_norms(outputs.logits), split.train | split.exposure)
    labeled = _dispersion(sums, split.train)
    exposed = _dispersion(sums, split.exposure, absolute=True)
    uniform = _after(step, hyper["uniform_after"]) * (labeled + exposed)
    return share * norms + (1 - share) * uniform


def _after(step: Array | int, last: Array | float) -> Array:
    return jnp.where(jnp.asarray(step) > last, 1.0, 0.0)


def _norms(logits: Array) -> Array:
    """Computes |f_i| with a finite gradient at 0: [N]."""
    return jnp.sqrt(jnp.maximum(jnp.sum(logits**2, axis=-1), _TINY))


def _dispersion(values: Array, mask: AnyArray, absolute: bool = False) -> Array:
    """Computes Var / mean of values [N] over a mask; 0 where the mean is."""
    mean = masked_mean(values, mask)
    squares = reductions.total((values - mean) ** 2, where=mask)
    variance = squares / jnp.maximum(reductions.total(mask) - 1, 1)
    below = jax.lax.stop_gradient(jnp.abs(mean) if absolute else mean)
    return jnp.where(below == 0, 0.0, variance / jnp.where(below == 0, 1.0, below))
