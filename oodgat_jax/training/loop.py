"""One run as a pure function: train steps, validation, keep-best and patience.

`advance` takes a run from one validation to the next, on device. `scheduler.train`
drives it from the host for many runs.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jraph
import optax

from oodgat_jax.graphs import reductions
from oodgat_jax.training.task import Aux, Params, Run, Schedule, State, Task, num_checks
from oodgat_jax.types import Array


def start(task: Task, schedule: Schedule, graph: jraph.GraphsTuple, run: Run) -> State:
    """Returns the state of a run before its first step."""
    params = task.init(run, graph)
    aux = task.init_aux(params, run, graph)
    history = jnp.full(num_checks(schedule), jnp.nan)
    return State(
        params=params,
        aux=aux,
        opt_state=task.optimizer(run.hyper).init(params),
        step=jnp.array(0),
        best=params,
        best_aux=aux,
        best_score=jnp.array(-jnp.inf),
        best_step=jnp.array(0),
        stale=jnp.array(0),
        done=jnp.array(False),
        failed_at=jnp.array(-1),
        scores=history,
        losses=history,
    )


def with_aux(found: Any, aux: Aux) -> tuple[Array, Aux]:
    """Returns a value with the auxiliary state, which it may have brought along."""
    return found if isinstance(found, tuple) else (found, aux)


def train_step(
    task: Task, graph: jraph.GraphsTuple, run: Run, state: State
) -> tuple[State, Array]:
    """Takes one gradient step; returns the new state and the loss."""
    key = jax.random.fold_in(run.key, state.step)

    def value(params: Params) -> tuple[Array, Aux]:
        found = task.loss(params, state.aux, graph, run, state.step, key)
        return with_aux(found, state.aux)

    (loss, aux), gradient = jax.value_and_grad(value, has_aux=True)(state.params)
    updates, opt_state = task.optimizer(run.hyper).update(
        reductions.average(gradient), state.opt_state, state.params
    )
    failed_at = jnp.where(
        (state.failed_at < 0) & ~jnp.isfinite(loss), state.step, state.failed_at
    )
    params = optax.apply_updates(state.params, updates)
    state = state._replace(
        params=params,
        aux=task.after_step(params, aux, state.step),
        opt_state=opt_state,
        step=state.step + 1,
        failed_at=failed_at,
    )
    return state, loss


def check(
    task: Task,
    schedule: Schedule,
    graph: jraph.GraphsTuple,
    run: Run,
    state: State,
    loss: Array,
) -> State:
    """Validates, keeps the best of strict improvements, and decides to stop."""
    judged = task.validate(state.params, state.aux, graph, run)
    score, aux = with_aux(judged, state.aux)
    failed = state.failed_at >= 0
    better = ((score > state.best_score) | (not schedule.early_stop)) & ~failed
    position = (state.step - 1) // schedule.check_every
    stale = jnp.where(better, 0, state.stale + 1)
    last = state.step + _between(schedule, state.step) > schedule.max_steps
    best, best_aux = jax.tree.map(
        lambda new, old: jnp.where(better, new, old),
        (state.params, aux),
        (state.best, state.best_aux),
    )
    return state._replace(
        aux=aux,
        best=best,
        best_aux=best_aux,
        best_score=jnp.where(better, score, state.best_score),
        best_step=jnp.where(better, state.step, state.best_step),
        stale=stale,
        done=(stale > schedule.patience) | last | failed,
        scores=state.scores.at[position].set(score),
        losses=state.losses.at[position].set(loss),
    )


def _between(schedule: Schedule, step: Array) -> Array | int:
    """Returns the steps to the next check; the last step has one if it is kept."""
    if schedule.early_stop:
        return schedule.check_every
    left = schedule.max_steps - step
    return jnp.clip(left, 1, schedule.check_every)


def advance(
    task: Task,
    schedule: Schedule,
    graph: jraph.GraphsTuple,
    run: Run,
    state: State,
    checks: Array,
) -> State:
    """Takes a run through up to `checks` validations, or until it is done; then it is
    finished."""

    def step(_, carry):
        return train_step(task, graph, run, carry[0])

    def body(carry):
        state, count = carry
        # The first check is after step 1, so that no step comes after the last check.
        steps = jnp.where(state.step > 0, _between(schedule, state.step), 1)
        state, loss = jax.lax.fori_loop(0, steps, step, (state, jnp.array(jnp.nan)))
        return check(task, schedule, graph, run, state, loss), count + 1

    def going(carry):
        state, count = carry
        return ~state.done & (count < checks)

    state = jax.lax.while_loop(going, body, (state, jnp.array(0)))[0]
    return state if task.finish is None else _finish(task.finish, graph, run, state)


def _finish(
    finish: Callable[..., Aux], graph: jraph.GraphsTuple, run: Run, state: State
) -> State:
    """Completes what a run keeps, if it is done."""
    aux = jax.lax.cond(
        state.done,
        lambda: finish(state.best, state.best_aux, graph, run),
        lambda: state.best_aux,
    )
    return state._replace(best_aux=aux)
