"""Follows a function of the parameters through a training."""

import functools
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
import numpy as np

from oodgat_jax import losses, training
from oodgat_jax.types import Array, Split

Watch = Callable[[training.Params, jraph.GraphsTuple, Split], dict[str, Array]]


def trace(
    task: training.Task,
    graph: jraph.GraphsTuple,
    runs: training.Run,
    schedule: training.Schedule,
    watch: Watch,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Returns steps [T] and what was watched {name: [S, T]}, at every validation.

    Runs are taken to the last step of the schedule, whatever their validation says.
    """
    schedule = schedule._replace(patience=training.num_checks(schedule))
    begin, go_on = _programs(task, schedule, watch)
    states = begin(graph, runs)
    steps, found = [], []
    while not np.all(states.done):
        states, seen = go_on(graph, runs, states)
        steps.append(int(np.max(states.step)))
        found.append(jax.device_get(seen))
    return np.array(steps), jax.tree.map(lambda *each: np.stack(each, -1), *found)


@functools.lru_cache(maxsize=8)
def _programs(task: training.Task, schedule: training.Schedule, watch: Watch):
    def start(graph, runs):
        return jax.lax.map(lambda run: training.start(task, schedule, graph, run), runs)

    def advance(graph, runs, states):
        def one(pair):
            run, state = pair
            state = training.advance(task, schedule, graph, run, state, jnp.array(1))
            return state, watch(state.params, graph, run.split)

        return jax.lax.map(one, (runs, states))

    return jax.jit(start), jax.jit(advance)


@functools.lru_cache(maxsize=8)
def mean_entropies(module: nn.Module) -> Watch:
    """Watches the mean entropy of the predictions for test nodes, in nats."""

    def watch(params, graph, split):
        entropy = losses.softmax_entropy(module.apply(params, graph).logits)
        return {
            "ID": losses.masked_mean(entropy, split.test & ~split.is_ood),
            "OOD": losses.masked_mean(entropy, split.test & split.is_ood),
        }

    return watch
