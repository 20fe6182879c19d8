"""GKDE's losses as a Task, and what a run needs first: the prior and a teacher."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from oodgat_jax import losses, metrics
from oodgat_jax.gkde import evidence
from oodgat_jax.gkde.network import EvidentialGCN, apply_dropped, first_layer
from oodgat_jax.gkde.prior import kernel_prior
from oodgat_jax.train import Params, Run, Schedule, Task, train
from oodgat_jax.types import Array, Outputs, Split

# All steps are taken and the last parameters are kept: GKDE does not stop early. A
# run's last check is at a step 1 + k check_every, here 1000 and 200.
SCHEDULE = Schedule(max_steps=1000, check_every=111, early_stop=False)
TEACHER_SCHEDULE = Schedule(max_steps=200, check_every=199, early_stop=False)
RAMP = 200  # steps over which the teacher's weight rises

HYPER = {
    "lr": 0.01,
    "weight_decay": 0.0,  # of all parameters, by the optimiser
    "first_decay": 5e-4,  # of the first layer, in the loss
    "kernel": 0.1,  # weight of the prior
    "distillation": 1.0,  # weight of the teacher
}


def task(module: EvidentialGCN) -> Task:
    """What is trained; the runs carry the extras of `prepare`."""

    def loss(
        params: Params, graph: jraph.GraphsTuple, run: Run, step: Array, key: Array
    ) -> Array:
        outputs = apply_dropped(module, params, graph, key)
        return _decay(params, run) + objective(outputs, run, step)

    return Task(_initialiser(module), loss, _validator(module))


def objective(outputs: Outputs, run: Run, step: Array) -> Array:
    """Squared error + kernel KL(Dir(alpha) || Dir(prior)) + ramp distillation.

    The error is a mean over labelled nodes, the KL one over all nodes; distillation is
    the mean over nodes and classes of p log(p / p_teacher), and its ramp min(1, t/200).
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
    """The extras of runs [S]: prior [S, N, C], and the teacher's log p [S, N, C]."""
    return {
        "prior": priors(graph, runs.split, module.num_classes),
        "teacher": teachers(module, graph, runs),
    }


def priors(graph: jraph.GraphsTuple, splits: Split, num_classes: int) -> np.ndarray:
    """The kernel prior of every run [S, N, C]; equal train sets are searched once."""
    senders, receivers = np.asarray(graph.senders), np.asarray(graph.receivers)
    labels, train = np.asarray(splits.labels), np.asarray(splits.train)
    known = np.where(train, labels, -1)
    distinct, index = np.unique(known, axis=0, return_inverse=True)
    found = [
        kernel_prior(senders, receivers, row, row >= 0, num_classes) for row in distinct
    ]
    return np.stack(found)[index.reshape(-1)]


def teachers(module: EvidentialGCN, graph: jraph.GraphsTuple, runs: Run) -> np.ndarray:
    """log softmax [S, N, C] of a GCN trained with cross-entropy for every run."""
    keys = jax.vmap(jax.random.fold_in, (0, None))(runs.key, TEACHER_SCHEDULE.max_steps)
    states = train(
        teacher_task(module), graph, runs._replace(key=keys), TEACHER_SCHEDULE
    )

    def predict(params: Params) -> Array:
        return jax.nn.log_softmax(module.apply(params, graph).logits)

    return np.asarray(jax.jit(lambda best: jax.lax.map(predict, best))(states.best))


def teacher_task(module: EvidentialGCN) -> Task:
    """The same network as a plain classifier."""

    def loss(
        params: Params, graph: jraph.GraphsTuple, run: Run, step: Array, key: Array
    ) -> Array:
        outputs = apply_dropped(module, params, graph, key)
        return _decay(params, run) + losses.cross_entropy(outputs, run.split)

    return Task(_initialiser(module), loss, _validator(module))


def _decay(params: Params, run: Run) -> Array:
    """first_decay / 2 |W1|^2."""
    return run.hyper["first_decay"] * 0.5 * jnp.sum(first_layer(params) ** 2)


def _initialiser(module: EvidentialGCN):
    return lambda key, graph: module.init({"params": key}, graph)


def _validator(module: EvidentialGCN):
    """For the history only: vacuity without Monte Carlo."""

    def validate(params: Params, graph: jraph.GraphsTuple, run: Run) -> Array:
        logits = module.apply(params, graph).logits
        scores = evidence.vacuity(evidence.concentration(logits))
        return metrics.validation_score(scores, logits, run.split)

    return validate
