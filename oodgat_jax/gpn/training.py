"""GPN's loss, its optimizer with a warm-up of the flow, and the classes' shares."""

import math
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
import optax
from jax.scipy.special import digamma

from oodgat_jax.gkde import evidence
from oodgat_jax.gpn.network import PRIOR
from oodgat_jax.graphs import reductions
from oodgat_jax.methods import by_validation_loss, rates
from oodgat_jax.training import Aux, Params, Run, Task
from oodgat_jax.types import Array, Hyper, Outputs, Split

WARM_UP = 5  # steps that train the flow alone
LARGE = 1e4  # concentration from which the entropy is approximated


def customize(task: Task, module: nn.Module) -> Task:
    """Returns GPN's task: its loss, and the classes' shares as auxiliary state."""

    def loss(params, aux, graph, run: Run, step: Array, key: Array) -> Array:
        given = {**params, PRIOR: aux}
        rngs = {"dropout": key}
        outputs: Any = module.apply(given, graph, rates(run.hyper), rngs=rngs)
        return objective(outputs, run.split, run.hyper)

    def predict(params: Params, aux: Aux, graph: jraph.GraphsTuple) -> Outputs:
        outputs: Any = module.apply({**params, PRIOR: aux}, graph)
        return outputs

    def init_aux(params: Params, run: Run, graph: jraph.GraphsTuple) -> Aux:
        return {"shares": shares(run.split, module.num_classes)}

    task = task._replace(loss=loss, predict=predict, init_aux=init_aux)
    return by_validation_loss(task, module)


def objective(outputs: Outputs, split: Split, hyper: Hyper) -> Array:
    """Computes the sum over labeled nodes of psi(S) - psi(alpha_y) - `entropy_weight`
    times the entropy of Dir(alpha), S = sum_c alpha_c."""
    alpha = jnp.exp(outputs.logits)
    member = jax.nn.one_hot(split.labels, alpha.shape[1])
    own = jnp.sum(jnp.where(member > 0, alpha, 0.0), axis=-1)
    risk = digamma(alpha.sum(-1)) - digamma(jnp.where(split.train, own, 1.0))
    each = risk - hyper["entropy_weight"] * entropy(alpha)
    return reductions.total(each, where=jnp.asarray(split.train))


def entropy(alpha: Array) -> Array:
    """Computes the entropy of Dir(alpha), in nats: [N, C] -> [N].

    From S = 1e4 on it is 1/2 ((C - 1) (1 + log 2 pi) + sum_c log alpha_c) - (C - 1/2)
    log S, as in GPN's code: float32 has no digits for the exact one.
    """
    size, total = alpha.shape[-1], jnp.sum(alpha, -1)
    large = total >= LARGE
    exact = evidence.differential_entropy(jnp.where(large[:, None], 1.0, alpha))
    spread = 0.5 * (size - 1) * (1.0 + math.log(2 * math.pi))
    rough = spread + 0.5 * jnp.sum(jnp.log(alpha), -1) - (size - 0.5) * jnp.log(total)
    return jnp.where(large, rough, exact)


def shares(split: Split, num_classes: int) -> Array:
    """Computes each class's share of the train nodes: [C]."""
    member = jax.nn.one_hot(split.labels, num_classes)
    counts = reductions.total(member, where=jnp.asarray(split.train))
    return counts / jnp.maximum(counts.sum(), 1.0)


class _State(NamedTuple):
    """Where the optimizer stands."""

    steps: Array
    inner: optax.OptState


def optimizer(hyper: Hyper) -> optax.GradientTransformation:
    """Returns Adam that trains the flow alone for WARM_UP steps, then starts anew.

    L2 is added to the gradient of everything but the flow.
    """
    inner = optax.chain(
        optax.add_decayed_weights(hyper["weight_decay"], mask=_outside_flow),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(hyper["lr"]),
    )

    def init(params: Any) -> _State:
        return _State(jnp.array(0), inner.init(params))

    def update(gradient: Any, state: _State, params: Any = None) -> tuple[Any, _State]:
        fresh = state.steps == WARM_UP
        start = jax.tree.map(
            lambda new, old: jnp.where(fresh, new, old), inner.init(params), state.inner
        )
        updates, found = inner.update(gradient, start, params)
        held = jax.tree.map(
            lambda outside, leaf: jnp.where(
                outside & (state.steps < WARM_UP), 0.0, leaf
            ),
            _outside_flow(updates),
            updates,
        )
        return held, _State(state.steps + 1, found)

    return optax.GradientTransformation(init, update)


def _outside_flow(tree: Any) -> Any:
    """Returns which parameters are not the flow's, as a tree of bools."""

    def outside(path: tuple, leaf: Any) -> bool:
        return not any(getattr(part, "key", None) == "flow" for part in path)

    return jax.tree_util.tree_map_with_path(outside, tree)
