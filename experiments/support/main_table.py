"""Draws the main table from records, and paired differences."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.support import paper_results
from experiments.support.notes import counted
from oodgat_jax import tables
from oodgat_jax.datasets import DATASETS
from oodgat_jax.methods import recipes
from oodgat_jax.records import Record, kept_metrics, latest
from oodgat_jax.tables import Row
from oodgat_jax.types import InputError

ROWS = (
    Row("MLP", "mlp", "ENT", "mlp"),
    Row("GCN", "gcn", "ENT", "gcn"),
    Row("GraphSAGE", "sage", "ENT", "sage"),
    Row("GAT", "gat", "ENT", "gat"),
    Row("GATv2", "gatv2", "ENT", "gatv2"),
    Row("GKDE", "gkde", "vacuity"),
    Row("OODGAT-ENT", "oodgat", "ENT", "oodgat-ent"),
    Row("OODGAT-ATT", "oodgat", "ATT", "oodgat-att"),
)
PLUS = Row("OODGAT+", "oodgat-plus", "FUSED+prop")  # of the summary alone
# Metrics of the summary, and what it calls them.
HEADLINE = {
    "auroc": "AUROC",
    "fpr95": "FPR95",
    "accuracy": "Accuracy",
    "weighted_f1": "Joint F1",
}
FILE = "end_to_end.jsonl"
RESAMPLES = 10_000
NOTE = (
    "Percent, mean ± standard deviation over {runs}, in parentheses the paper's "
    "figure, the best of a column in bold. F1 (best) picks its threshold on the test "
    "nodes, as the paper does; F1 (val) on the validation nodes. The paper's FPR95 "
    "averages over ROC points near 95 % TPR, ours is taken at the first point that "
    "reaches it."
)
OTHER = " With *, settings are not the recipe's: {settings}."


def known(records: Sequence[Record]) -> list[str]:
    """Returns the data sets of the records: the paper's first, in its order."""
    return paper_results.in_order([record["dataset"] for record in records])


def draw(records: Sequence[Record], dataset: str) -> tables.Table:
    """Draws a row per method, from the latest records of a data set."""
    found = {row: _latest(records, dataset, row) for row in ROWS}
    rows = [_row(row, record) for row, record in found.items() if record]
    if not rows:
        raise InputError(f"There are no records of {dataset}.")
    best = ["min" if metric == "fpr95" else "max" for metric in tables.COLUMNS]
    return tables.Table(["Method", *tables.COLUMNS.values()], rows, ["", *best])


def summary(records: Sequence[Record]) -> tables.Table:
    """Draws the best baseline and OODGAT per data set, means beside the paper's."""
    rows: list[list[tables.Cell | str]] = []
    for name in known(records):
        for row, record in filter(
            None, (_best_baseline(records, name), *_ours(records, name))
        ):
            cells = [_mean(row, record, metric) for metric in HEADLINE]
            rows.append([name, row.title, *cells])
    return tables.Table(["Data set", "Method", *HEADLINE.values()], rows)


def largest_differences(records: Sequence[Record]) -> str:
    """Returns a sentence on what is furthest from the paper, in all and of OODGAT."""
    found = [
        difference
        for name, row in itertools.product(known(records), ROWS)
        if (record := _latest(records, name, row))
        for metric in HEADLINE
        if (difference := _from_paper(row, record, metric))
    ]
    if not found:
        return "The paper has none of these."
    ours = [difference for difference in found if difference.row in ROWS[-2:]]
    text = f"Furthest from the paper is {_told(max(found))}"
    return f"{text}; of OODGAT's figures, {_told(max(ours))}." if ours else f"{text}."


class FromPaper(NamedTuple):
    """How far a figure is from the paper's; the largest gap is the greatest."""

    gap: float  # points, without its sign
    row: Row
    dataset: str
    metric: str
    mean: float
    paper: float


def _from_paper(row: Row, record: Record, metric: str) -> FromPaper | None:
    paper = paper_results.figure("end_to_end", row.paper, record["dataset"], metric)
    if paper is None:
        return None
    mean = 100 * float(np.mean(kept_metrics(record)[metric]))
    return FromPaper(abs(mean - paper), row, record["dataset"], metric, mean, paper)


def _told(found: FromPaper) -> str:
    return (
        f"the {HEADLINE[found.metric]} of {found.row.title} on {found.dataset}: "
        f"{found.mean:.1f} here, {found.paper:.1f} there"
    )


def _best_baseline(
    records: Sequence[Record], dataset: str
) -> tuple[Row, Record] | None:
    """Returns the row with the best mean AUROC on test nodes, but for OODGAT's."""
    found = [(row, _latest(records, dataset, row)) for row in ROWS[:-2]]
    pairs = [(row, record) for row, record in found if record]
    if not pairs:
        return None
    return max(pairs, key=lambda pair: np.mean(kept_metrics(pair[1])["auroc"]))


def _ours(records: Sequence[Record], dataset: str) -> list[tuple[Row, Record]]:
    """Returns OODGAT-ATT's row, since validation goes by ATT, and that of OODGAT+."""
    found = [(row, _latest(records, dataset, row)) for row in (ROWS[-1], PLUS)]
    return [(row, record) for row, record in found if record]


def comparison_table(records: Sequence[Record]) -> tables.Table:
    """Draws OODGAT's AUROC less each baseline's over the same runs, a row each."""
    titles, rows = [row.title for row in ROWS[-2:]], []
    for dataset in known(records):
        found = _differences(records, dataset)
        for theirs in dict.fromkeys(pair[1] for pair in found):
            three = (found.get((ours, theirs)) for ours in titles)
            cells = (
                "{:+.1f} [{:+.1f}, {:+.1f}]".format(*t) if t else "" for t in three
            )
            rows.append([dataset, theirs, *cells])
    return tables.Table(["Data set", "Baseline", *titles], rows)


def _differences(
    records: Sequence[Record], dataset: str
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Returns (OODGAT's row, baseline's row) -> `difference`, where runs are paired."""
    found = {}
    for ours, theirs in itertools.product(ROWS[-2:], ROWS[:-2]):
        one, two = _latest(records, dataset, ours), _latest(records, dataset, theirs)
        if one and two and _paired(one, two):
            values = (record["metrics"]["auroc"] for record in (one, two))
            found[ours.title, theirs.title] = difference(*values)
    return found


def difference(
    ours: Sequence[float], theirs: Sequence[float]
) -> tuple[float, float, float]:
    """Returns the mean paired difference in points and its 95 % bootstrap interval.

    Runs in which either side failed (NaN) are left out.
    """
    differences = 100 * (np.array(ours, float) - np.array(theirs, float))
    differences = differences[np.isfinite(differences)]
    if not differences.size:
        return (np.nan,) * 3
    rng = np.random.default_rng(0)
    drawn = rng.choice(differences, (RESAMPLES, differences.size)).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(differences.mean()), float(low), float(high)


def note(records: Sequence[Record]) -> str:
    """Returns the note below the tables: also which settings are not the recipes'."""
    text = counted(NOTE)(records)
    marked = []
    for dataset, row in itertools.product(known(records), ROWS):
        record = _latest(records, dataset, row)
        if others := record and _other_settings(record):
            values = (f"{name} {value:g}" for name, value in others.items())
            marked.append(f"{row.title} on {dataset} {', '.join(values)}")
    return text + OTHER.format(settings="; ".join(marked)) if marked else text


def _mean(row: Row, record: Record, metric: str) -> tables.Cell:
    mean = 100 * float(np.mean(kept_metrics(record)[metric]))
    paper = paper_results.figure("end_to_end", row.paper, record["dataset"], metric)
    beside = "" if paper is None else f"({paper:.1f})"
    return tables.Cell(f"{mean:.1f} {beside}".rstrip(), mean, beside)


def _latest(records: Sequence[Record], dataset: str, row: Row) -> Record | None:
    return latest(records, dataset=dataset, method=row.method, detector=row.detector)


def _row(row: Row, record: Record) -> list[tables.Cell | str]:
    kept = kept_metrics(record)
    cells = [
        tables.result(
            kept[metric],
            paper_results.figure("end_to_end", row.paper, record["dataset"], metric),
        )
        for metric in tables.COLUMNS
    ]
    return [f"{row.title} *" if _other_settings(record) else row.title, *cells]


def _other_settings(record: Record) -> recipes.Recipe:
    """Returns the hyper-parameters of a record that are not its recipe's."""
    if record["dataset"] not in DATASETS:
        return {}
    usual = recipes.recipe(record["dataset"], record["method"])
    settings = record["hyperparameters"].items()
    return {name: value for name, value in settings if value != usual.get(name)}


def _paired(ours: Record, theirs: Record) -> bool:
    """Returns whether two records are of the same splits and seeds, run by run."""
    keys = ("split_seeds", "model_seeds", "split_digest")
    return all(ours[key] == theirs[key] for key in keys)
