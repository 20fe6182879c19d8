"""Decisions without OOD labels: the table and its note."""

from collections.abc import Sequence

import numpy as np

from experiments.support import paper_results
from oodgat_jax import tables
from oodgat_jax.records import Record, latest

COLUMNS = {
    "auroc_member": "AUROC",
    "auroc": "AUROC, ensemble",
    "f1_oracle": "F1, oracle",
    "f1_quantile": "F1, quantile",
    "kept_quantile": "known kept",
    "found_quantile": "unknown found",
    "f1_mixture": "F1, mixture",
    "kept_mixture": "known kept",
    "found_mixture": "unknown found",
}
NOTE = (
    "Percent, mean ± standard deviation over {splits} splits, {members} members each. "
    "The first column is the AUROC of the main table with the same splits, where the "
    "step is chosen with labelled OOD nodes; the second that of single members whose "
    "step is chosen without, the third that of their mean. Joint F1 and shares of test "
    "nodes are at a threshold: the best for the test nodes (oracle), the score that "
    "95 % of held-out known nodes do not exceed (quantile), and where two normal "
    "distributions fitted to the unlabelled scores are even (mixture)."
)


def text(records: Sequence[Record], labelled: Sequence[Record]) -> str:
    """The table as aligned text, and its note."""
    return f"{tables.as_text(draw(records, labelled))}\n{note(records)}"


def markdown(records: Sequence[Record], labelled: Sequence[Record]) -> str:
    """The table and its note for a page."""
    return tables.with_note(draw(records, labelled), note(records))


def draw(records: Sequence[Record], labelled: Sequence[Record]) -> tables.Table:
    """One row per data set, beside the records that had OOD labels to choose with."""
    rows = []
    for dataset in paper_results.in_order([record["dataset"] for record in records]):
        record = latest(records, dataset=dataset)
        where = {"method": record["method"], "detector": record["detector"]}
        beside = latest(labelled, dataset=dataset, **where)
        first = tables.result(beside["metrics"]["auroc"]) if beside else ""
        cells = [_cell(record["metrics"][name]) for name in COLUMNS]
        rows.append([dataset, first, *cells])
    return tables.Table(["Data set", "AUROC, OOD labels", *COLUMNS.values()], rows)


def note(records: Sequence[Record]) -> str:
    """What the table's figures are."""
    record = records[-1]
    return NOTE.format(splits=len(record["split_seeds"]), members=record["members"])


def _cell(values: Sequence[float]) -> tables.Cell | str:
    whole = [value for value in values if not np.isnan(value)]
    return tables.result(whole) if whole else "none"
