"""Three scores as one whose weights are fitted to held-out known nodes.

ENT, ATT, and the distance from the known classes in the hidden layer (Mahalanobis).
Which of them is the best one, and how far it should be spread over the graph, depends
on the graph. Known validation nodes tell without any OOD label: if the share p of the
other nodes is known, the AUROC of held-out known nodes against all others is
p / 2 + (1 - p) times the AUROC of known against unknown nodes, so both rank scores
alike. It is estimated from few nodes, so no candidate is picked: all are averaged, the
better the more.
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from oodgat_jax import graphs
from oodgat_jax.detectors import distance, rank_fusion
from oodgat_jax.graphs import reductions
from oodgat_jax.types import Array, Outputs, Predict, Split

# Candidates: shares of ENT, ATT and the distance in quarters, rounds of propagation.
SCORES, PARTS = 3, 4
SHARES = np.array(
    [s for s in itertools.product(range(PARTS + 1), repeat=SCORES) if sum(s) == PARTS]
) / float(PARTS)  # [W, SCORES]
ROUNDS = (0, 1, 2, 4, 8)
# What is expected before a node is held out: about the weights of FUSED, one round.
_EXPECTED_SHARES = np.array([*rank_fusion.WEIGHTS, 0.0])
_EXPECTED_ROUNDS = np.array([0.2, 0.4, 0.2, 0.1, 0.1])
_SHARE_DEVIATION = 0.4
PRIOR = np.log(_EXPECTED_ROUNDS) - np.sum(
    np.square((SHARES - _EXPECTED_SHARES) / _SHARE_DEVIATION) / 4, -1, keepdims=True
)  # [W, R], logarithms up to a constant
TEMPERATURE = 0.015  # of the AUROC: 1.5 points less are e times less weight
BINS = 4096  # that scores are compared by, in linear time
KNOWN_BELOW = 0.5  # nodes whose FUSED is lower are counted for the sizes of classes


class Fit(NamedTuple):
    """What a model keeps of the graph of its fit (`Outputs.reference`)."""

    quantiles: Array  # [SCORES, Q] that ranks are read off
    weights: Array  # [R, SCORES] after each number of rounds, not negative, sum 1
    root: Array  # [D, D], means [C, D] and present [C]: see `distance.Classes`
    means: Array
    present: Array


def fitted(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes the weighted mean of three ranks, spread over the graph, in [0, 1].

    The fit is the one that the model has kept, else one to this split.
    """
    outputs = predict(graph)
    kept = Fit(*outputs.reference) if outputs.reference else fit(outputs, graph, split)
    ranks = _spread(graph, _ranks(outputs, kept))
    return jnp.einsum("rs,rsn->n", kept.weights, ranks)


def fit(outputs: Outputs, graph: jraph.GraphsTuple, split: Split) -> Fit:
    """Returns what is to be kept; labels are read of known nodes alone.

    Args:
      outputs: of the graph.
      graph: of the fit.
      split: whose train nodes give the classes, and whose known validation nodes are
        held out.
    """
    classes = distance.fit_classes(outputs.hidden, split, outputs.logits.shape[1])
    quantiles = rank_fusion.quantiles(_scores(outputs, classes))
    unweighted = Fit(quantiles, jnp.zeros((len(ROUNDS), SCORES)), *classes)
    ranks = _spread(graph, _ranks(outputs, unweighted))
    found = unweighted._replace(
        weights=_weights(ranks, rank_fusion.own_logits(outputs), split)
    )
    return jax.lax.stop_gradient(found)


def empty(outputs: Outputs) -> Fit:
    """Returns a Fit of zeros for outputs of these shapes."""
    classes, size = outputs.logits.shape[1], outputs.hidden.shape[1]
    return Fit(
        quantiles=jnp.zeros((SCORES, rank_fusion.QUANTILES)),
        weights=jnp.zeros((len(ROUNDS), SCORES)),
        root=jnp.zeros((size, size)),
        means=jnp.zeros((classes, size)),
        present=jnp.zeros(classes, bool),
    )


def _scores(outputs: Outputs, classes: distance.Classes) -> Array:
    far = distance.nearest_class(classes, outputs.hidden)
    return jnp.concatenate([rank_fusion.scores(outputs), far[None]])


def _ranks(outputs: Outputs, kept: Fit) -> Array:
    classes = distance.Classes(kept.root, kept.means, kept.present)
    return rank_fusion.ranks(_scores(outputs, classes), kept.quantiles)


def _spread(graph: jraph.GraphsTuple, ranks: Array) -> Array:
    """Returns the ranks [SCORES, N] after each number of rounds: [R, SCORES, N]."""
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
    known = others & (rank_fusion.weighted(ranks[ROUNDS.index(0)]) < KNOWN_BELOW)
    importance = _importance(logits, jnp.where(held, labels, 0), held, known)
    shares = jnp.asarray(SHARES, ranks.dtype)

    def areas(share: Array) -> Array:  # one at a time: a graph may be large
        return jax.lax.map(lambda x: _area(share @ x, importance, others), ranks)

    trust = jax.nn.softmax(
        jax.lax.map(areas, shares) / TEMPERATURE + PRIOR, axis=(0, 1)
    )
    return jnp.einsum("wr,ws->rs", trust, shares)


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
    """Returns the AUROC of the other nodes against the held-out ones, by importance.

    Scores are in [0, 1]; those in the same bin count as ties.
    """
    bins = jnp.clip((BINS * scores).astype(jnp.int32), 0, BINS - 1)
    counts = jnp.zeros(BINS, jnp.int32).at[bins].add(others.astype(jnp.int32))
    counts = reductions.add(counts)
    above = jnp.sum(counts) - jnp.cumsum(counts) + counts / 2  # the others; ties: half
    share = above / jnp.maximum(jnp.sum(counts), 1)
    return reductions.add(jnp.sum(importance * share[bins]))
