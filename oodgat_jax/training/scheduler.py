"""Many runs through one compiled program: slots, the queue of runs, `train`.

A run is (key, split, hyper-parameters). A slot holds one run at a time and takes the
next one when that run has stopped. It is a device, a part of one (slots of a device are
one `vmap`), or a row of devices along the mesh axis `graph` that share the nodes.
Nothing is compiled per run, and a run never sees its neighbors.

On the CPU a device has one slot (batching runs is slower there than one after the
other, and devices are what uses the cores: see `capacity.use_cores`); on accelerators a
device's slots are one `vmap`. With several processes each of them drives its own
devices, and all of them come to the same decisions from the same numbers.
"""

import functools
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from oodgat_jax import graphs
from oodgat_jax.training import capacity, interrupts, placement
from oodgat_jax.training.checkpoints import Checkpoints
from oodgat_jax.training.loop import advance, start, train_step
from oodgat_jax.training.mesh import GRAPH, RUNS
from oodgat_jax.training.slots import Program, Queue, compile_program
from oodgat_jax.training.task import (
    DEFAULT_SCHEDULE,
    Progress,
    Run,
    Schedule,
    State,
    Task,
    num_checks,
)

PACE = 5.0  # seconds; shorter calls to the devices get longer


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
    checkpoints: Checkpoints | None = None,
) -> State:
    """Trains all runs, stacked on a leading axis [S]; returns their states [S].

    Args:
      task: what is trained.
      graph: shared by all runs; or one that is sharded over a mesh.
      runs: keys [S], splits [S, N] and hyper-parameters [S]; the splits of a sharded
        graph are those of its layout.
      schedule: validation and stopping.
      devices: all local devices by default.
      slots: runs at a time on one device; chosen by platform and memory by default.
      mesh: with the axes of `training.mesh`, instead of devices.
      progress: called after every call to the devices.
      checkpoints: where to save them, and to continue from if there are some.
    """
    with interrupts.deferred():
        if checkpoints is None:
            return _train(task, graph, runs, schedule, devices, slots, mesh, progress)
        with checkpoints.locked():
            return _train(
                task, graph, runs, schedule, devices, slots, mesh, progress, checkpoints
            )


def _train(
    task, graph, runs, schedule, devices, slots, mesh, progress, checkpoints=None
) -> State:
    total = runs.key.shape[0]
    if mesh is None:
        mesh = Mesh(np.array(devices or capacity.devices(graph, total)), (RUNS,))
    rows = mesh.shape[RUNS]
    slots = slots or capacity.slots_per_device(graph, total, mesh.local_devices, rows)
    sharded = graphs.is_sharded(graph)
    shared = graph if sharded else placement.put(graph, mesh)
    program = program_on(task, schedule, mesh, slots, sharded)
    like = _state_shapes(program, shared, runs, slots * rows)
    capacity.check_states(like, total, min(total, slots * rows))
    results, begun = _resume(like, total, checkpoints)
    queue = Queue(total, slots * rows, results)
    states, checks = None, 1
    while queue.busy():
        began = time.perf_counter()
        if states is None or queue.fresh.any():
            batch = program.place(jax.tree.map(lambda leaf: leaf[queue.runs], runs))
        if states is None:
            states = program.start(shared, batch)
        elif queue.fresh.any():
            fresh = placement.put(queue.fresh.copy(), mesh, P(RUNS))
            states = program.restart(shared, batch, states, fresh)
        states = _load(states, queue, begun, mesh)
        active = placement.put(queue.active.copy(), mesh, P(RUNS))
        most = placement.put(np.int32(checks), mesh)
        states = program.advance(shared, batch, states, active, most)
        seen = placement.fetch((states.done, states.step, states.best_score))
        seconds = placement.from_first(time.perf_counter() - began)
        checks = _pace(checks, seconds, schedule)
        stop = bool(placement.from_first(interrupts.noted()))
        due = checkpoints if checkpoints and (stop or checkpoints.is_due()) else None
        going = _rows(states, queue) if due or seen[0].any() else {}
        results |= {run: going[run] for run in queue.finish(seen[0])}
        if due and queue.busy():
            due.save(begun | going | results, total)
        if stop and queue.busy():
            interrupts.leave(checkpoints.how_to_continue() if checkpoints else "")
        if progress:
            progress(_progress(queue, results, seen, schedule))
        queue.refill()
    if checkpoints:
        checkpoints.clear()
    order = [results[index] for index in range(total)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *order)


def _state_shapes(
    program: Program, graph: jraph.GraphsTuple, runs: Run, slots: int
) -> State:
    """Returns the shapes of one run's state."""
    total = runs.key.shape[0]
    batch = jax.tree.map(lambda leaf: leaf[np.arange(slots) % total], runs)
    shapes = jax.eval_shape(program.start, graph, program.place(batch))
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), shapes)


def _resume(
    like: State, total: int, checkpoints: Checkpoints | None
) -> tuple[dict[int, State], dict[int, State]]:
    """Loads states by run from the last checkpoint: of finished runs, and of all."""
    if checkpoints is None or not checkpoints.exists():
        return {}, {}
    begun = checkpoints.load(like, total)
    return {run: state for run, state in begun.items() if state.done}, begun


def _load(states: State, queue: Queue, begun: dict, mesh: Mesh) -> State:
    """Puts the states of runs that continue from a checkpoint into their slots."""
    slots = [s for s in np.flatnonzero(queue.fresh) if queue.runs[s] in begun]
    if not slots:
        return states
    saved = [begun[queue.runs[slot]] for slot in slots]

    def replaced(leaf: np.ndarray, *rows: np.ndarray) -> np.ndarray:
        leaf = np.array(leaf)
        leaf[slots] = np.stack(rows)
        return leaf

    states = jax.tree.map(replaced, placement.fetch(states), *saved)
    return placement.put(states, mesh, P(RUNS))


def _rows(states: State, queue: Queue) -> dict[int, State]:
    """Fetches the states of all active slots to the host, by run."""
    now = placement.fetch(states)
    return {
        int(queue.runs[slot]): jax.tree.map(
            lambda leaf, slot=slot: np.asarray(leaf[slot]), now
        )
        for slot in np.flatnonzero(queue.active)
    }


def _progress(queue: Queue, results: dict, seen, schedule: Schedule) -> Progress:
    _, step, best = seen
    steps = sum(int(state.step) for state in results.values())
    taken = int(step[queue.active].sum())
    scores = best[queue.active] if queue.active.any() else best
    return Progress(
        steps=steps + taken,
        finished=len(results),
        going=int(queue.active.sum()),
        total=queue.total,
        score=float(scores.mean()),
        left=(queue.total - len(results)) * int(schedule.max_steps) - taken,
    )


def _pace(checks: int, seconds: float, schedule: Schedule) -> int:
    """Allows more checks per call while calls are short.

    A call has its memory mapped anew by the system, which costs as much as a step on
    a large graph.
    """
    return min(2 * checks, num_checks(schedule)) if seconds < PACE else checks


@functools.lru_cache(maxsize=64)
def program_on(
    task: Task, schedule: Schedule, mesh: Mesh, size: int, is_sharded: bool
) -> Program:
    """Returns the steps of `train` for `size` slots per device, compiled once."""

    def restart(graph, run, state, fresh):
        new = start(task, schedule, graph, run)
        return jax.tree.map(lambda a, b: jnp.where(fresh, a, b), new, state)

    def resume(graph, run, state, active, checks):
        return jax.lax.cond(
            active,
            lambda: advance(task, schedule, graph, run, state, checks),
            lambda: state,
        )

    by_node = P(RUNS, GRAPH) if is_sharded else P(RUNS)
    each = P(RUNS)
    return compile_program(
        mesh,
        size,
        is_sharded,
        run_specs=Run._make((each, by_node, each, by_node)),
        start=lambda graph, run: start(task, schedule, graph, run),
        restart=restart,
        step=lambda graph, run, state: train_step(task, graph, run, state)[0],
        advance=resume,
    )
