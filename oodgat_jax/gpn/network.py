"""GPN's network: an encoder of features, a density per class, and diffusion of both.

The logits are log concentrations, so that their softmax is the expected probability and
the sum of their exponentials the evidence. Propagation with self-loops alone leaves
evidence as it is: the network without edges gives that of the features.
"""

import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs
from oodgat_jax.models.layers import Bias, Linear, drop_hidden
from oodgat_jax.types import Array, Outputs, Rates

PRIOR = "prior"  # collection that holds the classes' shares of the train nodes
BOUND = 30.0  # of log evidence, which keeps it a number


class GPN(nn.Module):
    """Graph Posterior Network (Stadler et al., 2021).

        h = relu(W1 x), z = W2 h
        beta_c = exp(clip(log q(z | c) + log p_c + H/2 log 4 pi, -30, 30))
        beta  <- (1 - teleport) A beta + teleport beta_0, `rounds` times, A as in GCN
        alpha = 1 + beta

    q(z | c) is a normalizing flow of `layers` radial layers, p_c the share of a class
    among the train nodes, H the width of z.
    """

    num_classes: int
    hidden: int = 64
    latent: int = 16
    layers: int = 10
    rounds: int = 10
    teleport: float = 0.1

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Returns log alpha as logits and z as the hidden layer."""
        h = nn.relu(Bias()(Linear(self.hidden, name="first")(graph.nodes)))
        h = drop_hidden(self, graph, h, rates)
        z = Bias()(Linear(self.latent, name="second")(h))
        density = ClassDensity(self.num_classes, self.layers, name="flow")(z)
        shift = self._log_shares() + 0.5 * self.latent * math.log(4 * math.pi)
        start = jnp.exp(jnp.clip(density + shift, -BOUND, BOUND))
        weights = graphs.symmetric_weights(graph)

        def spread(_: int, beta: Array) -> Array:
            mean = graphs.aggregate(graph, weights, beta)
            return (1 - self.teleport) * mean + self.teleport * start

        beta = jax.lax.fori_loop(0, self.rounds, spread, start)
        return Outputs(jnp.log1p(beta), z, ())

    def _log_shares(self) -> Array:
        """Returns log p_c, of equal shares if none are given: [C]."""
        if self.has_variable(PRIOR, "shares"):
            shares: Any = self.get_variable(PRIOR, "shares")
            return jnp.log(jnp.maximum(shares, 1e-30))
        return jnp.full(self.num_classes, -math.log(self.num_classes))


class ClassDensity(nn.Module):
    """Computes log q(z | c): radial flows onto a standard normal, one for each class.

    z <- z + beta d / (alpha + |d|), d = z - center, alpha = softplus(a) and
    beta = softplus(b) - alpha, which keeps every layer invertible.
    """

    num_classes: int
    layers: int

    @nn.compact
    def __call__(self, z: Array) -> Array:
        """Maps [N, H] -> [N, C]."""
        width = z.shape[1]
        bound = 1.0 / math.sqrt(width)
        shape = (self.layers, self.num_classes)
        center = self.param("center", _uniform(bound), (*shape, width))
        a = self.param("a", _uniform(bound), shape)
        b = self.param("b", _uniform(bound), shape)

        def of_class(center: Array, alpha: Array, beta: Array) -> Array:
            return _log_density(z, center, alpha, beta)

        alpha = jax.nn.softplus(a)
        beta = jax.nn.softplus(b) - alpha
        return jax.vmap(of_class, in_axes=1, out_axes=1)(center, alpha, beta)


def _log_density(z: Array, center: Array, alpha: Array, beta: Array) -> Array:
    """Computes log q(z) of one flow: z [N, H], center [L, H], alpha [L], beta [L]."""
    width = z.shape[1]
    log_volume = jnp.zeros(z.shape[0])
    for layer in range(alpha.shape[0]):
        gap = z - center[layer]
        radius = jnp.sqrt(jnp.maximum(jnp.sum(gap**2, axis=-1), 1e-20))
        pull = 1.0 / (alpha[layer] + radius)
        moved = beta[layer] * pull
        log_volume += (width - 1) * jnp.log1p(moved)
        log_volume += jnp.log1p(moved - beta[layer] * pull**2 * radius)
        z = z + moved[:, None] * gap
    normal = -0.5 * jnp.sum(z**2, axis=-1) - 0.5 * width * math.log(2 * math.pi)
    return normal + log_volume


def _uniform(bound: float) -> Any:
    def draw(key: Array, shape: tuple[int, ...], dtype: Any = jnp.float32) -> Array:
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return draw
