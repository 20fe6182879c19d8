"""GKDE's loss, and what a run needs before it: the kernel prior and a teacher."""

import functools

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from oodgat_jax import losses, models
from oodgat_jax.gkde import evidence
from oodgat_jax.gkde.inference import apply_dropped, posterior
from oodgat_jax.gkde.network import EvidentialGCN
from oodgat_jax.gkde.prior import kernel_prior
from oodgat_jax.training import Params, Run, Schedule, Task, train
from oodgat_jax.types import Array, Outputs, Split

RAMP = 200  # steps over which the teacher's weight rises to its full value
# Two checks, after the first step and after the last.
TEACHER_SCHEDULE = Schedule(max_steps=200, check_every=199, early_stop=False)


def customize(task: Task, module: EvidentialGCN) -> Task:
    """Returns GKDE's task: its own loss, and predictions under Monte Carlo dropout.

    The loss is first_decay / 2 |W1|^2 + `objective`. Validation, which chooses nothing
    here, looks at the network without dropout.
    """

    def loss(params, aux, graph, run: Run, step: Array, key: Array) -> Array:
        outputs = apply_dropped(module, params, graph, key)
        return _decay(params, run) + objective(outputs, run, step)

    def validate(params, aux, graph, run: Run) -> Array:
        return task.validate(params, aux, graph, run)

    def predict(params: Params, aux, graph: jraph.GraphsTuple) -> Outputs:
        return posterior(module, params)(graph)

    return task._replace(loss=loss, validate=validate, predict=predict)


def objective(outputs: Outputs, run: Run, step: Array) -> Array:
    """Computes squared error + kernel KL(Dir(alpha) || Dir(prior)) + imitation.

    The error is a mean over labeled nodes, the KL one over all nodes; imitation is
    min(1, t/200) times the mean over nodes and classes of p log(p / p_teacher).
    """
    alpha = evidence.concentration(outputs.logits)
    p = evidence.expected(alpha)
    error = evidence.squared_error(alpha, run.split.labels)
    divergence = evidence.kl_divergence(alpha, run.extra["prior"])
    imitation = p * (jnp.log(p) - run.extra["teacher"])
    ramp = jnp.minimum(1.0, step / RAMP)
    return (
        losses.masked_mean(error, run.split.train)
        + run.hyper["kernel"] * jnp.mean(divergence)
        + run.hyper["distillation"] * ramp * jnp.mean(imitation)
    )


def prepare(module: EvidentialGCN, graph: jraph.GraphsTuple, runs: Run) -> dict:
    """Returns the extras of runs [S]: prior and the teacher's log p, [S, N, C] each."""
    return {
        "prior": priors(graph, runs.split, module.num_classes),
        "teacher": teachers(module, graph, runs),
    }


def priors(graph: jraph.GraphsTuple, splits: Split, num_classes: int) -> np.ndarray:
    """Computes the kernel prior of every run [S, N, C]; equal train sets once."""
    senders, receivers = np.asarray(graph.senders), np.asarray(graph.receivers)
    known = np.where(np.asarray(splits.train), np.asarray(splits.labels), -1)
    distinct, index = np.unique(known, axis=0, return_inverse=True)
    found = [
        kernel_prior(senders, receivers, row, row >= 0, num_classes) for row in distinct
    ]
    return np.stack(found)[index.reshape(-1)]


def teachers(module: EvidentialGCN, graph: jraph.GraphsTuple, runs: Run) -> np.ndarray:
    """Returns log softmax [S, N, C] of the same network, trained as a plain GCN."""
    keys = jax.vmap(jax.random.fold_in, (0, None))(runs.key, TEACHER_SCHEDULE.max_steps)
    runs = runs._replace(key=keys)
    states = train(teacher_task(module), graph, runs, TEACHER_SCHEDULE)

    return np.asarray(_log_softmax(module, graph, states.best))


@functools.partial(jax.jit, static_argnums=0)
def _log_softmax(
    module: EvidentialGCN, graph: jraph.GraphsTuple, params: Params
) -> Array:
    """Computes log softmax of all runs' logits, params stacked [S]: [S, N, C]."""

    def one(params: Params) -> Array:
        return jax.nn.log_softmax(models.apply(module, params, graph).logits)

    return jax.lax.map(one, params)


@functools.lru_cache(maxsize=64)
def teacher_task(module: EvidentialGCN) -> Task:
    """Returns first_decay / 2 |W1|^2 + cross-entropy; nothing is validated."""

    def init(run: Run, graph: jraph.GraphsTuple) -> Params:
        return module.init({"params": run.key}, graph)

    def loss(params, aux, graph, run: Run, step: Array, key: Array) -> Array:
        outputs = apply_dropped(module, params, graph, key)
        return _decay(params, run) + losses.cross_entropy(outputs, run.split)

    def validate(params, aux, graph, run: Run) -> Array:
        return jnp.array(0.0)

    def predict(params, aux, graph: jraph.GraphsTuple) -> Outputs:
        return models.apply(module, params, graph)

    return Task(init, loss, validate, predict)


def _decay(params: Params, run: Run) -> Array:
    """Returns half the squared norm of the first layer's weights, times its factor."""
    first = params["params"]["first"]["kernel"]
    return run.hyper["first_decay"] * 0.5 * jnp.sum(first**2)
