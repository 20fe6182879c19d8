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

from oodgat_jax import capacity, graphs, nodes
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

    def steps_between(state: State) -> State:
        def body(_, state):
            return train_step(task, graph, run, state)[0]

        return jax.lax.fori_loop(0, schedule.check_every - 1, body, state)

    def body(carry):
        state, count = carry
        # Steps 2 to 10 come before step 11 and its check, so that no step is taken
        # after the last check.
        state = jax.lax.cond(state.step > 0, steps_between, lambda s: s, state)
        state, loss = train_step(task, graph, run, state)
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
    """
    total = runs.key.shape[0]
    if mesh is None:
        mesh = Mesh(np.array(devices or capacity.devices(graph, total)), (RUNS,))
    rows = mesh.shape[RUNS]
    slots = slots or capacity.slots_per_device(graph, total, mesh.local_devices, rows)
    shared = graph if graphs.is_piece(graph) else place.put(graph, mesh)
    program = _program(task, schedule, mesh, slots, graphs.is_piece(graph))
    queue = _Queue(total, slots * rows)
    states, results, checks = None, {}, 1
    while queue.busy():
        began = time.perf_counter()
        if states is None or queue.fresh.any():
            batch = program.place(jax.tree.map(lambda leaf: leaf[queue.runs], runs))
        if states is None:
            states = program.start(shared, batch)
        elif queue.fresh.any():
            fresh = place.put(queue.fresh.copy(), mesh, P(RUNS))
            states = program.restart(shared, batch, states, fresh)
        active = place.put(queue.active.copy(), mesh, P(RUNS))
        most = place.put(np.int32(checks), mesh)
        states = program.advance(shared, batch, states, active, most)
        seen = place.fetch((states.done, states.step, states.best_score))
        checks = _pace(checks, time.perf_counter() - began, schedule)
        if finished := queue.finish(seen[0]):
            now = place.fetch(states)
        for slot in finished:
            results[queue.runs[slot]] = jax.tree.map(
                lambda leaf, slot=slot: np.asarray(leaf[slot]), now
            )
        if progress:
            progress(_progress(queue, results, seen))
        queue.refill()
    order = [results[index] for index in range(total)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *order)


class _Program(NamedTuple):
    place: Callable
    start: Callable
    restart: Callable
    advance: Callable


@functools.lru_cache(maxsize=64)
def _program(
    task: Task, schedule: Schedule, mesh: Mesh, slots: int, is_spread: bool
) -> _Program:
    """The three steps of `train` for a number of slots per device, compiled once."""
    batched = jax.vmap if slots > 1 else _single
    each, by_node = P(RUNS), P(RUNS, GRAPH) if is_spread else P(RUNS)
    run_specs = Run(key=each, split=by_node, hyper=each, extra=by_node)

    def restart(graph, run, state, fresh):
        new = start(task, schedule, graph, run)
        return jax.tree.map(lambda a, b: jnp.where(fresh, a, b), new, state)

    def go_on(graph, run, state, active, checks):
        return jax.lax.cond(
            active,
            lambda: advance(task, schedule, graph, run, state, checks),
            lambda: state,
        )

    def on_devices(function, *specs):
        def body(graph, *args):
            axes = tuple(None if spec == P() else 0 for spec in specs)
            with graphs.on_device(graph) as piece:
                return batched(lambda *a: function(piece, *a), in_axes=axes)(*args)

        return jax.jit(
            jax.shard_map(
                body,
                mesh=mesh,
                in_specs=(P(GRAPH) if is_spread else P(), *specs),
                out_specs=each,
                check_vma=False,
            )
        )

    return _Program(
        place=functools.partial(_place_runs, mesh=mesh, specs=run_specs),
        start=on_devices(
            lambda graph, run: start(task, schedule, graph, run), run_specs
        ),
        restart=on_devices(restart, run_specs, each, each),
        advance=on_devices(go_on, run_specs, each, each, P()),
    )


def _place_runs(runs: Run, mesh: Mesh, specs: Run) -> Run:
    """Runs of the host on the devices that work on them."""
    # Keys travel as numbers, which every kind of placement takes.
    runs, impl = (
        runs._replace(key=jax.random.key_data(runs.key)),
        jax.random.key_impl(runs.key),
    )
    pairs = zip(runs, specs, strict=True)
    placed = Run(*(place.put(part, mesh, spec) for part, spec in pairs))
    return placed._replace(key=jax.random.wrap_key_data(placed.key, impl=impl))


def _single(function, in_axes):
    """`vmap` for an axis of length one, without the cost of batched operations."""

    def call(*args):
        args = (
            arg if axis is None else jax.tree.map(lambda leaf: leaf[0], arg)
            for arg, axis in zip(args, in_axes, strict=True)
        )
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], function(*args))

    return call


class _Queue:
    """Which run each slot works on, on the host."""

    def __init__(self, total: int, slots: int):
        self.total = total
        self.runs = np.arange(slots) % total
        self.active = np.arange(slots) < total
        self.fresh = self.active.copy()
        self.next = min(slots, total)

    def busy(self) -> bool:
        return bool(self.active.any())

    def finish(self, done: np.ndarray) -> list[int]:
        finished = np.flatnonzero(self.active & done)
        self.active[finished] = False
        return finished.tolist()

    def refill(self) -> None:
        self.fresh[:] = False
        for slot in np.flatnonzero(~self.active):
            if self.next < self.total:
                self.runs[slot], self.next = self.next, self.next + 1
                self.active[slot] = self.fresh[slot] = True


def _progress(queue: _Queue, results: dict, seen) -> Progress:
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
