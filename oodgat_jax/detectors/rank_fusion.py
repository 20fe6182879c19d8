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
    kept = outputs.reference or (reference(outputs),)
    return weighted(ranks(outputs, kept[0]))


def ranks(outputs: Outputs, quantiles: Array) -> Array:
    """Returns the ranks of ENT and of ATT among quantiles [2, Q], in [0, 1]: [2, N]."""
    grid = jnp.linspace(0.0, 1.0, QUANTILES)
    pairs = zip(_scores(outputs), quantiles, strict=True)
    return jnp.stack([jnp.interp(scores, cuts, grid) for scores, cuts in pairs])


def weighted(found: Array) -> Array:
    """Returns the weighted mean of two ranks: [2, N] -> [N]."""
    return WEIGHTS[0] * found[0] + WEIGHTS[1] * found[1]


def reference(outputs: Outputs) -> Array:
    """Returns the quantiles of ENT and of ATT over all nodes: [2, QUANTILES]."""
    return jnp.stack([_quantiles(scores) for scores in _scores(outputs)])


def _scores(outputs: Outputs) -> tuple[Array, Array]:
    return losses.softmax_entropy(outputs.logits), mean_ood_logit(outputs)


def _quantiles(scores: Array) -> Array:
    """Returns evenly spaced quantiles, from the least to the largest: [QUANTILES]."""
    real = jnp.asarray(reductions.without_padding(jnp.ones(scores.shape, bool)))
    real = reductions.whole(real)
    rising = jnp.sort(jnp.where(real, reductions.whole(scores), jnp.inf))
    places = jnp.linspace(0.0, 1.0, QUANTILES) * (jnp.sum(real) - 1)
    return jax.lax.stop_gradient(rising[jnp.round(places).astype(jnp.int32)])
