"""Finds the nodes of unknown classes in your own graph, and the class of the others.

  oodgat --nodes=nodes.csv --edges=edges.csv --out=predictions.csv --save=model
  oodgat --model=model --nodes=new_nodes.csv --edges=new_edges.csv --out=new.csv
  oodgat --nodes=graph.npz --out=predictions.npz

nodes.csv has a row per node: an id, a label (empty where there is none), and a number
per feature. edges.csv has a row per edge: the ids of its two nodes. See
`oodgat_jax/datasets/readers/tables.py` for both and for npz. No node needs to be
labeled as unknown: labeled nodes are held out to choose the model and the threshold.

Written are --out, with a row per node (id, prediction, score, spread, and a probability
per class), a picture of the scores beside it, and with --save the model. `python -m
oodgat_jax.cli.predict` is the same command.
"""

import os
import pathlib
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import flags

from oodgat_jax import atomic_files
from oodgat_jax.cli import app, predict_output, progress
from oodgat_jax.datasets import limits
from oodgat_jax.datasets.readers import tables
from oodgat_jax.estimator import OODGATClassifier, persistence
from oodgat_jax.estimator.arguments import SEEDS
from oodgat_jax.estimator.scaling import SCALES
from oodgat_jax.estimator.thresholds import THRESHOLDS
from oodgat_jax.methods import recipes
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
SHARED = ("method", "set", limits.FLAG)
# Flags that a saved model has no use for, and flags of tables, which an npz is not.
FITTING = ("method", "members", "set", "directed", "seed", "scale")
OF_TABLES = (
    *("edges", "id_column", "label_column", "source_column", "target_column"),
    *("ignore", "encoding", "delimiter"),
)
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
    "ignore": (flags.DEFINE_list, [], "Columns that are not features.", {}),
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
        "Directed edges: information flows from source to target only.",
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
        "Share of known nodes that --threshold=quantile keeps.",
        {"lower_bound": 0.0, "upper_bound": 1.0},
    ),
    "seed": (
        flags.DEFINE_integer,
        0,
        "Of what is held out, and of the members.",
        {"lower_bound": 0, "upper_bound": SEEDS - 1},
    ),
    "scale": (
        flags.DEFINE_enum,
        "standard",
        "standard centers dense features and divides them by their deviation.",
        {"enum_values": tuple(SCALES)},
    ),
    "verdict": (
        flags.DEFINE_string,
        "unknown",
        "Word for a node of no known class in a .csv.",
        {},
    ),
    "escape": (
        flags.DEFINE_bool,
        True,
        "Put an apostrophe before text in a .csv that a spreadsheet would take for a "
        "formula, beginning with =, +, - or @.",
        {},
    ),
}


def main() -> None:
    """Checks all input and output, fits or loads, predicts, writes, sums up."""
    _check_flags()
    out, picture = _outputs()
    nodes, edges = read()
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _show_warning
        model, answer = _answer(nodes, edges)
    threshold = model.threshold_
    if FLAGS.model and (_given("threshold") or _given("keep")):
        keep = FLAGS.keep if _given("keep") else None
        threshold = model.threshold_for(answer, _threshold(), keep)
    predictions = model.decide(answer, threshold)
    predict_output.write(
        out, nodes, model, answer, predictions, FLAGS.verdict, FLAGS.escape
    )
    try:
        if FLAGS.save:
            model.save(FLAGS.save)
        predict_output.draw(picture, answer.score, nodes.labels, threshold)
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}; the predictions are in {out}."
        ) from error
    print(predict_output.summary(model, predictions, threshold, not FLAGS.model))
    print(f"Written: {out}, {picture}" + (f", {FLAGS.save}/" if FLAGS.save else ""))


def read() -> tuple[tables.Nodes, np.ndarray]:
    """Reads nodes and edges from the files that the flags name."""
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


def console() -> None:
    """Runs the command `oodgat`."""
    app.run(main, SHARED, OWN, text=__doc__)


def _given(name: str) -> bool:
    return bool(FLAGS[name].present)


def _check_flags() -> None:
    """Refuses flags that are wrong, or that would do nothing."""
    if not FLAGS.nodes:
        raise InputError("Name the table of nodes with --nodes.")
    if FLAGS.model and FLAGS.save:
        raise InputError("--save cannot be combined with --model, which fits nothing.")
    reasons: list[tuple[Sequence[str], str]] = []
    if FLAGS.model:
        reasons.append((FITTING, "--model, which was fitted already"))
    if pathlib.Path(FLAGS.nodes).suffix == ".npz":
        reasons.append((OF_TABLES, "an npz, which is not a table"))
    if pathlib.Path(FLAGS.out).suffix == ".npz":
        reasons.append((("verdict", "escape"), "an npz for --out, which is exact"))
    if _threshold() != "quantile":
        reasons.append((("keep",), f"--threshold={FLAGS.threshold}"))
    for names, reason in reasons:
        for name in names:
            if _given(name) and getattr(FLAGS, name) not in (None, "", []):
                raise InputError(f"--{name} does nothing with {reason}: leave it out.")
    recipes.override(recipes.recipe(None, FLAGS.method), FLAGS.set)


def _outputs() -> tuple[pathlib.Path, pathlib.Path]:
    """Returns where predictions and picture go, after checking all that is written."""
    out = pathlib.Path(FLAGS.out)
    if not out.name:
        raise InputError("--out must name a file that ends in .csv or .npz.")
    picture = pathlib.Path(FLAGS.picture or out.with_suffix(".png"))
    kinds = {
        "out": (out, (".csv", ".npz")),
        "picture": (picture, predict_output.PICTURES),
    }
    for flag, (path, suffixes) in kinds.items():
        if path.suffix not in suffixes:
            raise InputError(
                f"--{flag} must end in {' or '.join(suffixes)}, not '{path}'."
            )
        if os.path.isdir(path):
            raise InputError(f"--{flag} names the folder {path}: name a file.")
        _check_not_input(flag, path)
    if _same_file(out, picture):
        raise InputError("--picture would overwrite --out: choose another file.")
    if FLAGS.save:
        _check_save(pathlib.Path(FLAGS.save), out, picture)
    for path in (out, picture):
        app.out_folder(str(path.parent))
        atomic_files.check(path)
    return out, picture


def _check_save(folder: pathlib.Path, *files: pathlib.Path) -> None:
    persistence.check_can_save(folder)
    inside = [path for path in files if folder.resolve() in path.resolve().parents]
    if inside and not (folder / persistence.FACTS).exists():
        raise InputError(
            f"--save={folder} is to hold a model alone, but {inside[0]} would be in "
            "it: choose another folder."
        )


def _check_not_input(flag: str, path: pathlib.Path) -> None:
    """Refuses to write where something is read."""
    for name in ("nodes", "edges"):
        given = getattr(FLAGS, name)
        if given and _same_file(path, pathlib.Path(given)):
            raise InputError(
                f"--{flag} would overwrite --{name}, {given}: choose another file."
            )


def _same_file(one: pathlib.Path, other: pathlib.Path) -> bool:
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def _answer(nodes: tables.Nodes, edges: np.ndarray):
    """Returns the model, fitted or loaded, and what it says of the graph."""
    if not FLAGS.model:
        model = _fit(nodes, edges)
        return model, model.answer()
    model = OODGATClassifier.load(FLAGS.model)
    predict_output.check_verdict(FLAGS.verdict, model.classes_.tolist())
    if (model.feature_names_in_ is None) != (nodes.names is None):
        warnings.warn(
            f"Only one of {FLAGS.model} and {FLAGS.nodes} has names of features, so "
            "that they are matched by their order.",
            stacklevel=2,
        )
    return model, model.answer(nodes.features, edges, names=nodes.names)


def _fit(nodes: tables.Nodes, edges: np.ndarray) -> OODGATClassifier:
    if nodes.labels is None:
        raise InputError(
            f"{FLAGS.nodes} has no labels: name their column with --label_column, or "
            "a saved model with --model."
        )
    predict_output.check_verdict(FLAGS.verdict, nodes.labels)
    model = OODGATClassifier(
        method=FLAGS.method,
        members=FLAGS.members,
        settings=dict(recipes.split_setting(setting) for setting in FLAGS.set),
        threshold=_threshold(),
        keep=FLAGS.keep,
        directed=FLAGS.directed,
        random_state=FLAGS.seed,
        scale=FLAGS.scale,
    )
    with progress.Line(f"fitting {FLAGS.method}") as line:
        return model.fit(
            nodes.features, edges, nodes.labels, names=nodes.names, progress=line
        )


def _show_warning(message: Any, *where: Any, **more: Any) -> None:
    """Prints a warning of the library as a sentence."""
    del where, more
    print(message, file=sys.stderr)


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


if __name__ == "__main__":
    console()
