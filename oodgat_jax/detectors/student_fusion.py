"""The score of a network and that of its student, as one: the mean of two ranks."""

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax.detectors import fitted_fusion, rank_fusion
from oodgat_jax.types import Array, Predict, Split


def with_student(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes the mean of the ranks of FUSED+fit and of a student's score, in [0, 1].

    Ranks are read off quantiles that the model has kept. Outputs without a student, or
    with one that has not learned, are scored by FUSED+fit.
    """
    outputs = predict(graph)
    own = fitted_fusion.fitted(lambda _: outputs, graph, split)
    if not outputs.student:
        return own
    _, logits, quantiles, share = outputs.student
    both = rank_fusion.ranks(jnp.stack([own, unknown_logit(logits)]), quantiles)
    return jnp.where(share > 0, both.mean(0), own)


def unknown_logit(logits: Array) -> Array:
    """Returns the log odds of the last of C + 1 classes: [N, C + 1] -> [N]."""
    return logits[:, -1] - jax.nn.logsumexp(logits[:, :-1], axis=-1)
