"""Finds the nodes of unknown classes in your own graph, and the class of the others.

  oodgat --nodes=nodes.csv --edges=edges.csv --out=predictions.csv --save=model
  oodgat --model=model --nodes=new_nodes.csv --edges=new_edges.csv --out=new.csv
  oodgat --nodes=graph.npz --out=predictions.npz

nodes.csv has a row per node: an id, a label (empty where there is none), and a number
per feature. edges.csv has a row per edge: the ids of its two nodes. See
`experiments/node_files.py` for both and for npz. No node needs to be labelled as
unknown: labelled nodes are held out to choose the model and the threshold.

Written are --out, with a row per node (id, prediction, score, spread, and a probability
per class), a picture of the scores beside it, and with --save the model. `python -m
experiments.own_graph` is the same command.
"""

import collections
import pathlib
import sys

import numpy as np
from absl import flags
from matplotlib.figure import Figure

from oodgat_jax import atomic_files
from oodgat_jax.cli import app, progress
from oodgat_jax.datasets.readers import tables
from oodgat_jax.estimator import OODGATClassifier
from oodgat_jax.estimator.classifier import Answer
from oodgat_jax.estimator.inputs import UNKNOWN
from oodgat_jax.estimator.thresholds import THRESHOLDS
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
COLOURS = ("#3b6ea8", "#d1793a")
BINS = 50
SHARED = ("method", "set")
OWN: app.Definitions = {
    "nodes": (flags.DEFINE_string, None, "Table of nodes, .csv, .tsv or .npz.", {}),
    "edges": (
        flags.DEFINE_string,
        None,
        "Table of edges; not needed with an npz, which holds them.",
        {},
    ),
    "out": (
        flags.DEFINE_string,
        "predictions.csv",
        "File to write, .csv or .npz.",
        {},
    ),
    "save": (flags.DEFINE_string, None, "Folder to keep the fitted model in.", {}),
    "model": (
        flags.DEFINE_string,
        None,
        "Folder of a saved model: predict with it, fit nothing.",
        {},
    ),
    "picture": (
        flags.DEFINE_string,
        None,
        "Picture of the scores, .png, .svg or .pdf; beside --out by default.",
        {},
    ),
    "id_column": (flags.DEFINE_string, "id", "Column of the nodes' names.", {}),
    "label_column": (flags.DEFINE_string, "label", "Column of the labels.", {}),
    "source_column": (flags.DEFINE_string, "source", "Column of an edge's start.", {}),
    "target_column": (flags.DEFINE_string, "target", "Column of an edge's end.", {}),
    "ignore": (flags.DEFINE_list, [], "Columns that are no features.", {}),
    "encoding": (flags.DEFINE_string, "utf-8", "Of the tables.", {}),
    "delimiter": (
        flags.DEFINE_string,
        None,
        "Between cells; by default a tab in .tsv, else a comma.",
        {},
    ),
    "directed": (
        flags.DEFINE_bool,
        False,
        "An edge tells its target of its source, and not the reverse.",
        {},
    ),
    "members": (
        flags.DEFINE_integer,
        4,
        "Networks trained at once and averaged.",
        {"lower_bound": 1},
    ),
    "threshold": (
        flags.DEFINE_string,
        "quantile",
        f"Above which a node is unknown: {', '.join(THRESHOLDS)} or a number.",
        {},
    ),
    "keep": (
        flags.DEFINE_float,
        0.95,
        "Share of known nodes that the threshold quantile keeps.",
        {"lower_bound": 0.0, "upper_bound": 1.0},
    ),
    "seed": (flags.DEFINE_integer, 0, "Of what is held out, and of the members.", {}),
}


def main() -> None:
    """Reads, fits or loads, predicts, writes, sums up."""
    _check_flags()
    out = pathlib.Path(FLAGS.out)
    picture = pathlib.Path(FLAGS.picture or out.with_suffix(".png"))
    for flag, path in (("out", out), ("picture", picture)):
        _check_not_input(flag, path)
        app.out_folder(str(path.parent))
    nodes, edges = read()
    if FLAGS.model:
        model = OODGATClassifier.load(FLAGS.model)
        answer = model.answer(nodes.features, edges)
    else:
        model = _fit(nodes, edges)
        answer = model.answer()
        if FLAGS.save:
            model.save(FLAGS.save)
    predictions = model.decide(answer)
    write(out, nodes, model, answer, predictions)
    labelled = np.array([str(label) not in ("", "-1") for label in nodes.labels or ()])
    draw(picture, answer.score, labelled, model.threshold_)
    print(summary(model, predictions, nodes))
    print(f"Written: {out}, {picture}" + (f", {FLAGS.save}/" if FLAGS.save else ""))


def read() -> tuple[tables.Nodes, np.ndarray]:
    """Nodes and edges from the files that the flags name."""
    path = pathlib.Path(FLAGS.nodes)
    if path.suffix == ".npz":
        return tables.read_npz(path)
    if not FLAGS.edges:
        raise InputError("Name the table of edges with --edges.")
    columns = tables.Columns(
        FLAGS.id_column,
        FLAGS.label_column,
        FLAGS.source_column,
        FLAGS.target_column,
        tuple(FLAGS.ignore),
    )
    form = tables.Format(FLAGS.encoding, FLAGS.delimiter)
    nodes = tables.read_nodes(path, columns, form)
    edges = tables.read_edges(pathlib.Path(FLAGS.edges), nodes.ids, columns, form)
    return nodes, edges


def write(
    path: pathlib.Path,
    nodes: tables.Nodes,
    model: OODGATClassifier,
    answer: Answer,
    predictions: np.ndarray,
) -> None:
    """The predictions as a table or as arrays, whole or not at all."""
    if path.suffix != ".npz":
        header, rows = _table(nodes, model, answer, predictions)
        atomic_files.text(path, tables.table_text(header, rows))
        return
    with atomic_files.file(path) as file:
        np.savez_compressed(
            file,
            ids=np.array(nodes.ids),
            prediction=predictions.astype(str),
            classes=model.classes_.astype(str),
            score=answer.score,
            spread=answer.spread,
            probabilities=answer.probabilities,
        )


def draw(
    path: pathlib.Path, score: np.ndarray, labelled: np.ndarray, threshold: float
) -> None:
    """Histogram of the scores, labelled and other nodes apart, with the threshold."""
    figure = Figure(figsize=(6, 3.2))
    axis = figure.subplots()
    bins = np.linspace(min(score.min(), threshold), max(score.max(), threshold), BINS)
    if not labelled.size or not labelled.any():
        axis.hist(score, bins, color=COLOURS[1], label="nodes")
    else:
        groups = (("labelled", labelled), ("not labelled", ~labelled))
        for (name, mask), colour in zip(groups, COLOURS, strict=True):
            axis.hist(score[mask], bins, alpha=0.65, color=colour, label=name)
    axis.axvline(threshold, color="black", linestyle="--", label="threshold")
    axis.set_xlabel("score (higher = more likely unknown)")
    axis.set_ylabel("nodes")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def summary(
    model: OODGATClassifier, predictions: np.ndarray, nodes: tables.Nodes
) -> str:
    """What was found, and what to expect of it."""
    report = model.report_
    counts = collections.Counter(predictions.tolist())
    unknown = counts.pop(UNKNOWN, 0)
    lines = [
        f"{len(predictions)} nodes, {len(nodes.names)} features; "
        f"{unknown} ({unknown / len(predictions):.1%}) are of no known class.",
        *(f"  {name}: {counts.get(name, 0)}" for name in model.classes_.tolist()),
        f"A node is called unknown if its score is above {model.threshold_:.4g}. Of "
        f"the {report.held_out} labelled nodes held out when the model was fitted, "
        f"{report.kept:.1%} are below: expect about {1 - report.kept:.1%} of known "
        f"nodes to be called unknown. {report.accuracy:.1%} of them got their class.",
        f"Of the {report.unlabelled} unlabelled nodes then, "
        f"{report.called_unknown:.1%} were called unknown, so that at least "
        f"{report.least_unknown:.1%} are of unknown classes.",
    ]
    if report.failed_members:
        lines.append(
            f"{report.failed_members} members failed (loss not finite) and were left "
            "out."
        )
    return "\n".join(lines)


def console() -> None:
    """The command `oodgat`."""
    app.run(main, SHARED, OWN, text=__doc__)


def _check_flags() -> None:
    if not FLAGS.nodes:
        raise InputError("Name the table of nodes with --nodes.")
    if FLAGS.model and FLAGS.save:
        raise InputError("--model predicts with a saved model, so --save has nothing.")
    if pathlib.Path(FLAGS.out).suffix not in (".csv", ".npz"):
        raise InputError(f"--out must end in .csv or .npz, not '{FLAGS.out}'.")


def _check_not_input(flag: str, path: pathlib.Path) -> None:
    """Refuses to write where something is read."""
    for name in ("nodes", "edges"):
        given = getattr(FLAGS, name)
        if given and _same_file(path, pathlib.Path(given)):
            raise InputError(
                f"--{flag} would overwrite --{name}, {given}: choose another file."
            )


def _same_file(one: pathlib.Path, other: pathlib.Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def _fit(nodes: tables.Nodes, edges: np.ndarray) -> OODGATClassifier:
    if nodes.labels is None:
        raise InputError(
            f"{FLAGS.nodes} has no labels: name their column with --label_column, or "
            "a saved model with --model."
        )
    model = OODGATClassifier(
        method=FLAGS.method,
        members=FLAGS.members,
        settings=_settings(),
        threshold=_threshold(),
        keep=FLAGS.keep,
        directed=FLAGS.directed,
        random_state=FLAGS.seed,
    )
    with progress.Line(f"fitting {FLAGS.method}") as line:
        return model.fit(nodes.features, edges, nodes.labels, progress=line)


def _settings() -> dict[str, str]:
    for setting in FLAGS.set:
        if "=" not in setting:
            raise InputError(f"'{setting}' is no setting: write --set name=value.")
    return dict(setting.split("=", 1) for setting in FLAGS.set)


def _threshold() -> str | float:
    if FLAGS.threshold in THRESHOLDS:
        return FLAGS.threshold
    try:
        return float(FLAGS.threshold)
    except ValueError as error:
        raise InputError(
            f"--threshold must be {', '.join(THRESHOLDS)} or a number, not "
            f"'{FLAGS.threshold}'."
        ) from error


def _table(nodes, model, answer, predictions) -> tuple[list[str], list[list]]:
    classes = model.classes_.tolist()
    header = ["id", "prediction", "score", "spread"]
    header += [f"p_{name}" for name in classes]
    named = ["unknown" if label == UNKNOWN else label for label in predictions.tolist()]
    numbers = np.column_stack([answer.score, answer.spread, answer.probabilities])
    rows = [
        [name, label, *(f"{number:.6g}" for number in row)]
        for name, label, row in zip(nodes.ids, named, numbers.tolist(), strict=True)
    ]
    return header, rows


if __name__ == "__main__":
    sys.exit(console())
