"""Gathers what members know of a graph, for a page to look at and for a review."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from oodgat_jax import graphs, methods
from oodgat_jax.estimator import bounds, forks, inputs, known_nodes
from oodgat_jax.estimator.answers import Answer
from oodgat_jax.methods import recipes
from oodgat_jax.models import attention
from oodgat_jax.report import projection
from oodgat_jax.report.findings import Bounds, Findings
from oodgat_jax.training import Task
from oodgat_jax.types import InputError, Outputs


class Seen(NamedTuple):
    """A graph, its labels, and who was held out."""

    graph: jraph.GraphsTuple
    codes: np.ndarray  # [N] places in `label_names`, negative for none
    held_out: np.ndarray  # [N] bool
    label_names: Sequence[str]  # the classes of the fit come first
    is_own: bool  # whether the model was fitted to it


def recognize(
    classifier: Any, graph: jraph.GraphsTuple, labels: Any, score: np.ndarray
) -> Seen:
    """Returns a graph that is given to a model, which may be that of its fit again.

    It is, if it has the nodes that the members learned from, as many held-out and
    unlabeled nodes, and the scores of the fit's calibration nodes among its held-out
    ones: scores tell of every feature and edge around.

    Args:
      classifier: an OODGATClassifier.
      graph: with the fit's features.
      labels: one per node, or None.
      score: [N] by the classifier.
    """
    codes, label_names = _codes(labels, graphs.num_nodes(graph), classifier.classes_)
    learned, told = classifier.labeled_, classifier.report_
    held_out = codes >= 0
    held_out[learned.nodes[learned.nodes < len(codes)]] = False
    is_own = (
        len(codes) > learned.nodes.max()
        and int(held_out.sum()) == told.held_out
        and int((codes < 0).sum()) == told.unlabeled
        and known_nodes.digest(graph, learned.nodes) == learned.digest
        and _are_among(classifier.calibration_scores_, score[held_out])
    )
    return Seen(graph, codes, held_out & is_own, label_names, is_own)


def _codes(
    labels: Any, count: int, classes: Sequence
) -> tuple[np.ndarray, Sequence[str]]:
    """Returns each node's place among the labels' names, -1 for none, and the names."""
    number = {str(name): at for at, name in enumerate(classes)}
    codes = np.full(count, -1)
    if labels is not None:
        given = list(labels)
        texts = names(given, count, "labels")
        for node, (label, text) in enumerate(zip(given, texts, strict=True)):
            if not inputs.is_missing(label):
                codes[node] = number.setdefault(text, len(number))
    return codes, list(number)


def _are_among(some: np.ndarray, scores: np.ndarray) -> bool:
    """Returns whether each of some scores is one of the others, up to rounding."""
    if not len(scores):
        return False
    ordered = np.sort(scores.astype(np.float64))
    above = np.searchsorted(ordered, some).clip(max=len(ordered) - 1)
    below = (above - 1).clip(min=0)
    gaps = np.minimum(np.abs(ordered[above] - some), np.abs(ordered[below] - some))
    return bool((gaps <= 1e-4 * np.maximum(np.abs(some), 1e-2)).all())


def findings(
    classifier: Any, seen: Seen, answer: Answer, ids: Any, threshold: float | None
) -> Findings:
    """Returns what a fitted classifier says of a graph.

    Args:
      classifier: an OODGATClassifier.
      seen: the graph.
      answer: of the classifier, for that graph.
      ids: names of the nodes, or None for their row numbers.
      threshold: None for the classifier's own.
    """
    forks.check()
    graph, codes, held_out, label_names, is_own = seen
    space, weights = look(classifier, graph)
    scores = classifier.calibration_scores_.astype(answer.score.dtype)
    can_say = is_own and bool(classifier.report_.calibration)
    return Findings(
        ids=names(range(len(codes)) if ids is None else ids, len(codes), "ids"),
        classes=[str(name) for name in classifier.classes_],
        probabilities=answer.probabilities,
        score=answer.score,
        spread=answer.spread,
        codes=codes,
        held_out=held_out,
        threshold=classifier.threshold_ if threshold is None else float(threshold),
        space=space,
        features=known_nodes.host_features(graph),
        senders=np.asarray(graph.senders),
        receivers=np.asarray(graph.receivers),
        attention=weights,
        label_names=label_names,
        feature_names=classifier.feature_names_in_,
        bounds=calibrated(classifier, scores, threshold) if can_say else None,
        facts=_facts(classifier),
    )


def look(
    classifier: Any, graph: jraph.GraphsTuple
) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns the members' hidden layers as one space [N, D], and attention [E].

    Attention is the mean of alpha over members, layers and heads; None for a backbone
    without OOD attention.
    """
    method = classifier._method()
    module = recipes.module(method, classifier.recipe_, len(classifier.classes_))
    task = methods.assemble(method, module)
    spaces, weights = [], []
    for outputs in members(task, (classifier.parameters_, classifier.aux_), graph):
        spaces.append(projection.member_space(np.asarray(outputs.hidden)))
        if outputs.attention:
            weights.append(np.asarray(edge_weights(graph, outputs.attention)))
    return np.concatenate(spaces, 1), np.mean(weights, 0) if weights else None


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


def calibrated(classifier: Any, scores: np.ndarray, threshold: float | None) -> Bounds:
    """Returns what calibration nodes allow to say at every threshold."""
    if threshold is None:
        keep = classifier.keep if classifier.threshold == "quantile" else None
        lost = bounds.lost_count(scores, classifier.threshold_, keep)
    else:
        lost = bounds.lost_count(scores, threshold, None)
    return Bounds(
        scores=np.sort(scores),
        lost=lost,
        intervals=bounds.shares(len(scores)),
        confidence=bounds.CONFIDENCE,
    )


def members(
    task: Task, trained: tuple[Any, Any], graph: jraph.GraphsTuple
) -> Iterator[Outputs]:
    """Yields the outputs of one member after the other, so that one is in memory."""
    for number in range(len(jax.tree.leaves(trained[0])[0])):
        one = jax.tree.map(lambda leaf, at=number: leaf[at], trained)
        yield _outputs(task, *one, graph)


@functools.partial(jax.jit, static_argnums=0)
def _outputs(task: Task, params: Any, aux: Any, graph: jraph.GraphsTuple) -> Outputs:
    return task.predict(params, aux, graph)


def _facts(classifier: Any) -> list[tuple[str, str]]:
    return [
        ("method", classifier.method),
        ("detector", classifier._method().validated_by),
        ("members", str(len(jax.tree.leaves(classifier.parameters_)[0]))),
        ("threshold", str(classifier.threshold)),
        ("held out", str(classifier.report_.held_out)),
        ("accuracy on held-out nodes", f"{classifier.report_.accuracy:.1%}"),
    ]
