"""What is trained, and where a run stands: Task, Schedule, Run and State."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jraph
import optax

from oodgat_jax.types import Array, Hyper, Outputs, Split

Params = Any  # a pytree
Aux = Any  # a pytree


def adam(hyper: Hyper) -> optax.GradientTransformation:
    """Returns Adam with L2 added to the gradient; its numbers may be traced."""
    return optax.chain(
        optax.add_decayed_weights(hyper["weight_decay"]),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(hyper["lr"]),
    )


def no_aux(params: Params, run: "Run", graph: jraph.GraphsTuple) -> Aux:
    """Returns the auxiliary state of a task that has none."""
    del params, run, graph
    return ()


def same_aux(params: Params, aux: Aux, step: Array) -> Aux:
    """Returns the auxiliary state unchanged."""
    del params, step
    return aux


class Task(NamedTuple):
    """Everything that the trainer has to know, as pure functions.

    All that a compiled program depends on is here or an argument, so that a Task with
    one function replaced is another program. A loss may return (scalar, aux) where
    it changes the auxiliary state itself, as running statistics do; so may `validate`,
    whose state is kept with the parameters that it has judged.
    """

    init: Callable[..., Params]  # (run, graph)
    loss: Callable[..., Any]  # (params, aux, graph, run, step, key) -> scalar
    validate: Callable[..., Any]  # (params, aux, graph, run) -> higher is better
    predict: Callable[..., Outputs]  # (params, aux, graph), what detectors see
    optimizer: Callable[[Hyper], optax.GradientTransformation] = adam
    init_aux: Callable[..., Aux] = no_aux  # (params, run, graph): teacher, queue, ...
    after_step: Callable[..., Aux] = same_aux  # (params, aux, step)
    # (params, aux, graph, run) -> aux: completes what is kept, once, of the parameters
    # that are; None for nothing.
    finish: Callable[..., Aux] | None = None


class Schedule(NamedTuple):
    """When to validate and when to stop; part of the compiled program."""

    max_steps: int = 1000
    check_every: int = 10  # validation after steps 1, 1 + check_every, ...
    patience: int = 20  # stop after more than this many checks without a new best
    early_stop: bool = True  # False: take all steps, and call the last the best


DEFAULT_SCHEDULE = Schedule()


class Run(NamedTuple):
    """One training run; runs stack on a leading axis."""

    key: Array  # typed PRNG key
    split: Split
    hyper: Hyper
    extra: Any = None  # whatever else a method needs, a pytree: a prior, weights, ...


class State(NamedTuple):
    """Where a run stands."""

    params: Params
    aux: Aux
    opt_state: optax.OptState
    step: Array  # steps taken
    best: Params  # parameters of the best validation so far
    best_aux: Aux
    best_score: Array
    best_step: Array
    stale: Array  # checks since the best
    done: Array
    failed_at: Array  # step whose loss was not finite, or -1
    scores: Array  # [checks] validation score at each check, nan beyond the last
    losses: Array  # [checks] training loss at each check, nan beyond the last


class Progress(NamedTuple):
    """What a progress line shows, given after every call to the devices."""

    steps: int  # steps taken by all runs so far
    finished: int
    going: int
    total: int
    score: float  # mean best validation score of the runs under way
    left: int = 0  # steps that remain, if no run stops early


def num_checks(schedule: Schedule) -> int:
    """Returns how many validations a run has at most."""
    return -(-schedule.max_steps // schedule.check_every)
