"""Class probabilities as a Dirichlet distribution, and how uncertain one is.

A node's logits o [C] are log evidence: alpha = exp(o) + 1, S = sum_k alpha_k, and the
expected probabilities are p = alpha / S. A measure is higher where a node's class is
less certain; vacuity, the lack of evidence, is GKDE's OOD score.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import digamma, gammaln

from oodgat_jax.types import AnyArray, Array

MAX_LOGIT = 20.0  # evidence of 5e8: more would leave float32 no digits for a KL
_TINY = 1e-12


def concentration(logits: Array) -> Array:
    """Computes alpha = exp(o) + 1: [..., C] -> [..., C]."""
    return jnp.exp(jnp.minimum(logits, MAX_LOGIT)) + 1.0


def expected(alpha: Array) -> Array:
    """Computes p = alpha / S: [..., C] -> [..., C]."""
    return alpha / jnp.sum(alpha, -1, keepdims=True)


def kl_divergence(alpha: Array, prior: Array) -> Array:
    """Computes KL(Dir(alpha) || Dir(prior)): two [..., C] -> [...].

    log B(prior) - log B(alpha) + sum_k (alpha_k - prior_k) (psi(alpha_k) - psi(S)).
    """
    gap = digamma(alpha) - digamma(jnp.sum(alpha, -1, keepdims=True))
    return log_beta(prior) - log_beta(alpha) + jnp.sum((alpha - prior) * gap, -1)


def log_beta(alpha: Array) -> Array:
    """Computes log B = sum_k log Gamma(alpha_k) - log Gamma(S): [..., C] -> [...]."""
    return jnp.sum(gammaln(alpha), -1) - gammaln(jnp.sum(alpha, -1))


def squared_error(alpha: Array, labels: AnyArray) -> Array:
    """Computes E |y - q|^2 for q ~ Dir(alpha), y one-hot: [N, C], [N] -> [N].

    sum_k (y_k - p_k)^2 + p_k (1 - p_k) / (S + 1). A label outside 0..C-1 has y = 0.
    """
    p = expected(alpha)
    variance = p * (1.0 - p) / (jnp.sum(alpha, -1, keepdims=True) + 1.0)
    target = jax.nn.one_hot(labels, alpha.shape[-1])
    return jnp.sum((target - p) ** 2 + variance, -1)


def vacuity(alpha: Array) -> Array:
    """Computes C / S, in (0, 1]: no evidence for any class. [..., C] -> [...]."""
    return alpha.shape[-1] / jnp.sum(alpha, -1)


def dissonance(alpha: Array) -> Array:
    """Measures evidence that contradicts itself, in [0, 1): [..., C] -> [...].

    sum_k b_k (sum_{j != k} b_j Bal_jk) / (sum_{j != k} b_j), with the beliefs
    b = (alpha - 1) / S and Bal_jk = 1 - |b_j - b_k| / (b_j + b_k).
    """
    belief = (alpha - 1.0) / jnp.sum(alpha, -1, keepdims=True)
    one, other = belief[..., :, None], belief[..., None, :]
    balance = 1.0 - jnp.abs(one - other) / jnp.maximum(one + other, _TINY)
    balance *= 1.0 - jnp.eye(alpha.shape[-1])
    others = jnp.sum(belief, -1, keepdims=True) - belief
    agreed = jnp.sum(other * balance, -1) / jnp.maximum(others, _TINY)
    return jnp.sum(belief * agreed, -1)


def differential_entropy(alpha: Array) -> Array:
    """Returns entropy of the density Dir(alpha), in nats: [..., C] -> [...].

    log B(alpha) + (S - C) psi(S) - sum_k (alpha_k - 1) psi(alpha_k).
    """
    total = jnp.sum(alpha, -1)
    spread = (total - alpha.shape[-1]) * digamma(total)
    return log_beta(alpha) + spread - jnp.sum((alpha - 1.0) * digamma(alpha), -1)


def entropy(p: Array) -> Array:
    """Computes -sum_k p_k log p_k in nats: [..., C] -> [...]."""
    return -jnp.sum(p * jnp.log(jnp.maximum(p, _TINY)), -1)
