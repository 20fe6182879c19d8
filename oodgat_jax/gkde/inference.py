"""Monte Carlo dropout: the trained network as a distribution, and its five measures.

A measure is a detector `(predict, graph, split) -> [N]`, higher = less certain; of the
five, vacuity is meant to find OOD nodes. Three of them need the mean logits alone. The
other two compare passes; they are those of `detectors.passes`.
"""

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import models
from oodgat_jax.detectors import aleatoric, epistemic
from oodgat_jax.gkde import evidence
from oodgat_jax.gkde.network import EvidentialGCN
from oodgat_jax.training import Params
from oodgat_jax.types import Array, Detector, Outputs, Predict, Rates, Split

PASSES = 100
SEED = 0  # of the passes' dropout: the same network always gives the same scores


def apply_dropped(
    module: EvidentialGCN, params: Params, graph: jraph.GraphsTuple, key: Array
) -> Outputs:
    """Runs one pass with dropout, as in training."""
    rates = Rates(module.rate, module.rate, 0.0)
    return models.apply(module, params, graph, rates, key)


def posterior(module: EvidentialGCN, params: Params, passes: int = PASSES) -> Predict:
    """Returns the trained network as means over dropout passes."""

    def predict(graph: jraph.GraphsTuple) -> Outputs:
        def one(key: Array) -> Outputs:
            return single(apply_dropped(module, params, graph, key))

        def add(total: Outputs, key: Array) -> tuple[Outputs, None]:
            return jax.tree.map(jnp.add, total, one(key)), None

        # One pass after the other, so that nothing of size passes x N is held.
        keys = jax.random.split(jax.random.key(SEED), passes)
        total, _ = jax.lax.scan(add, one(keys[0]), keys[1:])
        return jax.tree.map(lambda leaf: leaf / passes, total)

    return predict


def single(outputs: Outputs) -> Outputs:
    """Returns the outputs with the statistics of one pass."""
    p = evidence.expected(evidence.concentration(outputs.logits))
    return outputs._replace(passes=(p, evidence.entropy(p)))


def vacuity(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes C / S: GKDE's OOD score."""
    return evidence.vacuity(_alpha(predict, graph))


def dissonance(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Measures evidence for several classes at once; meant for errors, not for OOD."""
    return evidence.dissonance(_alpha(predict, graph))


def differential_entropy(
    predict: Predict, graph: jraph.GraphsTuple, split: Split
) -> Array:
    """Returns entropy of the density Dir(alpha)."""
    return evidence.differential_entropy(_alpha(predict, graph))


MEASURES: dict[str, Detector] = {
    "vacuity": vacuity,
    "dissonance": dissonance,
    "aleatoric": aleatoric,
    "epistemic": epistemic,
    "differential_entropy": differential_entropy,
}


def _alpha(predict: Predict, graph: jraph.GraphsTuple) -> Array:
    return evidence.concentration(predict(graph).logits)
