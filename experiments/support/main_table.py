"""Draws the main table from records, and paired differences."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.support import paired, paper_results
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
PLUS = Row("OODGAT+", "oodgat-plus", "FUSED+student")  # of the summary alone
# Metrics of the summary, and what it calls them.
HEADLINE = {
    "auroc": "AUROC",
    "fpr95": "FPR95",
    "accuracy": "Accuracy",
    "weighted_f1": "Joint F1",
}
FILE = "end_to_end.jsonl"
NOTE = (
    "Percent, mean ± standard deviation over {runs}, in parentheses the paper's "
    "figure, the best of a column in bold. F1 (best) picks its threshold on the test "
    "nodes, as the paper does; F1 (val) on the validation nodes. The paper's FPR95 "
    "averages over ROC points near 95 % TPR, ours is taken at the first point that "
    "reaches it."
)
OTHER = " With *, settings are not the recipe's: {settings}."
TUNED = "{}, tuned"
AUTHORS = "{}, settings of the authors' code"
CHOSEN = (
    " Tuned: every row has the setting with the best mean validation score of one and "
    "the same grid (see tuning); no test node plays a part, and no row is tuned for "
    "its figures."
)
ORDER = (
    " Over the same splits and seeds {ours} has a higher AUROC than each baseline "
    "(paired bootstrap over runs, significant at 5 % after Holm's correction for all "
    "{count} comparisons){but}."
)
VARIANCE = (
    " AUROC varies by {between:.1f} points between splits and by {within:.1f} between "
    "seeds of a split (standard deviations, medians over all rows)."
)


def known(records: Sequence[Record]) -> list[str]:
    """Returns the data sets of the records: the paper's first, in its order."""
    return paper_results.in_order([record["dataset"] for record in records])


def titled(records: Sequence[Record]) -> list[tuple[str, tables.Table]]:
    """Draws a table per data set; where all methods are tuned, a second one without."""
    return [
        (title, draw(mine, mine[0]["dataset"])) for title, mine in by_title(records)
    ]


def by_title(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """Returns the records of a data set that each table is drawn from."""
    shown = []
    for name in known(records):
        mine = [record for record in records if record["dataset"] == name]
        tuned = is_tuned(mine, name)
        shown.append((TUNED.format(name) if tuned else name, mine))
        plain = [r for r in mine if not _other_settings(r)] if tuned else []
        plain = [{k: v for k, v in r.items() if k != "tuned"} for r in plain]
        if plain:
            shown.append((AUTHORS.format(name), plain))
    return shown


def draw(records: Sequence[Record], dataset: str) -> tables.Table:
    """Draws a row per method, from the latest records of a data set."""
    tuned = is_tuned(records, dataset)
    found = {row: find(records, dataset, row) for row in ROWS}
    rows = [_row(row, record, tuned) for row, record in found.items() if record]
    if not rows:
        raise InputError(f"There are no records of {dataset}.")
    best = ["min" if metric == "fpr95" else "max" for metric in tables.COLUMNS]
    return tables.Table(["Method", *tables.COLUMNS.values()], rows, ["", *best])


def is_tuned(records: Sequence[Record], dataset: str) -> bool:
    """Returns whether every method recorded on a data set has tuned records."""
    table = {row.method for row in ROWS}
    mine = [r for r in records if r["dataset"] == dataset and r["method"] in table]
    tuned = {record["method"] for record in mine if record.get("tuned")}
    return bool(tuned) and tuned == {record["method"] for record in mine}


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
        if (record := find(records, name, row))
        for metric in HEADLINE
        if (difference := _from_paper(row, record, metric))
    ]
    if not found:
        return "The paper has none of these."
    ours = [difference for difference in found if difference.row in ROWS[-2:]]
    text = f"Furthest from the paper is {_told(max(found))}"
    return f"{text}; of OODGAT's figures, {_told(max(ours))}." if ours else f"{text}."


def tuned_on(records: Sequence[Record]) -> str:
    """Returns a sentence on where settings are tuned, "" if nowhere."""
    names = [name for name in known(records) if is_tuned(records, name)]
    if not names:
        return ""
    return (
        f" On {', '.join(names)} validation has chosen the settings of baselines and "
        "OODGAT from one grid."
    )


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
    found = [(row, find(records, dataset, row)) for row in ROWS[:-2]]
    pairs = [(row, record) for row, record in found if record]
    if not pairs:
        return None
    return max(pairs, key=lambda pair: np.mean(kept_metrics(pair[1])["auroc"]))


def _ours(records: Sequence[Record], dataset: str) -> list[tuple[Row, Record]]:
    """Returns OODGAT-ATT's row, since validation goes by ATT, and that of OODGAT+."""
    found = [(row, find(records, dataset, row)) for row in (ROWS[-1], PLUS)]
    return [(row, record) for row, record in found if record]


def comparison_table(records: Sequence[Record]) -> tables.Table:
    """Draws OODGAT's AUROC less each baseline's over the same runs, a row each."""
    titles = [row.title for row in ROWS[-2:]]
    found = _differences(records, known(records))
    told = dict(zip(found, paired.texts(list(found.values())), strict=True))
    rows = [
        [dataset, theirs, *(told.get((dataset, ours, theirs), "") for ours in titles)]
        for dataset, theirs in dict.fromkeys((key[0], key[2]) for key in found)
    ]
    return tables.Table(["Data set", "Baseline", *titles], rows)


def _differences(
    records: Sequence[Record], datasets: Sequence[str]
) -> dict[tuple[str, str, str], paired.Difference]:
    """Returns (data set, OODGAT's row, baseline's row) -> difference of paired runs."""
    found = {}
    for name, ours, theirs in itertools.product(datasets, ROWS[-2:], ROWS[:-2]):
        one, two = find(records, name, ours), find(records, name, theirs)
        if one and two and (compared := paired.compare(one, two, "auroc")):
            found[name, ours.title, theirs.title] = compared
    return found


def note(records: Sequence[Record]) -> str:
    """Returns the note below the tables: settings, order, sources of variance."""
    text = counted(NOTE)(records)
    marked = []
    for dataset, row in itertools.product(known(records), ROWS):
        record = find(records, dataset, row)
        if others := record and _other_settings(record, is_tuned(records, dataset)):
            values = (f"{name} {value:g}" for name, value in others.items())
            marked.append(f"{row.title} on {dataset} {', '.join(values)}")
    if any(is_tuned(records, dataset) for dataset in known(records)):
        text += CHOSEN
    text += OTHER.format(settings="; ".join(marked)) if marked else ""
    return text + _order(records) + _variance(records)


def _order(records: Sequence[Record]) -> str:
    """Returns a sentence on where OODGAT-ATT is ahead, "" if nothing is paired."""
    ours = ROWS[-1].title
    every = _differences(records, known(records))
    found = {key: each for key, each in every.items() if key[1] == ours}
    if not found:
        return ""
    sure = paired.holm([each.p for each in found.values()])
    ahead = (s and d.mean > 0 for s, d in zip(sure, found.values(), strict=True))
    pairs = zip(found, ahead, strict=True)
    others = [f"{key[2]} on {key[0]}" for key, is_ahead in pairs if not is_ahead]
    but = f", but for {', '.join(others)}" if others else ""
    return ORDER.format(ours=ours, count=len(found), but=but)


def _variance(records: Sequence[Record]) -> str:
    """Returns a sentence on splits and seeds, "" if runs do not tell them apart."""
    shown = [
        record
        for name, row in itertools.product(known(records), ROWS)
        if (record := find(records, name, row))
    ]
    found = [c for record in shown if (c := paired.components(record, "auroc"))]
    if not found:
        return ""
    between, within = np.median(found, axis=0)
    return VARIANCE.format(between=between, within=within)


def _mean(row: Row, record: Record, metric: str) -> tables.Cell:
    mean = 100 * float(np.mean(kept_metrics(record)[metric]))
    paper = paper_results.figure("end_to_end", row.paper, record["dataset"], metric)
    beside = "" if paper is None else f"({paper:.1f})"
    return tables.Cell(f"{mean:.1f} {beside}".rstrip(), mean, beside)


def find(records: Sequence[Record], dataset: str, row: Row) -> Record | None:
    """Returns the record that a row shows: the latest, of tuned ones if all are."""
    match = {"dataset": dataset, "method": row.method, "detector": row.detector}
    tuned = {"tuned": True} if row in ROWS and is_tuned(records, dataset) else {}
    return latest(records, **match, **tuned)


def _row(row: Row, record: Record, tuned: bool) -> list[tables.Cell | str]:
    kept = kept_metrics(record)
    cells = [
        tables.result(
            kept[metric],
            paper_results.figure("end_to_end", row.paper, record["dataset"], metric),
        )
        for metric in tables.COLUMNS
    ]
    marked = bool(_other_settings(record, tuned))
    return [f"{row.title} *" if marked else row.title, *cells]


def _other_settings(record: Record, tuned: bool = False) -> recipes.Recipe:
    """Returns the hyper-parameters that are not the recipe's, where not all are."""
    if tuned or record["dataset"] not in DATASETS:
        return {}
    usual = recipes.recipe(record["dataset"], record["method"])
    settings = record["hyperparameters"].items()
    return {name: value for name, value in settings if value != usual.get(name)}
