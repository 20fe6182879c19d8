"""Batch normalization over nodes, its running statistics, and a GCN that has it.

In training a feature is normalized by its mean and variance over the nodes of the
graph, of each of several joined graphs by its own. These are the `observed` statistics.
The running ones, which prediction uses, are auxiliary state of the trainer:

  r <- 0.9 r + 0.1 s

with the observed s of every joined graph that has a train or an exposed node, one after
the other, as a network sees them that is called on one graph after the other. Graphs
without such nodes, as those that are only tested on, leave no trace. A module applied
without running statistics uses those of the graph that it is given.
"""

from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import graphs
from oodgat_jax.graphs import reductions
from oodgat_jax.models.layers import Bias, Linear, drop_hidden
from oodgat_jax.types import Array, Outputs, Rates, Split

RUNNING, OBSERVED = "statistics", "observed"  # collections of variables
MOMENTUM = 0.1
EPSILON = 1e-5


class BatchNorm(nn.Module):
    """Computes scale (x - mean) / sqrt(variance + 1e-5) + bias, per feature."""

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, x: Array) -> Array:
        """Maps [N, D] -> [N, D]."""
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        bias = self.param("bias", nn.initializers.zeros, (x.shape[-1],))
        if self.has_variable(RUNNING, "mean"):
            mean: Any = self.get_variable(RUNNING, "mean")
            variance: Any = self.get_variable(RUNNING, "variance")
        else:
            mean, variance = self._observe(graph, x)
        return scale * (x - mean) * jax.lax.rsqrt(variance + EPSILON) + bias

    def _observe(self, graph: jraph.GraphsTuple, x: Array) -> tuple[Array, Array]:
        """Returns mean and variance of each node's graph, [N, D] each; stores both."""
        member = _members(graph)
        count = jnp.maximum(reductions.total(member), 1.0)[:, None]  # [G, 1]
        mean = reductions.add(_real(member).T @ x) / count
        squares = (x - member @ mean) ** 2
        variance = reductions.add(_real(member).T @ squares) / count
        if self.is_mutable_collection(OBSERVED) and not self.is_initializing():
            unbiased = variance * count / jnp.maximum(count - 1.0, 1.0)
            self.put_variable(OBSERVED, "mean", mean)
            self.put_variable(OBSERVED, "variance", unbiased)
        return member @ mean, member @ variance


class GCNBatchNorm(nn.Module):
    """The GCN of GNNSafe's protocol: as GCN, with batch normalization before ReLU."""

    num_classes: int
    hidden: int = 64
    keeps_statistics: ClassVar[bool] = True

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Returns outputs without OOD logits; only the hidden layer is dropped."""
        weights = graphs.symmetric_weights(graph)
        x = graphs.aggregate(graph, weights, Linear(self.hidden)(graph.nodes))
        hidden = nn.relu(BatchNorm()(graph, Bias()(x)))
        x = Linear(self.num_classes)(drop_hidden(self, graph, hidden, rates))
        return Outputs(Bias()(graphs.aggregate(graph, weights, x)), hidden, ())


class GCNUnknown(nn.Module):
    """A GCNBatchNorm with a logit for one more class, that of unknown nodes.

    The logits of the known classes are its logits, the last one its OOD logit.
    """

    num_classes: int
    hidden: int = 64
    keeps_statistics: ClassVar[bool] = True

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Returns outputs with the unknown class as the only OOD logit."""
        outputs = GCNBatchNorm(self.num_classes + 1, self.hidden)(graph, rates)
        known, unknown = jnp.split(outputs.logits, [self.num_classes], axis=-1)
        return outputs._replace(logits=known, attention=(unknown,))


def keeps_statistics(module: nn.Module) -> bool:
    """Returns whether a module has running statistics."""
    return getattr(module, "keeps_statistics", False)


def start_statistics(module: nn.Module, params: Any, graph: jraph.GraphsTuple) -> Any:
    """Returns running statistics before the first step: means 0, variances 1."""
    _, found = jax.eval_shape(lambda: module.apply(params, graph, mutable=[OBSERVED]))

    def first(path: tuple, leaf: Any) -> Array:
        fill = jnp.zeros if path[-1].key == "mean" else jnp.ones
        return fill(leaf.shape[1:], leaf.dtype)

    return jax.tree_util.tree_map_with_path(first, found[OBSERVED])


def apply_observed(
    module: nn.Module,
    params: Any,
    statistics: Any,
    graph: jraph.GraphsTuple,
    split: Split,
    rates: Rates,
    key: Array,
) -> tuple[Outputs, Any]:
    """Applies a module as in training; returns outputs and new running statistics."""
    outputs, found = module.apply(
        params, graph, rates, rngs={"dropout": key}, mutable=[OBSERVED]
    )
    known = jnp.asarray(split.train) | jnp.asarray(split.exposure)
    seen = reductions.total(_members(graph) * known[:, None]) > 0  # [G]

    def update(running: Array, observed: Array) -> Array:
        for number in range(observed.shape[0]):
            moved = (1.0 - MOMENTUM) * running + MOMENTUM * observed[number]
            running = jnp.where(seen[number], moved, running)
        return running

    observed = jax.lax.stop_gradient(found[OBSERVED])
    return outputs, jax.tree.map(update, statistics, observed)


def apply_running(
    module: nn.Module,
    params: Any,
    statistics: Any,
    graph: jraph.GraphsTuple,
    rates: Rates | None = None,
    key: Array | None = None,
) -> Outputs:
    """Applies a trained module with its running statistics; with dropout if given."""
    rngs = None if key is None else {"dropout": key}
    given = {**params, RUNNING: statistics}
    outputs: Any = module.apply(given, graph, rates, rngs=rngs)
    return outputs


def _members(graph: jraph.GraphsTuple) -> Array:
    """Returns which joined graph a node is of, one-hot: [N, G] float32."""
    return jax.nn.one_hot(graphs.component(graph), graph.n_node.shape[0])


def _real(member: Array) -> Array:
    """Returns membership with zeros for the padding of shards."""
    real = reductions.without_padding(jnp.ones(member.shape[0], bool))
    return member * real[:, None]
