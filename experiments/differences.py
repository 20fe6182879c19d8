"""Lists figures that are more than two points from the paper's, and says why.

  python -m experiments.differences
  python -m experiments.differences --records_dir=results

Reads the records of the experiments and trains nothing; takes about two seconds.
"""

import collections
import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from absl import flags

from experiments import ablation, edge_removal, end_to_end, gkde, post_hoc
from experiments.support import main_table, paired, paper_results, study
from experiments.support.study import Records, Study
from experiments.support.study_flags import RECORDS_DIR
from oodgat_jax import tables
from oodgat_jax.cli import app
from oodgat_jax.records import Record, kept_metrics, latest

FLAGS = flags.FLAGS
POINTS = 2.0  # from the paper; what is nearer is not listed
ERRORS = 2.0  # standard errors of a difference; what is within them may be chance
RULE, PAPER, KNOWN, SPREAD, OPEN = KINDS = (
    "rule",
    "paper",
    "measured",
    "spread",
    "not explained",
)
NOTE = (
    "{listed} of {all} figures beside which the paper has one are more than "
    f"{POINTS:.0f} points from it: {{kinds}}. rule: the paper's FPR95 averages over "
    "ROC points near 95 % TPR; by that rule ours, given here, is nearer. paper: its "
    "main table has another figure for the same, which ours is near. measured: by an "
    "experiment of its own, on the page of the table. spread: no more than "
    f"{ERRORS:.0f} standard errors of the difference of two means; the error of one, "
    "given here, follows from how our runs vary between splits and between seeds. So "
    "few runs cannot tell such a difference from chance, if the paper's splits are "
    "others than ours."
)
# What was found out by measurement, by study and row; the page of the table has it.
MEASURED = {
    ("post_hoc", "CaGCN"): "its calibration",
    ("post_hoc", "Mahalanobis"): "layer, covariance",
}


class Figure(NamedTuple):
    """A mean of ours that stands beside one of the paper's."""

    study: str
    table: str  # as the page calls it
    dataset: str
    row: str
    metric: str
    record: Record
    paper: float  # percent

    @property
    def values(self) -> np.ndarray:
        """Returns the runs that did not fail, in percent."""
        return 100 * np.array(kept_metrics(self.record)[self.metric])

    @property
    def gap(self) -> float:
        """Returns how far the mean is above the paper's, in points."""
        return float(self.values.mean()) - self.paper


class Reason(NamedTuple):
    """Why a figure is not the paper's: of which kind, and in words."""

    kind: str  # of KINDS
    text: str

    @property
    def told(self) -> str:
        """Returns both, as a table has them."""
        return ": ".join(filter(None, self))


def main() -> None:
    """Reads, compares, prints."""
    folder = pathlib.Path(FLAGS.records_dir)
    records = [study.read_source(source, folder) for source in STUDY.sources]
    print(study.text(STUDY, *records))


def every(records: Mapping[str, Records]) -> list[Figure]:
    """Returns all figures beside the paper's, from the records of studies by name."""
    found = (read(records.get(name, ())) for name, read in READERS.items())
    return [figure for figures in found for figure in figures]


def far(figures: Sequence[Figure]) -> list[Figure]:
    """Returns those that are more than POINTS from the paper's, as tables show them."""
    return [figure for figure in figures if abs(round(figure.gap, 1)) > POINTS]


def reason(figure: Figure) -> Reason:
    """Returns why a figure is far from the paper's."""
    alike = figure
    if figure.metric == "fpr95" and "fpr95_paper" in figure.record["metrics"]:
        alike = figure._replace(metric="fpr95_paper")
        if abs(alike.gap) <= POINTS:
            return Reason(RULE, f"{alike.values.mean():.1f}")
    other = _in_main_table(figure)
    if other is not None and abs(alike._replace(paper=other).gap) <= POINTS:
        return Reason(PAPER, f"{other:.1f} in its main table")
    if text := MEASURED.get((figure.study, figure.row)):
        return Reason(KNOWN, text)
    error = standard_error(alike)
    if abs(alike.gap) <= ERRORS * math.sqrt(2) * error:
        return Reason(SPREAD, f"{error:.1f}")
    return Reason(OPEN, "")


def _in_main_table(figure: Figure) -> float | None:
    """Returns what the paper's main table has for a base or OODGAT of its second."""
    where = paper_results.row(figure.record["method"], figure.record["detector"])
    if figure.study != "post_hoc" or where[0] != "end_to_end":
        return None
    return paper_results.figure(*where, figure.dataset, figure.metric)


def standard_error(figure: Figure) -> float:
    """Returns that of the mean, for splits and seeds drawn anew; inf for one run."""
    values = figure.values
    if len(values) < 2:
        return math.inf
    parts = paired.components(figure.record, figure.metric)
    if parts is None:
        return float(values.std(ddof=1)) / math.sqrt(len(values))
    between, within = parts
    splits = len(set(figure.record["split_seeds"]))
    return math.hypot(between / math.sqrt(splits), within / math.sqrt(len(values)))


def draw(records: Mapping[str, Records]) -> tables.Table:
    """Draws a row per figure that is far from the paper's, in the order of pages."""
    rows: list[list[tables.Cell | str]] = [
        [
            figure.table,
            figure.dataset,
            figure.row,
            tables.COLUMNS[figure.metric],
            tables.result(kept_metrics(figure.record)[figure.metric], figure.paper),
            f"{figure.gap:+.1f}",
            reason(figure).told,
        ]
        for figure in far(every(records))
    ]
    header = ["Table", "Data set", "Row", "Figure", "Here (paper)", "Difference"]
    return tables.Table([*header, "Why"], rows)


def _figures(
    name: str, title: str, where: tuple[str, str], row: str, record: Record
) -> Iterator[Figure]:
    """Yields the metrics of a record that the paper has at (table, row)."""
    for metric in tables.COLUMNS:
        paper = paper_results.figure(*where, record["dataset"], metric)
        if paper is not None and kept_metrics(record).get(metric):
            yield Figure(name, title, record["dataset"], row, metric, record, paper)


def _of_end_to_end(records: Records) -> Iterator[Figure]:
    for title, mine in main_table.by_title(records):
        name = mine[0]["dataset"]
        kinds = {main_table.TUNED: ", tuned", main_table.AUTHORS: ", authors'"}
        told = {kind.format(name): text for kind, text in kinds.items()}
        table = f"Main table{told.get(title, '')}"
        for row in main_table.ROWS:
            if record := main_table.find(mine, name, row):
                where = "end_to_end", row.paper
                yield from _figures("end_to_end", table, where, row.title, record)


def _of_post_hoc(records: Records) -> Iterator[Figure]:
    """Yields the figures with settings chosen on test nodes, as the paper's are."""
    for dataset in post_hoc.known(records):
        for row in post_hoc.ROWS:
            found = post_hoc.find(records, dataset, row)
            if record := found.get("oracle", found.get("fixed")):
                where = "post_hoc", row.paper
                yield from _figures(
                    "post_hoc", post_hoc.STUDY.title, where, row.title, record
                )


def _of_gkde(records: Records) -> Iterator[Figure]:
    for dataset in gkde.known(records):
        for row in gkde.ROWS:
            where = {"method": row.method, "detector": row.detector}
            record = latest(records, dataset=dataset, **where)
            if record and row.method in ("gkde", "oodgat"):  # which the paper has
                table = "gkde", row.paper
                yield from _figures("gkde", gkde.STUDY.title, table, row.title, record)


def _of_edge_removal(records: Records) -> Iterator[Figure]:
    for dataset in paper_results.in_order([r["dataset"] for r in records]):
        found = edge_removal.find(records, dataset, "gcn")
        for share, record in found.items():
            where = "edge_removal", f"{share:g}"
            title, row = edge_removal.STUDY.title, f"GCN, {share:.0%} removed"
            yield from _figures("edge_removal", title, where, row, record)


def _of_ablation(records: Records) -> Iterator[Figure]:
    for pair in ablation.known(records):
        for (row, detector), record in ablation.find(records, *pair).items():
            if (record["method"], detector) == ("oodgat", "ATT"):
                where = "ablation", row
                yield from _figures(
                    "ablation", ablation.STUDY.title, where, row, record
                )


READERS = {
    "end_to_end": _of_end_to_end,
    "post_hoc": _of_post_hoc,
    "gkde": _of_gkde,
    "edge_removal": _of_edge_removal,
    "ablation": _of_ablation,
}


def _by_study(records: Sequence[Records]) -> dict[str, Records]:
    return dict(zip(READERS, records, strict=True))


def _table(*records: Records) -> tables.Table:
    return draw(_by_study(records))


def _note(*records: Records) -> str:
    found = every(_by_study(records))
    listed = far(found)
    counts = collections.Counter(reason(figure).kind for figure in listed)
    kinds = [f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]]
    return NOTE.format(listed=len(listed), all=len(found), kinds=", ".join(kinds))


STUDY = Study(
    name="differences",
    title="Where figures are not the paper's",
    about=f"Every figure more than {POINTS:.0f} points from the paper's, and why.",
    command="python -m experiments.differences",
    tables=study.single(_table),
    note=_note,
    caption="More than two points from the paper",
    read=None,
    beside=(
        end_to_end.STUDY,
        post_hoc.STUDY,
        gkde.STUDY,
        edge_removal.STUDY,
        ablation.STUDY,
    ),
)


if __name__ == "__main__":
    app.run(main, own=RECORDS_DIR)
