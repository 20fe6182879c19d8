"""The table of post-hoc detectors: its rows, and how it is drawn from records."""

from collections.abc import Sequence

from experiments.support import paper_results
from oodgat_jax import tables
from oodgat_jax.records import Record, count_runs, kept_metrics, latest
from oodgat_jax.tables import Row
from oodgat_jax.types import InputError

ROWS = (
    Row("GAT (base)", "gat", "ENT", "gat"),
    Row("ODIN", "gat", "ODIN", "odin"),
    Row("Mahalanobis", "gat", "Mahalanobis", "mahalanobis"),
    Row("CaGCN", "gat", "CaGCN", "cagcn"),
    Row("energy", "gat", "energy"),
    Row("GNNSafe", "gat", "GNNSafe"),
    Row("GRASP", "gat", "GRASP"),
    Row("kNN", "gat", "kNN"),
    Row("OODGAT-ENT", "oodgat", "ENT", "oodgat-ent"),
    Row("OODGAT-ATT", "oodgat", "ATT", "oodgat-att"),
    Row("OODGAT-ENT, propagated", "oodgat", "ENT+prop"),
    Row("OODGAT-ATT, propagated", "oodgat", "ATT+prop"),
)
METRICS = {"auroc": "AUROC", "fpr95": "FPR95"}
# How a detector's settings were chosen; `fixed` is for those that have none.
SELECTIONS = ("fixed", "validation", "oracle")
BEST = {"auroc": "max", "fpr95": "min"}
NOTE = (
    "Percent, mean ± standard deviation over {runs} runs. Detectors are on GAT unless "
    "OODGAT is named. Settings are chosen by AUROC on the validation nodes, or, called "
    "oracle, on the test nodes as the paper does; the paper's figures of ODIN, "
    "Mahalanobis and CaGCN are to be compared with oracle. The paper's FPR95 averages "
    "over ROC points near 95 % TPR, ours is taken at the first point that reaches it."
)


def draw(records: Sequence[Record], datasets: Sequence[str]) -> tables.Table:
    """One row per data set and detector, from the latest records.

    Raises:
      InputError: there is no record of these data sets.
    """
    rows = [
        [dataset, row.title, *_cells(records, dataset, row)]
        for dataset in datasets
        for row in ROWS
        if _found(records, dataset, row)
    ]
    if not rows:
        raise InputError(f"There are no records of {', '.join(datasets)}.")
    groups = ("", " (oracle)", " (paper)")
    header = [f"{title}{group}" for group in groups for title in METRICS.values()]
    best = list(BEST.values()) if len(datasets) == 1 else ["", ""]
    return tables.Table(
        ["Data set", "Method", *header], rows, ["", "", *best, "", "", "", ""]
    )


def known(records: Sequence[Record]) -> list[str]:
    """The data sets of the records: the paper's first, in its order."""
    return paper_results.in_order([record["dataset"] for record in records], "post_hoc")


def note(records: Sequence[Record]) -> str:
    """What the table's figures are."""
    return NOTE.format(runs=count_runs(records))


def markdown(records: Sequence[Record]) -> str:
    """The table of all recorded data sets, and its note."""
    table = draw(records, known(records))
    return tables.with_note(table, note(records))


def _found(records: Sequence[Record], dataset: str, row: Row) -> dict[str, Record]:
    """Selection -> the latest record of it."""
    where = {"dataset": dataset, "method": row.method, "detector": row.detector}
    each = {s: latest(records, **where, selection=s) for s in SELECTIONS}
    return {selection: record for selection, record in each.items() if record}


def _cells(
    records: Sequence[Record], dataset: str, row: Row
) -> list[tables.Cell | str]:
    """Ours, ours as oracle, the paper's; the metrics of each."""
    found = _found(records, dataset, row)
    ours = found.get("validation", found.get("fixed"))
    paper = [paper_results.figure("post_hoc", row.paper, dataset, m) for m in METRICS]
    return [
        *_results(ours),
        *_results(found.get("oracle")),
        *("" if value is None else f"{value:.1f}" for value in paper),
    ]


def _results(record: Record | None) -> list[tables.Cell | str]:
    """One cell per metric, over the runs that did not fail."""
    if record is None:
        return [""] * len(METRICS)
    kept = kept_metrics(record)
    return [tables.result(kept[metric]) for metric in METRICS]
