"""Slots: the compiled programs that work on runs, and the queue of waiting runs."""

import functools
from collections.abc import Callable, Container
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from oodgat_jax import graphs
from oodgat_jax.training import placement
from oodgat_jax.training.mesh import GRAPH, RUNS


class Program(NamedTuple):
    """Compiled functions of the graph and of what is in the slots, stacked."""

    place: Callable  # runs of the host -> runs on their devices
    start: Callable  # (graph, runs) -> states
    restart: Callable  # (graph, runs, states, fresh) -> states
    step: Callable  # (graph, runs, states) -> states, one gradient step later
    advance: Callable  # (graph, runs, states, active, checks) -> states


def compile_program(
    mesh: Mesh,
    slots: int,
    is_sharded: bool,
    *,
    run_specs: Any,
    start: Callable,
    restart: Callable,
    step: Callable,
    advance: Callable,
) -> Program:
    """Turns functions of one run into functions of all slots, compiled on first use.

    Args:
      mesh: with an axis `runs`.
      slots: per device, or per row of devices.
      is_sharded: whether the graph is sharded along the axis `graph`.
      run_specs: how the arrays of runs are laid out.
      start: (graph, run) -> state; the others accordingly, see Program.
      restart: a fresh state where `fresh` holds.
      step: one gradient step.
      advance: up to a number of checks.
    """
    batched = jax.vmap if slots > 1 else _single
    each = P(RUNS)

    def on_devices(function, *specs):
        def body(graph, *args):
            axes = tuple(None if spec == P() else 0 for spec in specs)
            with graphs.on_device(graph) as here:
                return batched(lambda *a: function(here, *a), in_axes=axes)(*args)

        return jax.jit(
            jax.shard_map(
                body,
                mesh=mesh,
                in_specs=(P(GRAPH) if is_sharded else P(), *specs),
                out_specs=each,
                check_vma=False,
            )
        )

    return Program(
        place=functools.partial(_place_runs, mesh=mesh, specs=run_specs),
        start=on_devices(start, run_specs),
        restart=on_devices(restart, run_specs, each, each),
        step=on_devices(step, run_specs, each),
        advance=on_devices(advance, run_specs, each, each, P()),
    )


def _place_runs(runs: Any, mesh: Mesh, specs: Any) -> Any:
    """Puts runs of the host on the devices that work on them."""
    # Keys travel as numbers, which every kind of placement takes.
    impl = jax.random.key_impl(runs.key)
    runs = runs._replace(key=jax.random.key_data(runs.key))
    pairs = zip(runs, specs, strict=True)
    placed = type(runs)(*(placement.put(part, mesh, spec) for part, spec in pairs))
    return placed._replace(key=jax.random.wrap_key_data(placed.key, impl=impl))


def _single(function, in_axes):
    """Replaces `vmap` for an axis of length one, without batched operations."""

    def call(*args):
        args = (
            arg if axis is None else jax.tree.map(lambda leaf: leaf[0], arg)
            for arg, axis in zip(args, in_axes, strict=True)
        )
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], function(*args))

    return call


class Queue:
    """Tracks which run each slot works on, on the host; finished ones are left out."""

    def __init__(self, total: int, slots: int, finished: Container[int] = ()):
        self.total = total
        self.waiting = [run for run in range(total) if run not in finished]
        first, self.waiting = self.waiting[:slots], self.waiting[slots:]
        # A slot without a run has some run's data and does nothing with it.
        self.runs = np.array(first + [0] * (slots - len(first)))
        self.active = np.arange(slots) < len(first)
        self.fresh = self.active.copy()

    def busy(self) -> bool:
        """Returns whether any slot has a run."""
        return bool(self.active.any())

    def finish(self, done: np.ndarray) -> list[int]:
        """Takes finished runs out of their slots, and returns their numbers."""
        finished = np.flatnonzero(self.active & done)
        self.active[finished] = False
        return self.runs[finished].tolist()

    def refill(self) -> None:
        """Gives the next runs to free slots."""
        self.fresh[:] = False
        for slot in np.flatnonzero(~self.active):
            if self.waiting:
                self.runs[slot] = self.waiting.pop(0)
                self.active[slot] = self.fresh[slot] = True
