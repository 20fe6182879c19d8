"""Finds the nodes of unknown classes in your own graph, and the class of the others.

  oodgat fit --nodes=nodes.csv --edges=edges.csv --out=predictions.csv --save=model
  oodgat predict --model=model --nodes=new_nodes.csv --edges=new_edges.csv --out=new.csv
  oodgat report --nodes=nodes.csv --edges=edges.csv --report=report.html
  oodgat review --nodes=nodes.csv --edges=edges.csv --review=review.csv

nodes.csv has a row per node: an id, a label (empty where there is none), and a number
per feature. edges.csv has a row per edge: the ids of its two nodes. Both may also be
.tsv, .parquet, .arrow or .feather, and text compressed; see
`oodgat_jax/datasets/readers/tables.py`, and `graph_npz.py` for npz. No node needs to be
labeled as unknown: labeled nodes are held out to choose the model and the threshold.

Written are --out, with a row per node (id, prediction, score, spread, and a probability
per class), a picture of the scores beside it, and with --save the model. --report
writes a page to look at, --review the nodes that are worth a label. Without a command,
`oodgat` fits, or predicts if there is a --model. `oodgat fit --help` lists the
flags of a command; `python -m oodgat_jax.cli.predict` is the same program.
"""

import json
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from absl import flags

from oodgat_jax.cli import app, predict_files, predict_flags, predict_input, progress
from oodgat_jax.cli import predict_output as output
from oodgat_jax.cli.predict_flags import COMMANDS, Given
from oodgat_jax.cli.predict_input import Graph
from oodgat_jax.estimator import OODGATClassifier
from oodgat_jax.estimator.answers import Answer
from oodgat_jax.methods import recipes
from oodgat_jax.registry import check_name
from oodgat_jax.training import capacity
from oodgat_jax.types import InputError


def main(given: Given) -> None:
    """Checks all input and output, fits or loads, predicts, writes, sums up."""
    predict_flags.check(given)
    places = predict_files.places(given)
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _show_warning
        graph, model, answer = _answer(given)
    threshold = model.threshold_
    if given.model and (given.has("threshold") or given.has("keep")):
        keep = given.keep if given.has("keep") else None
        threshold = model.threshold_for(answer, given.threshold_or_number(), keep)
    result = output.Result(
        graph.nodes, model, answer, model.decide(answer, threshold), threshold
    )
    with warnings.catch_warnings():  # all has been said above
        warnings.simplefilter("ignore", UserWarning)
        written = _write(given, places, result, _looked_at(given, graph, threshold))
    if given.json:
        print(json.dumps(output.facts(result, not given.model, written), indent=2))
        return
    print(output.summary(result, not given.model))
    print(f"Written: {', '.join(written)}")


def _write(
    given: Given,
    places: predict_files.Places,
    result: output.Result,
    looked_at: dict[str, Any],
) -> list[str]:
    """Writes everything and returns the names of what was written."""
    if places.out:
        output.write(places.out, result, given.verdict, given.escape)
    try:
        if places.save:
            result.model.save(places.save)
        if places.picture:
            output.draw(places.picture, result)
        if places.report:
            result.model.report(places.report, **looked_at)
        if places.review:
            output.write_review(
                places.review,
                result.model.review(given.review_count, **looked_at),
                given.escape,
            )
    except InputError as error:
        if not places.out:
            raise
        raise InputError(
            f"{str(error).rstrip('.')}; the predictions are in {places.out}."
        ) from error
    files = [str(path) for path in places.files.values()]
    return [*files, *([f"{places.save}/"] if places.save else [])]


def _looked_at(given: Given, graph: Graph, threshold: float) -> dict[str, Any]:
    """Returns what a page needs of the graph: its ids, and all if it is another one."""
    if not given.model:
        return {"ids": graph.nodes.ids}
    return {
        "ids": graph.nodes.ids,
        "threshold": threshold,
        "features": graph.features,
        "edges": graph.edges,
        "labels": graph.nodes.labels,
    }


def _answer(given: Given) -> tuple[Graph, OODGATClassifier, Answer]:
    """Returns the graph, the model, fitted or loaded, and what it says of the graph."""
    if not given.model:
        graph = predict_input.with_labels(predict_input.read(given, None), given)
        model = _fit(given, graph)
        return graph, model, model.answer()
    model = OODGATClassifier.load(given.model)
    output.check_verdict(given.verdict, model.classes_.tolist())
    graph = predict_input.read(given, model)
    if (model.feature_names_in_ is None) != (graph.nodes.names is None):
        warnings.warn(
            f"Only one of {given.model} and {given.nodes} has names of features, so "
            "that they are matched by their order.",
            stacklevel=2,
        )
    return graph, model, model.answer(graph.features, graph.edges)


def _fit(given: Given, graph: Graph) -> OODGATClassifier:
    predict_input.check_verdict(given, graph)
    model = OODGATClassifier(
        method=given.method,
        members=given.members,
        settings=dict(recipes.split_setting(setting) for setting in given.set),
        threshold=given.threshold_or_number(),
        keep=given.keep,
        directed=given.directed,
        random_state=given.seed,
        scale=given.scale,
        missing=given.missing or "refuse",
        categorical=list(given.categorical),
    )
    _say_memory(given, graph)
    with progress.Line(f"fitting {given.method}") as line:
        return model.fit(graph.features, graph.edges, graph.nodes.labels, progress=line)


def _say_memory(given: Given, graph: Graph) -> None:
    """Says how much memory the training takes, before it begins."""
    features = graph.nodes.features
    rows, width = features.shape
    width += sum(len(column.values) for column in graph.nodes.texts.values())
    stored = getattr(features, "nnz", rows * width)
    edges = len(graph.edges) * (1 if given.directed else 2)
    needed = capacity.training_bytes(rows, edges, stored, given.members)
    app.tell(
        f"{rows} nodes, {len(graph.edges)} edges, {width} features: training takes "
        f"about {capacity.readable(needed)} of memory, "
        f"{capacity.readable(capacity.free_bytes())} are free."
    )


def console(arguments: Sequence[str] | None = None) -> None:
    """Runs the command `oodgat`, as after the program's name."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words[0] if words and not words[0].startswith("-") else None
    if command in COMMANDS:
        sys.argv = [sys.argv[0], *words[1:]]
    text, own = COMMANDS.get(command or "", (__doc__, predict_flags.ALL))

    def run() -> None:
        if command is not None:
            check_name("command", command, COMMANDS)
        main(Given(flags.FLAGS, command))

    app.run(run, (), own, text=text)


def _show_warning(message: Any, *where: Any, **more: Any) -> None:
    """Prints a warning of the library as a sentence."""
    del where, more
    print(message, file=sys.stderr)


if __name__ == "__main__":
    console()
