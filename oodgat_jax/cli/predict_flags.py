"""The flags of `oodgat`, its commands, and which of them do nothing together."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from oodgat_jax.cli import shared_flags
from oodgat_jax.cli.shared_flags import SHARED, Definitions
from oodgat_jax.datasets import limits
from oodgat_jax.datasets.readers import unpacking
from oodgat_jax.datasets.readers.graph_files import GRAPHML
from oodgat_jax.estimator.arguments import SEEDS
from oodgat_jax.estimator.scaling import SCALES
from oodgat_jax.estimator.thresholds import THRESHOLDS
from oodgat_jax.methods import recipes
from oodgat_jax.types import InputError

_COUNT = {"lower_bound": 1}
INPUT: Definitions = {
    "nodes": (
        flags.DEFINE_string,
        None,
        "Table of nodes: .csv, .tsv, .parquet, .arrow or .feather; or a graph: .npz or "
        ".graphml. Text may be compressed, as in .csv.gz (.bz2, .xz, .zst).",
        {},
    ),
    "edges": (
        flags.DEFINE_string,
        None,
        "Table of edges, of the same kinds, or .edgelist; not needed where --nodes is "
        "a graph.",
        {},
    ),
    "features": (
        flags.DEFINE_string,
        None,
        "Features as a matrix, .npz as scipy.sparse.save_npz writes it, with a row for "
        "every row of --nodes, which then has ids and labels only.",
        {},
    ),
    "id_column": (flags.DEFINE_string, "id", "Column of the nodes' names.", {}),
    "label_column": (flags.DEFINE_string, "label", "Column of the labels.", {}),
    "source_column": (flags.DEFINE_string, "source", "Column of an edge's start.", {}),
    "target_column": (flags.DEFINE_string, "target", "Column of an edge's end.", {}),
    "ignore": (flags.DEFINE_list, [], "Columns that are not features.", {}),
    "encoding": (flags.DEFINE_string, "utf-8", "Of text tables.", {}),
    "delimiter": (
        flags.DEFINE_string,
        None,
        "Between cells; by default a tab in .tsv, else a comma.",
        {},
    ),
}
FITTING: Definitions = {
    "save": (flags.DEFINE_string, None, "Folder to keep the fitted model in.", {}),
    "labels": (
        flags.DEFINE_string,
        None,
        "Table with further labels, such as a review.csv that was filled in: its ids "
        "are those of --nodes, and rows without a label are skipped.",
        {},
    ),
    "categorical": (
        flags.DEFINE_multi_string,
        [],
        "Column of text to encode as zeros and ones, one per value; may be given "
        "several times.",
        {},
    ),
    "missing": (
        flags.DEFINE_enum,
        None,
        "What takes the place of missing values: the mean of their column, or zero; by "
        "default they are refused.",
        {"enum_values": ("mean", "zero")},
    ),
    "scale": (
        flags.DEFINE_enum,
        "standard",
        "standard centers dense features and divides them by their deviation.",
        {"enum_values": tuple(SCALES)},
    ),
    "directed": (
        flags.DEFINE_bool,
        False,
        "Directed edges: information flows from source to target only.",
        {},
    ),
    "method": (SHARED["method"][0], "oodgat-plus", *SHARED["method"][2:]),
    "set": SHARED["set"],
    "members": (
        flags.DEFINE_integer,
        4,
        "Networks trained at once and averaged.",
        _COUNT,
    ),
    "seed": (
        flags.DEFINE_integer,
        0,
        "Of what is held out, and of the members.",
        {"lower_bound": 0, "upper_bound": SEEDS - 1},
    ),
}
MODEL: Definitions = {
    "model": (
        flags.DEFINE_string,
        None,
        "Folder of a saved model: predict with it, fit nothing.",
        {},
    ),
}
OUTPUT: Definitions = {
    "out": (
        flags.DEFINE_string,
        "predictions.csv",
        "File to write, .csv or .npz.",
        {},
    ),
    "report": (
        flags.DEFINE_string,
        None,
        "Page to look at, .html: scores with a threshold to drag, a map of the nodes, "
        "groups of unknown ones, what to label next. It needs no network.",
        {},
    ),
    "review": (
        flags.DEFINE_string,
        None,
        "Table, .csv, of the nodes whose label would tell most. Fill in its column "
        "label, and give it to the next fit with --labels.",
        {},
    ),
    "review_count": (flags.DEFINE_integer, 30, "Rows of --review, at most.", _COUNT),
    "picture": (
        flags.DEFINE_string,
        None,
        "Picture of the scores, .png, .svg or .pdf; beside --out by default.",
        {},
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
    "json": (
        flags.DEFINE_bool,
        False,
        "Print the summary as one JSON object.",
        {},
    ),
    limits.FLAG: SHARED[limits.FLAG],
}
ALL: Definitions = {**INPUT, **FITTING, **MODEL, **OUTPUT}
# Nothing is predicted into a file unless a file is named.
LOOKING: Definitions = {**ALL, "out": (flags.DEFINE_string, None, *OUTPUT["out"][2:])}
# What each command is for, and its flags; without one, `oodgat` has them all.
COMMANDS: Mapping[str, tuple[str, Definitions]] = {
    "fit": (
        "Fits a model to your graph, and predicts for its nodes.\n\n"
        "  oodgat fit --nodes=nodes.csv --edges=edges.csv --save=model",
        {**INPUT, **FITTING, **OUTPUT},
    ),
    "predict": (
        "Predicts with a saved model, for the graph grown or for another one.\n\n"
        "  oodgat predict --model=model --nodes=new.csv --edges=new_edges.csv",
        {**MODEL, **INPUT, **OUTPUT},
    ),
    "report": (
        "Writes a page to look at: of a fit, or of a saved model.\n\n"
        "  oodgat report --nodes=nodes.csv --edges=edges.csv --report=report.html\n"
        "  oodgat report --model=model --nodes=new.csv --edges=new_edges.csv",
        {
            **LOOKING,
            "report": (flags.DEFINE_string, "report.html", *OUTPUT["report"][2:]),
        },
    ),
    "review": (
        "Writes the nodes whose label would tell most: of a fit, or of a saved model.\n"
        "\n  oodgat review --nodes=nodes.csv --edges=edges.csv --review=review.csv\n"
        "  oodgat fit --nodes=nodes.csv --edges=edges.csv --labels=review.csv",
        {
            **LOOKING,
            "review": (flags.DEFINE_string, "review.csv", *OUTPUT["review"][2:]),
        },
    ),
}


class Given:
    """The flags of a command as given; those that it does not have are None."""

    def __init__(self, values: flags.FlagValues, command: str | None = None):
        self._values = values
        self.command = command

    def __getattr__(self, name: str) -> Any:
        return getattr(self._values, name, None)

    def has(self, name: str) -> bool:
        """Returns whether the user wrote this flag, with a value."""
        if name not in self._values or not self._values[name].present:
            return False
        return getattr(self, name) not in (None, "", [])

    def path(self, name: str) -> pathlib.Path | None:
        """Returns the value of a flag as a path, if it has one."""
        value = getattr(self, name)
        return pathlib.Path(value) if value else None

    def threshold_or_number(self) -> str | float:
        """Returns what --threshold asks for."""
        if self.threshold in THRESHOLDS:
            return self.threshold
        try:
            return float(self.threshold)
        except ValueError as error:
            raise InputError(
                f"--threshold must be {', '.join(THRESHOLDS)} or a number, not "
                f"'{self.threshold}'."
            ) from error


def define(command: str | None, values: flags.FlagValues) -> Given:
    """Defines a command's flags among these values."""
    own = ALL if command is None else COMMANDS[command][1]
    shared_flags.define(shared_flags.chosen((), own), flag_values=values)
    return Given(values, command)


def check(given: Given) -> None:
    """Refuses flags that are wrong, or that would do nothing."""
    if not given.nodes:
        raise InputError("Name the table of nodes with --nodes.")
    if given.model and given.save:
        raise InputError("--save cannot be combined with --model, which fits nothing.")
    if given.command == "predict" and not given.model:
        raise InputError("Name the folder of a saved model with --model.")
    for names, reason in _idle(given):
        for name in names:
            if given.has(name):
                raise InputError(f"--{name} does nothing with {reason}: leave it out.")
    if not given.model:
        recipes.override(recipes.recipe(None, given.method), given.set)


def _idle(given: Given) -> list[tuple[Sequence[str], str]]:
    """Returns flags that do nothing, each with the reason."""
    found: list[tuple[Sequence[str], str]] = []
    tables = tuple(name for name in INPUT if name != "nodes")
    if given.model:
        found.append((tuple(FITTING), "--model, which was fitted already"))
    if is_npz(given):
        found.append(((*tables, "categorical"), "an npz, which is not a table"))
    if unpacking.inner(pathlib.Path(given.nodes)) == GRAPHML:
        names = ("edges", "features", "source_column", "target_column", "delimiter")
        found.append((names, "GraphML, which holds a whole graph"))
    if not given.out:
        found.append((("picture",), "no --out to draw"))
    if not given.review:
        found.append((("review_count",), "no --review"))
    if given.features:
        found.append((("ignore", "categorical"), "--features, which has them all"))
    if given.out and pathlib.Path(given.out).suffix == ".npz":
        found.append((("verdict", "escape"), "an npz for --out, which is exact"))
    if given.threshold_or_number() != "quantile":
        found.append((("keep",), f"--threshold={given.threshold}"))
    return found


def is_npz(given: Given) -> bool:
    """Returns whether --nodes is a graph in an npz."""
    return pathlib.Path(given.nodes).suffix == ".npz"
