"""ENT and ATT as one score: a weighted mean of a node's two ranks.

A rank is read off quantiles that a model keeps of the graph it was fitted to
(`Outputs.reference`), so that a node's score depends on its own two scores alone: a
threshold means the same on another graph, and no device asks the others.
"""

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import losses
from oodgat_jax.detectors.basic import mean_ood_logit
from oodgat_jax.graphs import reductions
from oodgat_jax.types import Array, Outputs, Predict, Split

QUANTILES = 257  # kept of each score
WEIGHTS = (1 / 3, 2 / 3)  # of ENT and of ATT, which is the better one on most graphs


def fused(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes one third the rank of ENT plus two thirds that of ATT, in [0, 1].

    Ranks are among the nodes of the graph of the fit, if the model has kept its
    quantiles, else among the nodes of this graph.
    """
    outputs = predict(graph)
    own = scores(outputs)
    kept = outputs.reference[0] if outputs.reference else quantiles(own)
    return weighted(ranks(own, kept[: len(own)]))


def scores(outputs: Outputs) -> Array:
    """Returns ENT and ATT of a network, without its student: [2, N]."""
    entropy = losses.softmax_entropy(own_logits(outputs))
    return jnp.stack([entropy, mean_ood_logit(outputs)])


def own_logits(outputs: Outputs) -> Array:
    """Returns the logits of a network itself, without its student: [N, C]."""
    return outputs.student[0] if outputs.student else outputs.logits


def weighted(found: Array) -> Array:
    """Returns the weighted mean of the ranks of ENT and of ATT: [2, N] -> [N]."""
    return WEIGHTS[0] * found[0] + WEIGHTS[1] * found[1]


def ranks(found: Array, kept: Array) -> Array:
    """Returns the ranks of scores [S, N] among quantiles [S, Q], in [0, 1]: [S, N]."""
    grid = jnp.linspace(0.0, 1.0, QUANTILES)
    pairs = zip(found, kept, strict=True)
    return jnp.stack([jnp.interp(each, cuts, grid) for each, cuts in pairs])


def quantiles(found: Array) -> Array:
    """Returns evenly spaced quantiles of scores [S, N] over all nodes, from the least
    to the largest: [S, QUANTILES]."""
    return jnp.stack([_quantiles(each) for each in found])


def _quantiles(found: Array) -> Array:
    real = jnp.asarray(reductions.without_padding(jnp.ones(found.shape, bool)))
    real = reductions.whole(real)
    rising = jnp.sort(jnp.where(real, reductions.whole(found), jnp.inf))
    places = jnp.linspace(0.0, 1.0, QUANTILES) * (jnp.sum(real) - 1)
    return jax.lax.stop_gradient(rising[jnp.round(places).astype(jnp.int32)])
