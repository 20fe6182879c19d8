"""Gathers what members know of a graph, for a page to look at and for a review."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from oodgat_jax import graphs, methods
from oodgat_jax.estimator import bounds, forks, holding_out, inputs, known_nodes
from oodgat_jax.estimator.answers import Answer
from oodgat_jax.methods import Method, recipes
from oodgat_jax.models import attention
from oodgat_jax.report import projection
from oodgat_jax.report.findings import Bounds, Findings
from oodgat_jax.training import Task
from oodgat_jax.types import InputError, Outputs


class Seen(NamedTuple):
    """The graph of a fit, its labels, and who was held out."""

    graph: jraph.GraphsTuple
    codes: np.ndarray  # [N] class numbers, negative for none
    held_out: holding_out.HeldOut


def elsewhere(
    graph: jraph.GraphsTuple, labels: Any, classes: Sequence
) -> tuple[Seen, list[str]]:
    """Returns another graph than that of the fit, and the names of its labels.

    Args:
      graph: with the fit's features.
      labels: one per node, or None; they are only shown.
      classes: of the fit; labels may name further ones.
    """
    size, found = graphs.num_nodes(graph), [str(name) for name in classes]
    codes, number = np.full(size, -1), {name: at for at, name in enumerate(found)}
    given = [] if labels is None else names(labels, size, "labels")
    for node, name in enumerate(given):
        if not inputs.is_missing(name):
            codes[node] = number.setdefault(name, len(number))
    nobody = np.zeros(size, bool)
    return Seen(graph, codes, holding_out.HeldOut(nobody, nobody)), list(number)


def findings(
    classifier: Any, seen: Seen, answer: Answer, ids: Any, label_names: Sequence[str]
) -> Findings:
    """Returns what a fitted classifier says of a graph.

    Args:
      classifier: an OODGATClassifier.
      seen: the graph.
      answer: of the classifier, for that graph.
      ids: names of the nodes, or None for their row numbers.
      label_names: of the graph's label codes; those of the classes come first.
    """
    forks.check()
    graph, codes, held_out = seen
    method = classifier._method()
    module = recipes.module(method, classifier.recipe_, len(classifier.classes_))
    task = methods.assemble(method, module)
    layers: list[np.ndarray] = []
    weights = np.zeros(len(graph.senders), np.float64)
    has_attention = False
    for outputs in _members(task, (classifier.parameters_, classifier.aux_), graph):
        layers.append(np.asarray(outputs.hidden, np.float32))
        has_attention = bool(outputs.attention)
        if has_attention:
            weights += np.asarray(edge_weights(graph, outputs.attention))
    return Findings(
        ids=names(range(len(codes)) if ids is None else ids, len(codes), "ids"),
        classes=[str(name) for name in classifier.classes_],
        probabilities=answer.probabilities,
        score=answer.score,
        spread=answer.spread,
        codes=codes,
        held_out=held_out.all,
        threshold=classifier.threshold_,
        space=projection.shared_space(layers),
        features=known_nodes.host_features(graph),
        senders=np.asarray(graph.senders),
        receivers=np.asarray(graph.receivers),
        attention=weights / len(layers) if has_attention else None,
        label_names=label_names,
        feature_names=classifier.feature_names_in_,
        bounds=calibrated(classifier, answer.score[held_out.calibration]),
        facts=_facts(classifier, method, len(layers)),
    )


def names(given: Any, count: int, what: str) -> list[str]:
    """Returns one string per node."""
    found = ["" if name is None else str(name) for name in given]
    if len(found) != count:
        raise InputError(
            f"There are {len(found)} {what} for {count} nodes: give one per node."
        )
    return found


@jax.jit
def edge_weights(graph: jraph.GraphsTuple, logits: Sequence[jax.Array]) -> jax.Array:
    """Returns alpha [E] of OOD attention (eq. 2), mean over layers and heads."""
    total = jnp.zeros(graph.senders.shape[0])
    for layer in logits:
        scores = jax.nn.sigmoid(layer)
        pairs = graphs.take(scores, graph.receivers), graphs.take(scores, graph.senders)
        edge = attention.OOD_LOGIT
        alpha = attention.softmax(graph, edge.value(edge.argument(*pairs)))
        total += alpha.mean(1)
    return total / len(logits)


def calibrated(classifier: Any, scores: np.ndarray) -> Bounds | None:
    """Returns what calibration nodes allow to say at every threshold; None if few."""
    count = len(scores)
    if not count:
        return None
    keep = classifier.keep if classifier.threshold == "quantile" else None
    return Bounds(
        scores=np.sort(scores),
        lost=bounds.lost_count(scores, classifier.threshold_, keep),
        intervals=bounds.shares(count),
        confidence=bounds.CONFIDENCE,
    )


def _members(
    task: Task, trained: tuple[Any, Any], graph: jraph.GraphsTuple
) -> Iterator[Outputs]:
    """Yields the outputs of one member after the other, so that one is in memory."""
    for number in range(len(jax.tree.leaves(trained[0])[0])):
        one = jax.tree.map(lambda leaf, at=number: leaf[at], trained)
        yield _outputs(task, *one, graph)


@functools.partial(jax.jit, static_argnums=0)
def _outputs(task: Task, params: Any, aux: Any, graph: jraph.GraphsTuple) -> Outputs:
    return task.predict(params, aux, graph)


def _facts(classifier: Any, method: Method, members: int) -> list[tuple[str, str]]:
    return [
        ("method", classifier.method),
        ("detector", method.validated_by),
        ("members", str(members)),
        ("threshold", str(classifier.threshold)),
        ("held out", str(classifier.report_.held_out)),
        ("accuracy on held-out nodes", f"{classifier.report_.accuracy:.1%}"),
    ]
