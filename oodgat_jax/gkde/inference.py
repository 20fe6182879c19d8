"""Monte Carlo dropout: the trained network as a distribution, and its five measures.

A measure is a detector `(predict, graph, split) -> [N]`, higher = less certain; of the
five, vacuity is meant to find OOD nodes. Three of them need the mean logits alone. The
other two compare passes, so they ask a `Posterior` for its `Belief`; any other
predictor is taken for a single pass, which has no epistemic uncertainty.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax.gkde import evidence
from oodgat_jax.gkde.network import EvidentialGCN, apply_dropped
from oodgat_jax.train import Params
from oodgat_jax.types import Array, Detector, Outputs, Predict, Split

PASSES = 100
SEED = 0  # of the passes' dropout: the same network always gives the same scores


class Belief(NamedTuple):
    """Means over dropout passes."""

    logits: Array  # [N, C]
    hidden: Array  # [N, D]
    p: Array  # [N, C], expected probabilities
    entropy: Array  # [N], of a pass's expected probabilities


class Posterior:
    """A `Predict` whose logits are the mean over dropout passes."""

    def __init__(self, module: EvidentialGCN, params: Params, passes: int = PASSES):
        self._module, self._params, self._passes = module, params, passes
        self._graph = self._belief = None

    def __call__(self, graph: jraph.GraphsTuple) -> Outputs:
        """Outputs with the mean logits and the mean hidden layer."""
        belief = self.belief(graph)
        return Outputs(belief.logits, belief.hidden, ())

    def belief(self, graph: jraph.GraphsTuple) -> Belief:
        """Means over the passes; the last graph's are kept for the next measure."""
        if graph is not self._graph:
            self._graph, self._belief = graph, self._average(graph)
        return self._belief

    def _average(self, graph: jraph.GraphsTuple) -> Belief:
        """One pass at a time, so that nothing of size passes x N is held."""

        def one(key: Array) -> Belief:
            return point(apply_dropped(self._module, self._params, graph, key))

        def add(total: Belief, key: Array) -> tuple[Belief, None]:
            return jax.tree.map(jnp.add, total, one(key)), None

        keys = jax.random.split(jax.random.key(SEED), self._passes)
        total, _ = jax.lax.scan(add, one(keys[0]), keys[1:])
        return jax.tree.map(lambda leaf: leaf / self._passes, total)


def point(outputs: Outputs) -> Belief:
    """The belief of a single pass."""
    p = evidence.expected(evidence.concentration(outputs.logits))
    return Belief(outputs.logits, outputs.hidden, p, evidence.entropy(p))


def vacuity(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """C / S: GKDE's OOD score."""
    return evidence.vacuity(_alpha(predict, graph))


def dissonance(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Evidence for several classes at once; meant for errors, not for OOD nodes."""
    return evidence.dissonance(_alpha(predict, graph))


def differential_entropy(
    predict: Predict, graph: jraph.GraphsTuple, split: Split
) -> Array:
    """Entropy of the density Dir(alpha)."""
    return evidence.differential_entropy(_alpha(predict, graph))


def aleatoric(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Mean over passes of H(p): what remains if the weights are known."""
    return _belief(predict, graph).entropy


def epistemic(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """H(mean p) - mean H(p): what the passes disagree on."""
    belief = _belief(predict, graph)
    return evidence.entropy(belief.p) - belief.entropy


MEASURES: dict[str, Detector] = {
    "vacuity": vacuity,
    "dissonance": dissonance,
    "aleatoric": aleatoric,
    "epistemic": epistemic,
    "differential_entropy": differential_entropy,
}


def _alpha(predict: Predict, graph: jraph.GraphsTuple) -> Array:
    return evidence.concentration(predict(graph).logits)


def _belief(predict: Predict, graph: jraph.GraphsTuple) -> Belief:
    if isinstance(predict, Posterior):
        return predict.belief(graph)
    return point(predict(graph))
