"""CaGCN: a graph network that learns a temperature per node."""

from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
import optax

from oodgat_jax import graphs, losses
from oodgat_jax.graphs import reductions
from oodgat_jax.models import Bias, Linear, drop_hidden
from oodgat_jax.training.task import adam
from oodgat_jax.types import Array, Detector, Hyper, Predict, Rates, Split


class Calibrator(nn.Module):
    """A GCN C -> 16 -> 1; its first sum over neighbors, of frozen logits, is given."""

    @nn.compact
    def __call__(
        self,
        graph: jraph.GraphsTuple,
        weights: Array,
        smoothed: Array,
        rates: Rates | None = None,
    ) -> Array:
        """Computes g [N, 1] from the edges' weights [E] and smoothed logits [N, C]."""
        hidden = nn.relu(Bias()(Linear(16)(smoothed)))
        x = Linear(1)(drop_hidden(self, graph, hidden, rates))
        return Bias()(graphs.aggregate(graph, weights, x))


def cagcn(
    lr: Array | float = 0.01,
    weight_decay: Array | float = 5e-3,
    margin_weight: Array | float = 0.5,
    dropout: Array | float = 0.5,
    *,
    max_steps: int = 2000,
    patience: int = 100,
    seed: int = 0,
) -> Detector:
    """Returns CaGCN (Be Confident! Towards Trustworthy GNNs via Calibration, 2021).

        t     = log(1.1 + exp(g)),  g a GCN C -> 16 -> 1 on the logits f
        score = -max_c softmax(t f)_c

    The calibrator g is trained on the ID validation nodes V, the classifier frozen:
    CE + margin_weight / |V| (sum over right of (1 - p1 + p2) + sum over wrong of
    (p1 - p2)), p1 and p2 the two largest calibrated probabilities. Adam with L2; the
    calibrator with the lowest CE on V, dropout off, is kept.

    Args:
      lr: learning rate; may be traced.
      weight_decay: L2; may be traced.
      margin_weight: of the second term; may be traced.
      dropout: on the calibrator's hidden layer; may be traced.
      max_steps: at the most.
      patience: stop after this many steps without a lower CE.
      seed: of the calibrator's initialization and dropout, the same for all runs.
    """
    hyper = {
        "lr": lr,
        "weight_decay": weight_decay,
        "margin_weight": margin_weight,
        "dropout": dropout,
    }

    def detector(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        base = jax.lax.stop_gradient(predict(graph).logits)
        problem = _problem(graph, base, split)
        state = _start(problem, hyper, jax.random.key(seed))

        def going(state: _State) -> Array:
            return (state.step < max_steps) & (state.stale < patience)

        def step(state: _State) -> _State:
            return _step(problem, hyper, state)

        best = jax.lax.while_loop(going, step, state).best
        return -jax.nn.softmax(_calibrated(best, problem)).max(-1)

    return detector


class _Problem(NamedTuple):
    graph: jraph.GraphsTuple
    weights: Array  # [E], of a GCN
    base: Array  # [N, C], logits of the classifier
    smoothed: Array  # [N, C], the same summed over neighbors
    labels: Array  # [N], 0..C-1
    known: Array  # [N] bool, ID validation nodes


class _State(NamedTuple):
    params: Any
    opt_state: optax.OptState
    key: Array
    step: Array
    best: Any  # parameters of the lowest cross-entropy so far
    lowest: Array
    stale: Array  # steps since then


def _problem(graph: jraph.GraphsTuple, base: Array, split: Split) -> _Problem:
    known = jnp.asarray(split.val) & ~jnp.asarray(split.is_ood)
    labels = jnp.where(known, split.labels, 0)
    weights = graphs.symmetric_weights(graph)
    smoothed = graphs.aggregate(graph, weights, base)
    return _Problem(graph, weights, base, smoothed, labels, known)


def _start(problem: _Problem, hyper: Hyper, key: Array) -> _State:
    inputs = (problem.graph, problem.weights, problem.smoothed)
    params = Calibrator().init({"params": key}, *inputs)
    opt_state = adam(hyper).init(params)
    zero = jnp.array(0)
    return _State(params, opt_state, key, zero, params, jnp.array(jnp.inf), zero)


def _step(problem: _Problem, hyper: Hyper, state: _State) -> _State:
    key = jax.random.fold_in(state.key, state.step)
    rates = Rates(0.0, hyper["dropout"], 0.0)

    def loss(params: Any) -> Array:
        logits = _calibrated(params, problem, rates, key)
        return _loss(logits, problem, hyper["margin_weight"])

    gradient = reductions.average(jax.grad(loss)(state.params))
    updates, opt_state = adam(hyper).update(gradient, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    ce = _cross_entropy(_calibrated(params, problem), problem)
    better = ce < state.lowest
    return _State(
        params=params,
        opt_state=opt_state,
        key=state.key,
        step=state.step + 1,
        best=jax.tree.map(partial(jnp.where, better), params, state.best),
        lowest=jnp.where(better, ce, state.lowest),
        stale=jnp.where(better, 0, state.stale + 1),
    )


def _calibrated(
    params: Any,
    problem: _Problem,
    rates: Rates | None = None,
    key: Array | None = None,
) -> Array:
    """Returns logits t f [N, C]; rates and key for dropout, both None for none."""
    rngs = None if key is None else {"dropout": key}
    inputs = (problem.graph, problem.weights, problem.smoothed, rates)
    raw: Any = Calibrator().apply(params, *inputs, rngs=rngs)
    return problem.base * jnp.logaddexp(jnp.log(1.1), raw)


def _cross_entropy(logits: Array, problem: _Problem) -> Array:
    each = optax.softmax_cross_entropy_with_integer_labels(logits, problem.labels)
    return losses.masked_mean(each, problem.known)


def _loss(logits: Array, problem: _Problem, margin_weight: Array | float) -> Array:
    first, second = jnp.moveaxis(jax.lax.top_k(jax.nn.softmax(logits), 2)[0], -1, 0)
    right = jnp.argmax(logits, axis=-1) == problem.labels
    margin = jnp.where(right, 1.0 - first + second, first - second)
    spread = losses.masked_mean(margin, problem.known)
    return _cross_entropy(logits, problem) + margin_weight * spread
