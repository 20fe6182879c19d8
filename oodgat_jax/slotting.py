"""Slots: where runs are worked on, and the compiled programs that work on them.

A slot holds one run at a time. It is a device, a part of one (slots of a device are one
`vmap`), or a row of devices along the axis `graph` that share the nodes.
"""

import functools
from collections.abc import Callable, Container
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from oodgat_jax import graphs
from oodgat_jax.sharding import place
from oodgat_jax.sharding.mesh import GRAPH, RUNS


class Program(NamedTuple):
    """Compiled functions of the graph and of what is in the slots, stacked."""

    place: Callable  # runs of the host -> runs on their devices
    start: Callable  # (graph, runs) -> states
    restart: Callable  # (graph, runs, states, fresh) -> states
    step: Callable  # (graph, runs, states) -> states, one gradient step later
    advance: Callable  # (graph, runs, states, active, checks) -> states


def program(
    mesh: Mesh,
    slots: int,
    is_spread: bool,
    *,
    run_specs: Any,
    start: Callable,
    restart: Callable,
    step: Callable,
    advance: Callable,
) -> Program:
    """Functions of one run as functions of all slots; compiled when first called.

    Args:
      mesh: with an axis `runs`.
      slots: per device, or per row of devices.
      is_spread: whether the graph is spread along the axis `graph`.
      run_specs: how the arrays of runs are laid out.
      start: (graph, run) -> state; the others accordingly, see Program.
      restart: a fresh state where `fresh` holds.
      step: one gradient step.
      advance: up to so many checks.
    """
    batched = jax.vmap if slots > 1 else _single
    each = P(RUNS)

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

    return Program(
        place=functools.partial(_place_runs, mesh=mesh, specs=run_specs),
        start=on_devices(start, run_specs),
        restart=on_devices(restart, run_specs, each, each),
        step=on_devices(step, run_specs, each),
        advance=on_devices(advance, run_specs, each, each, P()),
    )


def _place_runs(runs: Any, mesh: Mesh, specs: Any) -> Any:
    """Runs of the host on the devices that work on them."""
    # Keys travel as numbers, which every kind of placement takes.
    impl = jax.random.key_impl(runs.key)
    runs = runs._replace(key=jax.random.key_data(runs.key))
    pairs = zip(runs, specs, strict=True)
    placed = type(runs)(*(place.put(part, mesh, spec) for part, spec in pairs))
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


class Queue:
    """Which run each slot works on, on the host; finished ones are left out."""

    def __init__(self, total: int, slots: int, finished: Container[int] = ()):
        self.total = total
        self.waiting = [run for run in range(total) if run not in finished]
        first, self.waiting = self.waiting[:slots], self.waiting[slots:]
        # A slot without a run has some run's data and does nothing with it.
        self.runs = np.array(first + [0] * (slots - len(first)))
        self.active = np.arange(slots) < len(first)
        self.fresh = self.active.copy()

    def busy(self) -> bool:
        """Whether a slot has a run."""
        return bool(self.active.any())

    def finish(self, done: np.ndarray) -> list[int]:
        """Takes the runs that are done out of their slots, and names them."""
        finished = np.flatnonzero(self.active & done)
        self.active[finished] = False
        return self.runs[finished].tolist()

    def refill(self) -> None:
        """Gives the next runs to slots without one."""
        self.fresh[:] = False
        for slot in np.flatnonzero(~self.active):
            if self.waiting:
                self.runs[slot] = self.waiting.pop(0)
                self.active[slot] = self.fresh[slot] = True
