"""The tables under the field's protocols: ours, beside them what papers publish."""

import functools
import json
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from experiments.support import notes
from experiments.support.field_plan import (
    BY_TEST,
    BY_UNLABELED,
    BY_VALIDATION,
    ENTRIES,
    LAST_STEP,
    PROTOCOLS,
)
from experiments.support.study import Tables
from oodgat_jax import splits, tables
from oodgat_jax.methods import published as settings
from oodgat_jax.records import Record, kept_metrics, latest
from oodgat_jax.types import InputError

FILE = pathlib.Path(__file__).parent.parent / "field_results.json"
NAMES = {"gnnsafe": "GNNSafe's protocol", "grasp": "GRASP's protocol", "gpn": "GPN's"}
COLUMNS = {
    "auroc": "AUROC",
    "aupr_id": "AUPR",
    "fpr95_id": "FPR95",
    "accuracy": "Accuracy",
}


class Row(NamedTuple):
    """A detector on one entry's runs."""

    title: str
    entry: str
    detector: str
    chosen_by: str = BY_VALIDATION

    @property
    def key(self) -> str:
        """Returns how the published figures call it."""
        return f"{self.entry}/{self.detector}"


ROWS = (
    Row("MSP", "gcn-bn", "MSP"),
    Row("Energy", "gcn-bn", "energy"),
    Row("ODIN", "gcn-bn", "ODIN"),
    Row("Mahalanobis", "gcn-bn", "Mahalanobis"),
    Row("kNN", "gcn-bn", "kNN"),
    Row("GNNSafe", "gcn-bn", "GNNSafe_coded"),
    Row("GNNSafe, exposed graph in BatchNorm", "gcn-bn-seen", "GNNSafe_coded"),
    Row("GNNSafe, isolated nodes kept", "gcn-bn", "GNNSafe"),
    Row("GRASP, as coded", "gcn-bn", "GRASP_coded"),
    Row("GRASP", "gcn-bn", "GRASP"),
    Row("GEBM", "gcn-bn", "GEBM"),
    Row("Dirichlet energy", "gcn-bn", "Dirichlet"),
    Row("Similarity propagation", "gcn-bn", "similarity"),
    Row("NODESAFE", "nodesafe", "GNNSafe_coded"),
    Row("MC-dropout, propagated", "mc-dropout", "GNNSafe_coded"),
    Row("MC-dropout, entropy", "mc-dropout", "total"),
    Row("Ensemble, propagated", "ensemble", "GNNSafe_coded"),
    Row("Ensemble, energy", "ensemble", "energy"),
    Row("GPN, evidence", "gpn", "evidence"),
    Row("GPN, evidence of features", "gpn", "evidence_features"),
    Row("GPN, aleatoric", "gpn", "MSP"),
    Row("OE, exposed", "oe", "maxlogit"),
    Row("Energy FT, exposed", "energy-ft", "energy"),
    Row("GNNSafe++, exposed", "gnnsafe++", "GNNSafe_coded"),
    Row("NODESAFE++, exposed", "nodesafe++", "GNNSafe_coded"),
    Row("OODGAT-ATT", "oodgat", "ATT"),
    Row("OODGAT-ENT", "oodgat", "ENT"),
    Row("OODGAT-ATT, by unlabeled nodes", "oodgat-unlabeled", "ATT", BY_UNLABELED),
    Row("OODGAT-ENT, by unlabeled nodes", "oodgat-unlabeled", "ENT", BY_UNLABELED),
    Row("OODGAT-ATT, as others ran it", "oodgat-decayed", "ATT"),
    Row("OODGAT-ENT, as others ran it", "oodgat-decayed", "ENT"),
    Row("OODGAT+, propagated once", "oodgat-plus", "FUSED+prop", LAST_STEP),
    Row("OODGAT+, not propagated", "oodgat-plus", "FUSED", LAST_STEP),
)
NOTE = (
    "Percent, mean ± standard deviation over {runs}; in parentheses, or under "
    "Published, what the paper has, and what its step was chosen on. AUPR and FPR95 "
    "have ID as the positive class, as these papers do. AUROC (test) is that of the "
    "step that test nodes choose: under GNNSafe's protocol by accuracy plus AUROC, "
    "under GRASP's by accuracy; it is no result, but what some papers report. "
    "† No settings are published for this; they are those of the nearest data set or "
    "shift."
)


@functools.cache
def every_published() -> list[dict[str, Any]]:
    """Returns the figures of papers."""
    return json.loads(FILE.read_text(encoding="utf-8"))["figures"]


def published(key: str, protocol: str, dataset: str, shift: str) -> dict[str, Any]:
    """Returns what a paper has for a row of the table: {} if none is known."""
    where = {"row": key, "protocol": protocol, "dataset": dataset, "shift": shift}
    return latest(every_published(), **where) or {}


def tables_of(records: Sequence[Record]) -> Tables:
    """Draws an overview of AUROC per protocol and shift, then all metrics by data set.

    Raises:
      InputError: there is no record that a row shows.
    """
    found: list[tuple[str, tables.Table]] = []
    for name in PROTOCOLS:
        mine = [record for record in records if record.get("protocol") == name]
        found += [_overview(mine, name, shift) for shift in _of(mine, "shift")]
        for dataset in _of(mine, "dataset"):
            found += [
                _details(mine, name, dataset, shift) for shift in _of(mine, "shift")
            ]
    found = [(title, table) for title, table in found if table.rows]
    if not found:
        raise InputError("There are no records of the field's protocols.")
    return found


def _of(records: Sequence[Record], key: str) -> list[str]:
    """Returns the values that records have for a key, in the order of the tables."""
    have = {record[key] for record in records}
    order = splits.SHIFTS if key == "shift" else PROTOCOLS["gnnsafe"].datasets
    return [value for value in order if value in have]


def find(records: Sequence[Record], row: Row, by: str, **where: str) -> Record | None:
    """Returns the latest record of a row, its step chosen that way."""
    keys = {"method": row.entry, "detector": row.detector, "chosen_by": by}
    return latest(records, **keys, **where)


def _cell(record: Record | None, metric: str, paper: float | None = None) -> Any:
    values = kept_metrics(record).get(metric) if record else None
    return tables.result(values, paper) if values else "-"


def _overview(
    records: Sequence[Record], protocol: str, shift: str
) -> tuple[str, tables.Table]:
    """Draws the AUROC of every method on all data sets."""
    datasets = _of(records, "dataset")
    rows = []
    for row in ROWS:
        cells = []
        for dataset in datasets:
            record = find(records, row, row.chosen_by, dataset=dataset, shift=shift)
            figure = published(row.key, protocol, dataset, shift).get("auroc")
            cells.append(_cell(record, "auroc", figure))
        if any(cell != "-" for cell in cells):
            rows.append([row.title, *cells])
    best = ["", *["max"] * len(datasets)]
    title = f"{NAMES[protocol]}, {shift}: AUROC"
    return title, tables.Table(["Method", *datasets], rows, best)


def _details(
    records: Sequence[Record], protocol: str, dataset: str, shift: str
) -> tuple[str, tables.Table]:
    """Draws all metrics of one data set under one shift."""
    rows = []
    where = {"dataset": dataset, "shift": shift}
    for row in ROWS:
        record = find(records, row, row.chosen_by, **where)
        if record is None:
            continue
        oracle = find(records, row, BY_TEST, **where)
        cells = [_cell(record, metric) for metric in COLUMNS]
        figure = published(row.key, protocol, dataset, shift)
        told = [f"{figure['auroc']:.1f}", figure["chosen_on"]] if figure else ["-", "-"]
        title = row.title if _is_settled(row, dataset, shift) else f"{row.title} †"
        rows.append([title, *cells, _cell(oracle, "auroc"), *told])
    header = ["Method", *COLUMNS.values(), "AUROC (test)", "Published", "chosen on"]
    best = ["", "max", "max", "min", "max", "", "", ""]
    return f"{NAMES[protocol]}, {dataset}, {shift}", tables.Table(header, rows, best)


def _is_settled(row: Row, dataset: str, shift: str) -> bool:
    """Returns whether a row's method has published settings there, or needs none."""
    method = next((e.method for e in ENTRIES if e.name == row.entry), "")
    return settings.is_published(method, dataset, shift)


def note(records: Sequence[Record]) -> str:
    """Returns what the figures are."""
    return NOTE.format(runs=notes.runs(records))
