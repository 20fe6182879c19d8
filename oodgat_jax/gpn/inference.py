"""GPN's scores: how little evidence there is, with and without the graph."""

import jax
import jraph

from oodgat_jax import graphs
from oodgat_jax.types import Array, Predict, Split


def evidence(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
    """Computes -log sum_c alpha_c: GPN's epistemic uncertainty with network effects."""
    return -jax.nn.logsumexp(predict(graph).logits, axis=-1)


def evidence_of_features(
    predict: Predict, graph: jraph.GraphsTuple, split: Split
) -> Array:
    """Computes -log sum_c alpha_c of the network without edges: GPN's epistemic
    uncertainty without network effects."""
    logits = predict(graphs.without_edges(graph)).logits
    return -jax.nn.logsumexp(logits, axis=-1)
