"""ENT and ATT as one score whose weights are fitted to held-out known nodes.

Which of the two scores is the better one, and how far it should be spread over the
graph, depends on the graph. Known validation nodes tell without any OOD label: if the
share p of the other nodes is known, the AUROC of held-out known nodes against all
others is p / 2 + (1 - p) times the AUROC of known against unknown nodes, so both rank
scores alike. It is estimated from few nodes, so no candidate is picked: all are
averaged, the better the more.
"""

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from oodgat_jax import graphs
from oodgat_jax.detectors import rank_fusion
from oodgat_jax.graphs import reductions
from oodgat_jax.types import Array, Outputs, Predict, Split

# Candidates: the share of ENT, the rest being ATT's, and rounds of propagation.
SHARES = np.linspace(0.0, 1.0, 5)
ROUNDS = (0, 1, 2, 4, 8)
# What is expected before a node is held out: about the weights of FUSED, one round.
_EXPECTED_ROUNDS = np.array([0.2, 0.4, 0.2, 0.1, 0.1])
_SHARE_DEVIATION = 0.4
PRIOR = (
    np.log(_EXPECTED_ROUNDS)
    - np.square((SHARES[:, None] - rank_fusion.WEIGHTS[0]) / _SHARE_DEVIATION) / 2
)  # [W, R], logarithms up to a constant
TEMPERATURE = 0.005  # of the AUROC: half a point less is e times less weight
KNOWN_BELOW = 0.5  # nodes whose FUSED is lower are counted for the sizes of classes


def fitted(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes the ranks of ENT and ATT, spread over the graph and weighted, in [0, 1].

    Weights are those that the model has kept of its fit, else fitted to this split.
    """
    outputs = predict(graph)
    kept = outputs.reference or (rank_fusion.reference(outputs),)
    ranks = _spread(graph, rank_fusion.ranks(outputs, kept[0]))
    weights = kept[1] if len(kept) > 1 else _weights(ranks, outputs.logits, split)
    return jnp.einsum("rs,rsn->n", weights, ranks)


def weights(
    outputs: Outputs, quantiles: Array, graph: jraph.GraphsTuple, split: Split
) -> Array:
    """Returns the weights of ENT and ATT after each number of rounds: [R, 2].

    They are not negative and add up to 1. Labels are read of known nodes alone.

    Args:
      outputs: of the graph.
      quantiles: [2, Q] that ranks are read off.
      graph: of the fit.
      split: whose known validation nodes are held out.
    """
    ranks = _spread(graph, rank_fusion.ranks(outputs, quantiles))
    return jax.lax.stop_gradient(_weights(ranks, outputs.logits, split))


def _spread(graph: jraph.GraphsTuple, ranks: Array) -> Array:
    """Returns the ranks [2, N] after each number of rounds: [R, 2, N]."""
    found = []
    for before, rounds in zip((0, *ROUNDS), ROUNDS, strict=False):
        further = [graphs.propagate(graph, x, rounds - before, 0.5) for x in ranks]
        ranks = jnp.stack(further)
        found.append(ranks)
    return jnp.stack(found)


def _weights(ranks: Array, logits: Array, split: Split) -> Array:
    labels, is_ood = jnp.asarray(split.labels), jnp.asarray(split.is_ood)
    held = jnp.asarray(split.val) & ~is_ood & (labels >= 0)
    others = jnp.asarray(reductions.without_padding(~held & ~jnp.asarray(split.train)))
    own = ranks[ROUNDS.index(0)]
    known = others & (rank_fusion.weighted(own) < KNOWN_BELOW)
    importance = _importance(logits, jnp.where(held, labels, 0), held, known)
    shares = jnp.asarray(SHARES, ranks.dtype)
    candidates = (  # [W, R, N]
        shares[:, None, None] * ranks[:, 0] + (1 - shares[:, None, None]) * ranks[:, 1]
    )
    area = jax.vmap(jax.vmap(_area, (0, None, None)), (0, None, None))
    trust = area(candidates, importance, others) / TEMPERATURE + PRIOR
    trust = jax.nn.softmax(trust, axis=(0, 1))
    return jnp.stack([shares @ trust, (1 - shares) @ trust], axis=-1)


def _importance(logits: Array, labels: Array, held: Array, known: Array) -> Array:
    """Returns the weight of every held-out node [N]; they add up to 1.

    As many are held out of every class, but classes differ in size: a node counts by
    how many of the nodes that look known are predicted to be of its class.
    """
    classes = jnp.arange(logits.shape[-1])
    predicted = jnp.argmax(logits, axis=-1)[:, None] == classes
    sizes = 1 + reductions.add(jnp.sum(predicted & known[:, None], axis=0))
    of_class = (labels[:, None] == classes) & held[:, None]
    count = jnp.maximum(reductions.add(jnp.sum(of_class, axis=0)), 1)
    found = jnp.where(held, (sizes / count)[labels], 0.0)
    return found / jnp.maximum(reductions.add(jnp.sum(found)), 1.0)


def _area(scores: Array, importance: Array, others: Array) -> Array:
    """Returns the AUROC of the other nodes against the held-out ones, by importance."""
    negative = reductions.whole(jnp.where(others, -scores, jnp.inf))
    rising = jnp.sort(negative)
    count = jnp.maximum(reductions.add(jnp.sum(others)), 1)
    sides = [jnp.searchsorted(rising, -scores, side=side) for side in ("left", "right")]
    above = (sides[0] + sides[1]) / (2 * count)  # the others' share; ties are halves
    return reductions.add(jnp.sum(importance * above))
