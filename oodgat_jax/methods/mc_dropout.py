"""Monte Carlo dropout: a trained network as the mean over passes with dropout."""

from typing import Any

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import losses, models
from oodgat_jax.methods.choosing import by_validation_loss
from oodgat_jax.training import Aux, Params, Run, Task
from oodgat_jax.types import Array, Outputs, Rates

PASSES = 20
SEED = 0  # of the passes' dropout: the same network always gives the same scores


def keep_dropout(task: Task, module: Any) -> Task:
    """Returns the task whose predictions are means over 20 passes with dropout (Gal and
    Ghahramani, Dropout as a Bayesian Approximation, 2016).

    The rates of training become part of the auxiliary state. Logits and hidden layer
    are means over passes; `passes` holds the mean of p and of H(p), from which total,
    aleatoric and epistemic uncertainty follow. The step is chosen by the validation
    loss of the network without dropout. A function for `Method.customize`.
    """
    task = by_validation_loss(task, module)

    def init_aux(params: Params, run: Run, graph: jraph.GraphsTuple) -> Aux:
        rates = [run.hyper[name] for name in models.RATES]
        return task.init_aux(params, run, graph), Rates(*map(jnp.asarray, rates))

    def loss(params, aux, graph, run: Run, step: Array, key: Array) -> Any:
        found = task.loss(params, aux[0], graph, run, step, key)
        value, inner = found if isinstance(found, tuple) else (found, aux[0])
        return value, (inner, aux[1])

    def validate(params, aux, graph, run: Run) -> Array:
        return task.validate(params, aux[0], graph, run)

    def predict(params: Params, aux: Aux, graph: jraph.GraphsTuple) -> Outputs:
        def one(key: Array) -> Outputs:
            return single(_apply(module, params, aux[0], aux[1], graph, key))

        def add(total: Outputs, key: Array) -> tuple[Outputs, None]:
            return jax.tree.map(jnp.add, total, one(key)), None

        # One pass after the other, so that nothing of size passes x N is held.
        keys = jax.random.split(jax.random.key(SEED), PASSES)
        total, _ = jax.lax.scan(add, one(keys[0]), keys[1:])
        return jax.tree.map(lambda leaf: leaf / PASSES, total)

    def after_step(params: Params, aux: Aux, step: Array) -> Aux:
        return task.after_step(params, aux[0], step), aux[1]

    return task._replace(
        init_aux=init_aux,
        loss=loss,
        validate=validate,
        predict=predict,
        after_step=after_step,
    )


def single(outputs: Outputs) -> Outputs:
    """Returns the outputs with the statistics of one pass."""
    p = jax.nn.softmax(outputs.logits)
    return outputs._replace(passes=(p, losses.softmax_entropy(outputs.logits)))


def _apply(module, params, statistics, rates, graph, key) -> Outputs:
    if models.keeps_statistics(module):
        return models.apply_running(module, params, statistics, graph, rates, key)
    return models.apply(module, params, graph, rates, key)
