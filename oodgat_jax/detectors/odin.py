"""A small step of the features against a gradient; ODIN, which scores after it."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jraph
import optax

from oodgat_jax.graphs import reductions
from oodgat_jax.graphs.sparse import SparseFeatures, stands_for_dense
from oodgat_jax.types import Array, Detector, Predict, Split


def odin(
    temperature: Array | float = 1000.0,
    epsilon: Array | float = 0.0014,
    *,
    dense: bool = False,
    zero_sign: float = 0.0,
) -> Detector:
    """Returns ODIN (Enhancing the Reliability of OOD Image Detection, 2018).

        x'    = x - eps sign(grad_x CE(f(x) / T, argmax f(x)))
        score = -max_c softmax(f(x') / T)_c

    One gradient of the mean loss over all nodes, so that a node's features move for
    its neighbors' sake too.

    Args:
      temperature: T > 0; may be traced.
      epsilon: eps >= 0; may be traced.
      dense: of sparse features, move all entries and not only those stored; makes
        an array [N, F].
      zero_sign: what sign(0) is; some implementations take 1.
    """

    def detector(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        def loss(graph: jraph.GraphsTuple) -> Array:
            logits = predict(graph).logits
            called = jnp.argmax(logits, axis=-1)
            return reductions.mean(
                optax.softmax_cross_entropy_with_integer_labels(
                    logits / temperature, called
                )
            )

        moved = input_step(loss, graph, epsilon, dense=dense, zero_sign=zero_sign)
        return -jax.nn.softmax(predict(moved).logits / temperature).max(-1)

    return detector


def input_step(
    loss: Callable[[jraph.GraphsTuple], Array],
    graph: jraph.GraphsTuple,
    epsilon: Array | float,
    *,
    dense: bool = False,
    zero_sign: float = 0.0,
) -> jraph.GraphsTuple:
    """Returns the graph with features x' = x - eps sign(grad_x loss(graph)).

    Args:
      loss: graph -> scalar.
      graph: its features are an array [N, F] or SparseFeatures.
      epsilon: eps; may be traced.
      dense: of sparse features, move all entries and not only those stored.
      zero_sign: what sign(0) is.
    """
    if isinstance(graph.nodes, SparseFeatures):
        dense = dense or stands_for_dense(graph.nodes)
    graph = graph._replace(nodes=as_dense(graph.nodes)) if dense else graph
    values = _values(graph)
    slope = jax.grad(lambda values: loss(_with_values(graph, values)))(values)
    sign = jnp.where(slope == 0, zero_sign, jnp.sign(slope))
    return _with_values(graph, values - epsilon * sign)


def as_dense(features: Array | SparseFeatures) -> Array:
    """Returns features as an array [N, F]."""
    if not isinstance(features, SparseFeatures):
        return features
    rows, columns = features.pattern.rows, features.pattern.columns
    zeros = jnp.zeros(features.shape, features.values.dtype)
    return zeros.at[rows, columns].add(features.values)


def _values(graph: jraph.GraphsTuple) -> Array:
    features = graph.nodes
    sparse = isinstance(features, SparseFeatures)
    return jnp.asarray(features.values if sparse else features)


def _with_values(graph: jraph.GraphsTuple, values: Array) -> jraph.GraphsTuple:
    features = graph.nodes
    if isinstance(features, SparseFeatures):
        return graph._replace(nodes=features._replace(values=values))
    return graph._replace(nodes=values)
