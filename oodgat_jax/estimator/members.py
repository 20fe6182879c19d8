"""Trains the members of an ensemble, and asks them about a graph."""

from collections.abc import Callable
from typing import Any

import jax
import jraph
import numpy as np

from oodgat_jax import evaluation, experiment, methods, splits, training
from oodgat_jax.estimator import forks, known_nodes
from oodgat_jax.estimator.answers import Answer, Labeled
from oodgat_jax.methods import METHODS, Method, recipes
from oodgat_jax.training import capacity
from oodgat_jax.types import InputError, Split


def validated_by(name: str, detector: str | None) -> Method:
    """Returns a method that one detector validates and scores; its own if None."""
    method = METHODS[name]
    chosen = detector or method.validated_by
    return method._replace(validated_by=chosen, detectors=(chosen,))


def train(
    method: Method,
    recipe: recipes.Recipe,
    graph: jraph.GraphsTuple,
    split: Split,
    num_classes: int,
    keys: jax.Array,
    progress: Callable[[training.Progress], None] | None,
) -> training.State:
    """Returns the trained states, one for each key, of members on the same split."""
    module = recipes.module(method, recipe, num_classes)
    methods.check_needs(method, module, graph.nodes.shape[1])
    methods.check_exposure(method, split)
    capacity.check_run(graph)
    count = len(keys)
    runs = experiment.make_runs(method, [recipe] * count, [split] * count, keys)
    runs = methods.prepare(method, module, graph, runs)
    task = methods.assemble(method, module)
    schedule = recipes.schedule(method, recipe)
    return training.train(task, graph, runs, schedule, progress=progress)


def learned(states: training.State) -> tuple[Any, Any]:
    """Returns parameters and auxiliary state [M, ...] of the members that did not fail.

    Raises:
      InputError: every member failed.
    """
    whole = np.flatnonzero(states.failed_at < 0)
    if not whole.size:
        raise InputError(
            f"The loss of every member stopped being finite by step "
            f"{int(states.failed_at.max())}: choose a smaller lr in settings."
        )
    return jax.tree.map(lambda leaf: leaf[whole], evaluation.trained(states))


def answer(
    method: Method,
    recipe: recipes.Recipe,
    trained: tuple[Any, Any],
    graph: jraph.GraphsTuple,
    labeled: Labeled,
    num_classes: int,
) -> Answer:
    """Returns what the members say of every node of a graph.

    Args:
      method: from `validated_by`.
      recipe: of the fit.
      trained: from `learned`.
      graph: with the fit's features.
      labeled: the nodes that the members learned from.
      num_classes: C.
    """
    forks.check()
    module = recipes.module(method, recipe, num_classes)
    task = methods.assemble(method, module)
    count = len(jax.tree.leaves(trained[0])[0])
    detector = method.validated_by
    known = known_nodes.as_split(graph, method, labeled)
    stacked = splits.stack([known] * count)
    logits, scores = evaluation.score_all(task, trained, graph, stacked, [detector])
    found = np.asarray(scores[detector])
    if not np.isfinite(found).all():
        raise InputError(
            f"Detector {detector} gives scores that are not finite: choose another "
            "detector."
        )
    return Answer(
        probabilities=np.asarray(jax.nn.softmax(logits, -1).mean(0)),
        member_scores=found,
    )
