"""OODGAT with both scores over the data sets: the table and its note."""

from collections.abc import Sequence

from experiments import published, results, tables
from oodgat_jax.types import InputError

DETECTORS = ("ENT", "ATT")
NOTE = (
    "Percent, mean ± standard deviation over {runs} runs, in parentheses the paper's "
    "figure. F1 (best) picks its threshold on the test nodes, as the paper does; "
    "F1 (val) on the validation nodes. The paper's FPR95 averages over ROC points near "
    "95 % TPR, ours is taken at the first point that reaches it."
)


def chosen(records: Sequence[results.Record]) -> list[results.Record]:
    """The latest record of each data set and score, in the paper's order.

    Raises:
      InputError: there is none of OODGAT.
    """
    found = [
        results.latest(records, dataset=dataset, method="oodgat", detector=detector)
        for dataset in published.in_order([r["dataset"] for r in records])
        for detector in DETECTORS
    ]
    shown = [record for record in found if record is not None]
    if not shown:
        raise InputError("There is no record of method oodgat.")
    return shown


def draw(records: Sequence[results.Record]) -> tables.Table:
    """One row per data set and score."""
    header = ["Data set", "Method", *tables.COLUMNS.values()]
    return tables.Table(header, [_row(record) for record in chosen(records)])


def note(records: Sequence[results.Record]) -> str:
    """What the table's figures are."""
    return NOTE.format(runs=results.count_runs(chosen(records)))


def markdown(records: Sequence[results.Record]) -> str:
    """The table and its note."""
    return tables.with_note(draw(records), note(records))


def _row(record: results.Record) -> list[tables.Cell | str]:
    """Data set, detector and one cell per metric."""
    dataset, name = record["dataset"], f"oodgat-{record['detector'].lower()}"
    cells = [
        tables.result(
            record["metrics"][metric],
            published.published("end_to_end", name, dataset, metric),
        )
        for metric in tables.COLUMNS
    ]
    return [dataset, name.upper(), *cells]
