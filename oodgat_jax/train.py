"""Training: one run as a pure function, many runs through one compiled program.

A run is (key, split, hyper-parameters). `advance` takes a run from one validation to
the next, on device: train steps, validation, keep-best and patience are all inside.
`train` drives it from the host over slots: each device holds some slots, a slot works
on one run, and takes the next one when that run has stopped. Nothing is compiled per
run, and a run never sees its neighbours.

On the CPU a device has one slot (batching runs is slower there than one after the
other, and devices are what uses the cores: see `use_cores`); on accelerators a
device's slots are one `vmap`.

With a mesh of two axes a slot is a row of devices along `graph`, each of which holds a
piece of the graph (see `sharding`); with several processes each of them drives its own
devices, and all of them come to the same decisions from the same numbers.
"""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from oodgat_jax import capacity, graphs, nodes, slotting
from oodgat_jax.checkpoints import Checkpoints
from oodgat_jax.sharding import place
from oodgat_jax.sharding.mesh import GRAPH, RUNS
from oodgat_jax.types import Array, Hyper, InputError, Split

Params = Any


class Task(NamedTuple):
    """What is trained: three pure functions."""

    init: Callable[..., Params]  # (key, graph)
    loss: Callable[..., Array]  # (params, graph, run, step, key) -> scalar
    validate: Callable[..., Array]  # (params, graph, run) -> scalar, higher is better


class Schedule(NamedTuple):
    """When to validate and when to stop; part of the compiled program."""

    max_steps: int = 1000
    check_every: int = 10  # validation after steps 1, 1 + check_every, ...
    patience: int = 20  # stop after more than this many checks without a new best
    early_stop: bool = True  # False: take all steps, and call the last the best


DEFAULT_SCHEDULE = Schedule()
PACE = 5.0  # seconds; shorter calls to the devices get longer


class Run(NamedTuple):
    """One training run; runs stack on a leading axis."""

    key: Array  # typed PRNG key
    split: Split
    hyper: Hyper
    extra: Any = None  # whatever else a method's loss needs, a pytree


class State(NamedTuple):
    """Where a run stands."""

    params: Params
    opt_state: optax.OptState
    step: Array  # steps taken
    best: Params  # parameters of the best validation so far
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


def num_checks(schedule: Schedule) -> int:
    """How many validations a run has at the most."""
    return -(-schedule.max_steps // schedule.check_every)


def optimizer(hyper: Hyper) -> optax.GradientTransformation:
    """Adam with L2 added to the gradient; lr and weight decay may be traced."""
    return optax.chain(
        optax.add_decayed_weights(hyper["weight_decay"]),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(hyper["lr"]),
    )


def start(task: Task, schedule: Schedule, graph: jraph.GraphsTuple, run: Run) -> State:
    """The state of a run before its first step."""
    params = task.init(run.key, graph)
    history = jnp.full(num_checks(schedule), jnp.nan)
    return State(
        params=params,
        opt_state=optimizer(run.hyper).init(params),
        step=jnp.array(0),
        best=params,
        best_score=jnp.array(-jnp.inf),
        best_step=jnp.array(0),
        stale=jnp.array(0),
        done=jnp.array(False),
        failed_at=jnp.array(-1),
        scores=history,
        losses=history,
    )


def train_step(
    task: Task, graph: jraph.GraphsTuple, run: Run, state: State
) -> tuple[State, Array]:
    """One gradient step; returns the loss too."""
    key = jax.random.fold_in(run.key, state.step)
    loss, gradient = jax.value_and_grad(task.loss)(
        state.params, graph, run, state.step, key
    )
    updates, opt_state = optimizer(run.hyper).update(
        nodes.average(gradient), state.opt_state, state.params
    )
    failed_at = jnp.where(
        (state.failed_at < 0) & ~jnp.isfinite(loss), state.step, state.failed_at
    )
    params = optax.apply_updates(state.params, updates)
    state = state._replace(
        params=params, opt_state=opt_state, step=state.step + 1, failed_at=failed_at
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
    score = task.validate(state.params, graph, run)
    failed = state.failed_at >= 0
    better = ((score > state.best_score) | (not schedule.early_stop)) & ~failed
    position = (state.step - 1) // schedule.check_every
    stale = jnp.where(better, 0, state.stale + 1)
    last = state.step + schedule.check_every > schedule.max_steps
    return state._replace(
        best=jax.tree.map(
            lambda new, old: jnp.where(better, new, old), state.params, state.best
        ),
        best_score=jnp.where(better, score, state.best_score),
        best_step=jnp.where(better, state.step, state.best_step),
        stale=stale,
        done=(stale > schedule.patience) | last | failed,
        scores=state.scores.at[position].set(score),
        losses=state.losses.at[position].set(loss),
    )


def advance(
    task: Task,
    schedule: Schedule,
    graph: jraph.GraphsTuple,
    run: Run,
    state: State,
    checks: Array,
) -> State:
    """Takes a run through up to `checks` validations, or until it is done."""

    def step(_, carry):
        return train_step(task, graph, run, carry[0])

    def body(carry):
        state, count = carry
        # The first check is after step 1, so that no step comes after the last check.
        steps = jnp.where(state.step > 0, schedule.check_every, 1)
        state, loss = jax.lax.fori_loop(0, steps, step, (state, jnp.array(jnp.nan)))
        return check(task, schedule, graph, run, state, loss), count + 1

    def going(carry):
        state, count = carry
        return ~state.done & (count < checks)

    return jax.lax.while_loop(going, body, (state, jnp.array(0)))[0]


def train(
    task: Task,
    graph: jraph.GraphsTuple,
    runs: Run,
    schedule: Schedule = DEFAULT_SCHEDULE,
    *,
    devices: list[jax.Device] | None = None,
    slots: int | None = None,
    mesh: Mesh | None = None,
    progress: Callable[[Progress], None] | None = None,
    keep: Checkpoints | None = None,
) -> State:
    """Trains all runs, stacked on a leading axis [S], and returns their states [S].

    Args:
      task: what is trained.
      graph: shared by all runs; or one that is spread over a mesh.
      runs: keys [S], splits [S, N] and hyper-parameters [S]; the splits of a spread
        graph are those of its layout.
      schedule: validation and stopping.
      devices: all local devices by default.
      slots: runs at a time on one device; chosen by platform and memory by default.
      mesh: with the axes of `sharding.mesh`, instead of devices.
      progress: called after every call to the devices.
      keep: where to leave checkpoints, and to go on from if there are some.
    """
    total = runs.key.shape[0]
    if mesh is None:
        mesh = Mesh(np.array(devices or capacity.devices(graph, total)), (RUNS,))
    rows = mesh.shape[RUNS]
    slots = slots or capacity.slots_per_device(graph, total, mesh.local_devices, rows)
    shared = graph if graphs.is_piece(graph) else place.put(graph, mesh)
    program = program_on(task, schedule, mesh, slots, graphs.is_piece(graph))
    results, begun = _resume(program, shared, runs, slots * rows, keep)
    queue = slotting.Queue(total, slots * rows, results)
    states, checks = None, 1
    while queue.busy():
        began = time.perf_counter()
        if states is None or queue.fresh.any():
            batch = program.place(jax.tree.map(lambda leaf: leaf[queue.runs], runs))
        if states is None:
            states = program.start(shared, batch)
        elif queue.fresh.any():
            fresh = place.put(queue.fresh.copy(), mesh, P(RUNS))
            states = program.restart(shared, batch, states, fresh)
        states = _load(states, queue, begun, mesh)
        active = place.put(queue.active.copy(), mesh, P(RUNS))
        most = place.put(np.int32(checks), mesh)
        states = program.advance(shared, batch, states, active, most)
        seen = place.fetch((states.done, states.step, states.best_score))
        seconds = place.from_first(time.perf_counter() - began)
        checks = _pace(checks, seconds, schedule)
        due = keep is not None and keep.is_due()
        going = _rows(states, queue) if due or seen[0].any() else {}
        results |= {run: going[run] for run in queue.finish(seen[0])}
        if due and queue.busy():
            keep.save(begun | going | results, total)
        if progress:
            progress(_progress(queue, results, seen))
        queue.refill()
    if keep:
        keep.clear()
    order = [results[index] for index in range(total)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *order)


def _resume(program, graph, runs, slots, keep) -> tuple[dict, dict]:
    """States by run of the last checkpoint: of those that are done, and of all."""
    if keep is None or not keep.exists():
        return {}, {}
    total = runs.key.shape[0]
    batch = jax.tree.map(lambda leaf: leaf[np.arange(slots) % total], runs)
    shapes = jax.eval_shape(program.start, graph, program.place(batch))
    like = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), shapes)
    begun = keep.load(like, total)
    return {run: state for run, state in begun.items() if state.done}, begun


def _load(states: State, queue: slotting.Queue, begun: dict, mesh: Mesh) -> State:
    """The states of all slots, with those of runs that go on from a checkpoint."""
    slots = [s for s in np.flatnonzero(queue.fresh) if queue.runs[s] in begun]
    if not slots:
        return states
    saved = [begun[queue.runs[slot]] for slot in slots]

    def replaced(leaf: np.ndarray, *rows: np.ndarray) -> np.ndarray:
        leaf = np.array(leaf)
        leaf[slots] = np.stack(rows)
        return leaf

    states = jax.tree.map(replaced, place.fetch(states), *saved)
    return place.put(states, mesh, P(RUNS))


def _rows(states: State, queue: slotting.Queue) -> dict[int, State]:
    """States on the host by run, of the slots at work."""
    now = place.fetch(states)
    return {
        int(queue.runs[slot]): jax.tree.map(
            lambda leaf, slot=slot: np.asarray(leaf[slot]), now
        )
        for slot in np.flatnonzero(queue.active)
    }


@functools.lru_cache(maxsize=64)
def program_on(
    task: Task, schedule: Schedule, mesh: Mesh, size: int, is_spread: bool
) -> slotting.Program:
    """The steps of `train` for `size` slots per device, compiled once."""

    def restart(graph, run, state, fresh):
        new = start(task, schedule, graph, run)
        return jax.tree.map(lambda a, b: jnp.where(fresh, a, b), new, state)

    def go_on(graph, run, state, active, checks):
        return jax.lax.cond(
            active,
            lambda: advance(task, schedule, graph, run, state, checks),
            lambda: state,
        )

    by_node = P(RUNS, GRAPH) if is_spread else P(RUNS)
    each = P(RUNS)
    return slotting.program(
        mesh,
        size,
        is_spread,
        run_specs=Run(key=each, split=by_node, hyper=each, extra=by_node),
        start=lambda graph, run: start(task, schedule, graph, run),
        restart=restart,
        step=lambda graph, run, state: train_step(task, graph, run, state)[0],
        advance=go_on,
    )


def _progress(queue: slotting.Queue, results: dict, seen) -> Progress:
    _, step, best = seen
    steps = sum(int(state.step) for state in results.values())
    steps += int(step[queue.active].sum())
    scores = best[queue.active] if queue.active.any() else best
    return Progress(
        steps=steps,
        finished=len(results),
        going=int(queue.active.sum()),
        total=queue.total,
        score=float(scores.mean()),
    )


def _pace(checks: int, seconds: float, schedule: Schedule) -> int:
    """More checks per call while calls are short: a progress line every few seconds.

    A call has its memory mapped anew by the system, which costs as much as a step on
    a large graph.
    """
    return min(2 * checks, num_checks(schedule)) if seconds < PACE else checks


def use_cores(count: int | None = None) -> None:
    """Gives JAX one CPU device per core, so that runs use them all.

    Must come before JAX is used for the first time in the process.
    """
    cores = count or capacity.cores()
    try:
        jax.config.update("jax_num_cpu_devices", cores)
    except RuntimeError as error:
        raise InputError(
            "use_cores() came too late: call it before JAX is used for the first time."
        ) from error
