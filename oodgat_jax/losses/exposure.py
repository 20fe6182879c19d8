"""Regularizers that know some OOD nodes, those of `split.exposure`.

E_i = -log sum_c exp f_ic is a node's energy, higher = more OOD. All three average over
the whole masks, where the published code cuts the longer of the two lists of nodes.
"""

import jax
import jraph

from oodgat_jax import graphs
from oodgat_jax.losses.node_values import masked_mean, uniform_loss
from oodgat_jax.types import Array, Hyper, Outputs, Split

ROUNDS, ALPHA = 2, 0.5  # of propagation, as GNNSafe publishes them


def outlier_exposure(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes the mean of CE(uniform, z_i) over exposed nodes (Hendrycks et al.,
    Deep Anomaly Detection with Outlier Exposure, 2019)."""
    return uniform_loss(outputs.logits, split.exposure)


def energy_margin(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes mean_in relu(E - m_in)^2 + mean_out relu(m_out - E)^2, where `in` are
    the labeled and `out` the exposed nodes (Liu et al., Energy-based OOD Detection,
    2020; "Energy FT" in GNNSafe's tables)."""
    return _margin(_energy(outputs), split, hyper)


def energy_margin_propagated(
    outputs: Outputs, split: Split, hyper: Hyper, *, graph: jraph.GraphsTuple
) -> Array:
    """Computes `energy_margin` of energies after two rounds E <- (E + D^-1 A E) / 2:
    GNNSafe++ (Wu et al., Energy-based OOD Detection for GNNs, 2023)."""
    energy = graphs.propagate(
        graph, _energy(outputs), ROUNDS, ALPHA, keep_isolated=False
    )
    return _margin(energy, split, hyper)


def _energy(outputs: Outputs) -> Array:
    return -jax.nn.logsumexp(outputs.logits, axis=-1)


def _margin(energy: Array, split: Split, hyper: Hyper) -> Array:
    above = jax.nn.relu(energy - hyper["m_in"]) ** 2
    below = jax.nn.relu(hyper["m_out"] - energy) ** 2
    return masked_mean(above, split.train) + masked_mean(below, split.exposure)
