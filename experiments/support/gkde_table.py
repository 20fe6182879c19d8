"""The comparison with GKDE under its protocol: rows, and how they are drawn."""

from collections.abc import Sequence

from experiments.support import paper_results
from oodgat_jax import tables
from oodgat_jax.records import Record, count_runs, kept_metrics, latest
from oodgat_jax.tables import Row
from oodgat_jax.types import InputError

ROWS = (
    Row("GKDE, vacuity", "gkde", "vacuity", "gkde"),
    Row("GKDE, dissonance", "gkde", "dissonance"),
    Row("GKDE, aleatoric", "gkde", "aleatoric"),
    Row("GKDE, epistemic", "gkde", "epistemic"),
    Row("GKDE, differential entropy", "gkde", "differential_entropy"),
    Row("OODGAT-ENT", "oodgat", "ENT", "oodgat"),
    Row("OODGAT-ATT", "oodgat", "ATT", "oodgat"),
)
METRICS = {
    "auroc": "AUROC",
    "aupr": "AUPR",
    "auroc_unseen": "AUROC (unseen)",
    "aupr_unseen": "AUPR (unseen)",
}
NOTE = (
    "Percent, mean ± standard deviation over {runs} runs, in parentheses the paper's "
    "figure; it does not say which of OODGAT's two scores it shows. A run's figure is "
    "the mean over ten draws of 1,000 nodes, from all nodes after the public train "
    "nodes as in GKDE, or (unseen) from those that are not validation nodes either: "
    "OODGAT's step is chosen on the public validation nodes, GKDE takes its last."
)


def known(records: Sequence[Record]) -> list[str]:
    """The data sets of the records: the paper's first, in its order."""
    return paper_results.in_order([record["dataset"] for record in records], "gkde")


def draw(records: Sequence[Record], datasets: Sequence[str]) -> tables.Table:
    """One row per data set and detector, from the latest records.

    Raises:
      InputError: there is no record of these data sets.
    """
    rows = []
    for dataset in datasets:
        for row in ROWS:
            where = {"method": row.method, "detector": row.detector}
            record = latest(records, dataset=dataset, **where)
            if record:
                rows.append([dataset, row.title, *_cells(record, row)])
    if not rows:
        raise InputError(f"There are no records of {', '.join(datasets)}.")
    best = ["max"] * len(METRICS) if len(datasets) == 1 else [""] * len(METRICS)
    header = ["Data set", "Method", *METRICS.values()]
    return tables.Table(header, rows, ["", "", *best])


def note(records: Sequence[Record]) -> str:
    """What the table's figures are."""
    return NOTE.format(runs=count_runs(records))


def markdown(records: Sequence[Record]) -> str:
    """The table of all recorded data sets, and its note."""
    table = draw(records, known(records))
    return tables.with_note(table, note(records))


def _cells(record: Record, row: Row) -> list[tables.Cell | str]:
    """One cell per metric, over the runs that did not fail."""
    kept = kept_metrics(record)
    return [
        tables.result(
            kept[metric],
            paper_results.figure("gkde", row.paper, record["dataset"], metric),
        )
        if kept[metric]
        else "-"
        for metric in METRICS
    ]
