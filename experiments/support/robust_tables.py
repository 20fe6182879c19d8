"""Draws what `experiments.robust` has recorded: worst runs beside means."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from experiments.support import (
    paired,
    paper_results,
    robust_ensembles,
    run_figures,
)
from experiments.support.robust_variants import (
    MAIN,
    PLUS,
    VARIANTS,
    Variant,
    find,
    values,
)
from oodgat_jax import tables
from oodgat_jax.records import Record

STAGES: Mapping[str, str] = {
    "paper": "The paper's splits",
    "fresh": "Fresh splits",
    "partitions": "Random choices of the known classes",
    "settings": "Other settings (development splits)",
    "development": "Development",
}
FALLEN = 3.0  # points below the median of its problem that make a run a fallen one
METRICS = {
    "fpr95": "FPR95",
    "accuracy": "Accuracy",
    "weighted_f1": "F1 (best)",
    "weighted_f1_val": "F1 (val)",
}
HEADER = ["Data set", "Method", "AUROC", "worst run", "fallen", *METRICS.values()]
NOTE = (
    "Percent, mean ± standard deviation over runs, in parentheses the paper's figure. "
    "Fallen are runs whose AUROC is more than three points below the median of their "
    "data set, known classes and method. OODGAT+ has one setting for all data sets and "
    "is scored by FUSED+student unless a score is named, by FUSED+prop where a part "
    "but the student is left out or a setting changed (these rows were made before "
    "there was a student). Where OODGAT+ has a student, its accuracy, F1 and ENT are "
    "of both networks, whatever the score. OODGAT has the paper's settings and is "
    "scored by ATT; GAT by the detector with the best AUROC on the validation nodes "
    "of the run. F1 (best) picks its threshold on the test nodes, F1 (val) on the "
    "validation nodes. Settings of OODGAT+ were chosen before all but the stage "
    "development, which is judged on nodes that are in no part of its splits; its "
    "scores FUSED+fit and FUSED+student after they had been seen with FUSED+prop. An "
    "ensemble averages the ranks of its members' scores and their probabilities, and "
    f"costs as many trainings as it has members. Of differences, {paired.NOTE}."
)
PAIRED = "OODGAT+ less another over the same runs, AUROC"


def draw(records: Sequence[Record]) -> list[tuple[str, tables.Table]]:
    """Draws a table per stage, each followed by the paired differences."""
    shown = []
    for stage, title in STAGES.items():
        mine = [record for record in records if record["stage"] == stage]
        if mine:
            shown.append((title, _table(mine)))
            table = _paired(mine)
            shown += [(f"{PAIRED} ({title.lower()})", table)] if table.rows else []
    mine = [r for r in records if r["stage"] == robust_ensembles.STAGE]
    return [*shown, ("Ensembles", robust_ensembles.table(mine))] if mine else shown


def in_summary(records: Sequence[Record]) -> list[Record]:
    """Returns the records of OODGAT+, no part left out, on the paper's splits."""
    mine = [r for r in records if r["method"] == PLUS and not r["off"]]
    return [r for r in mine if r["stage"] == "paper"]


def note(records: Sequence[Record]) -> str:
    """Returns the note below the tables."""
    return NOTE


def figures(records: Sequence[Record]) -> dict[str, Figure]:
    """Draws every run of the main rows as a dot, a figure per stage."""
    drawn = {}
    for stage in STAGES:
        mine = [record for record in records if record["stage"] == stage]
        groups = {name: _lines(mine, name) for name in _names(mine)}
        if any(line.values for lines in groups.values() for line in lines):
            drawn[stage] = run_figures.strips(groups)
    return drawn


def _names(records: Sequence[Record]) -> list[str]:
    return paper_results.in_order([record["dataset"] for record in records])


def _lines(records: Sequence[Record], name: str) -> list[run_figures.Line]:
    lines = []
    for variant in MAIN:
        runs = np.concatenate(_runs(records, name, variant, "auroc") or [np.zeros(0)])
        lines.append(run_figures.Line(variant.title, (100 * runs).tolist()))
    return lines


def _runs(
    records: Sequence[Record], name: str, variant: Variant, metric: str
) -> list[np.ndarray]:
    """Returns the runs of each problem, that is of each choice of known classes."""
    mine = [record for record in records if record["dataset"] == name]
    problems = dict.fromkeys(tuple(record["known"]) for record in mine)
    found = [find(mine, variant, known=list(known)) for known in problems]
    return [values(each, metric) for each in found if each]


def fallen(problems: Sequence[np.ndarray]) -> float:
    """Returns the share of runs that fell below the median of their problem.

    NaN if every problem has a single run, which is its own median.
    """
    if max(map(len, problems)) == 1:
        return float("nan")
    below = [np.median(runs) - runs > FALLEN / 100 for runs in problems]
    return float(np.mean(np.concatenate(below)))


def _table(records: Sequence[Record]) -> tables.Table:
    rows: list[list[tables.Cell | str]] = []
    for name in _names(records):
        for variant in VARIANTS:
            problems = _runs(records, name, variant, "auroc")
            if problems:
                rows.append([name, variant.title, *_cells(records, name, variant)])
    return tables.Table(HEADER, rows)


def _cells(
    records: Sequence[Record], name: str, variant: Variant
) -> list[tables.Cell | str]:
    problems = _runs(records, name, variant, "auroc")
    every = np.concatenate(problems)
    worst, share = 100 * float(every.min()), 100 * fallen(problems)
    cells: list[tables.Cell | str] = [
        _cell(records[0], every, name, "auroc"),
        tables.Cell(f"{worst:.1f}", worst),
        "-" if np.isnan(share) else tables.Cell(f"{share:.0f}", share),
    ]
    for metric in METRICS:
        runs = np.concatenate(_runs(records, name, variant, metric))
        cells.append(_cell(records[0], runs, name, metric))
    return cells


def _cell(record: Record, runs: np.ndarray, name: str, metric: str) -> tables.Cell:
    shown = record["stage"] == "paper"
    row = "oodgat-att" if shown else ""
    paper = paper_results.figure("end_to_end", row, name, metric) if shown else None
    return tables.result(runs.tolist(), paper)


def _paired(records: Sequence[Record]) -> tables.Table:
    """Draws the mean paired differences of AUROC with their bootstrap intervals."""
    plus, *others = MAIN
    found: dict[tuple[str, str, str], paired.Difference] = {}
    for name in _names(records):
        ours = _runs(records, name, plus, "auroc")
        for variant in others:
            theirs = _runs(records, name, variant, "auroc")
            sizes = [[len(runs) for runs in side] for side in (ours, theirs)]
            if not ours or sizes[0] != sizes[1]:
                continue
            pair = (np.concatenate(side).tolist() for side in (ours, theirs))
            count = str(sum(map(len, ours)))
            found[name, variant.title, count] = paired.difference(*pair)
    told = zip(found.items(), paired.texts(list(found.values())), strict=True)
    rows: list[list[tables.Cell | str]] = [
        [*keys, tables.Cell(text, each.mean)] for (keys, each), text in told
    ]
    return tables.Table(["Data set", "less", "runs", "points"], rows)
