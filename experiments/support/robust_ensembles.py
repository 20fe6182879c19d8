"""Ensembles of the runs of one split: what records hold of them, and their table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.support import paper_results
from experiments.support.robust_variants import MAIN, SCORES, find
from oodgat_jax import ensembles, experiment, tables
from oodgat_jax.records import Record

STAGE = "ensembles"
ROWS = (MAIN[0], SCORES[0], MAIN[1])  # OODGAT+ by two scores, and OODGAT
SIZES = (3, 5, 9)
METRICS = {
    "auroc": "AUROC",
    "fpr95": "FPR95",
    "accuracy": "Accuracy",
    "weighted_f1": "F1 (best)",
    "weighted_f1_val": "F1 (val)",
}
HEADER = [
    "Data set",
    "Method",
    "trainings",
    "AUROC",
    "worst",
    *list(METRICS.values())[1:],
]


def together(result: experiment.Result, detector: str) -> list[dict[str, Any]]:
    """Returns the metrics of all ensembles that the runs make, by size.

    Each size twice: of all members, and without those that disagree with the others.
    """
    most = max(np.unique(result.split_seeds, return_counts=True)[1])
    found = []
    for size in (size for size in SIZES if size <= most):
        for dropping in (False, True):
            made = ensembles.ensembles(result, detector, size, drop=dropping)
            found.append(
                {
                    "members": size,
                    "dropping": dropping,
                    "dropped": int(sum((~each.kept).sum() for each in made)),
                    "metrics": {k: [each.metrics[k] for each in made] for k in METRICS},
                }
            )
    return found


def table(records: Sequence[Record]) -> tables.Table:
    """Draws single runs, and below them their ensembles."""
    rows: list[list[tables.Cell | str]] = []
    for name in paper_results.in_order([record["dataset"] for record in records]):
        for variant in ROWS:
            for record in find(records, variant, dataset=name):
                rows.append([name, variant.title, *_cells(record["metrics"], 1)])
                rows += [[name, *_row(variant.title, e)] for e in record["ensembles"]]
    return tables.Table(HEADER, rows)


def _row(title: str, ensemble: dict[str, Any]) -> list[tables.Cell | str]:
    text = f"{title}, {ensemble['members']} members"
    if ensemble["dropping"]:
        text += f", {ensemble['dropped']} dropped"
    return [text, *_cells(ensemble["metrics"], ensemble["members"])]


def _cells(metrics: dict[str, list[float]], trainings: int) -> list[tables.Cell | str]:
    worst = 100 * min(metrics["auroc"])
    first, *others = [tables.result(metrics[name]) for name in METRICS]
    return [str(trainings), first, tables.Cell(f"{worst:.1f}", worst), *others]
