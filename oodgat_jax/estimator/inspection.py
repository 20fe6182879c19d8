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
from oodgat_jax.methods import recipes
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
    label_names: Sequence[str]  # of the codes; the classes of the fit come first


def elsewhere(graph: jraph.GraphsTuple, labels: Any, classes: Sequence) -> Seen:
    """Returns another graph than that of the fit.

    Args:
      graph: with the fit's features.
      labels: one per node, or None; they are only shown.
      classes: of the fit; labels may name further ones.
    """
    size = graphs.num_nodes(graph)
    codes, number = (
        np.full(size, -1),
        {str(name): at for at, name in enumerate(classes)},
    )
    given = [] if labels is None else list(labels)
    texts = names(given, size, "labels") if given else []
    for node, (label, text) in enumerate(zip(given, texts, strict=True)):
        if not inputs.is_missing(label):
            codes[node] = number.setdefault(text, len(number))
    nobody = np.zeros(size, bool)
    return Seen(graph, codes, holding_out.HeldOut(nobody, nobody), list(number))


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
    graph, codes, held_out, label_names = seen
    space, weights = look(classifier, graph)
    return Findings(
        ids=names(range(len(codes)) if ids is None else ids, len(codes), "ids"),
        classes=[str(name) for name in classifier.classes_],
        probabilities=answer.probabilities,
        score=answer.score,
        spread=answer.spread,
        codes=codes,
        held_out=held_out.all,
        threshold=classifier.threshold_ if threshold is None else float(threshold),
        space=space,
        features=known_nodes.host_features(graph),
        senders=np.asarray(graph.senders),
        receivers=np.asarray(graph.receivers),
        attention=weights,
        label_names=label_names,
        feature_names=classifier.feature_names_in_,
        bounds=calibrated(classifier, answer.score[held_out.calibration], threshold),
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


def calibrated(
    classifier: Any, scores: np.ndarray, threshold: float | None
) -> Bounds | None:
    """Returns what calibration nodes allow to say at every threshold; None if few."""
    count = len(scores)
    if not count:
        return None
    keep = classifier.keep if classifier.threshold == "quantile" else None
    if threshold is None:
        lost = bounds.lost_count(scores, classifier.threshold_, keep)
    else:
        lost = bounds.lost_count(scores, threshold, None)
    return Bounds(
        scores=np.sort(scores),
        lost=lost,
        intervals=bounds.shares(count),
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
