"""Trains a classifier without some edges between known and unknown nodes.

  python -m experiments.edge_removal
  python -m experiments.edge_removal --datasets=digits --method=gat
  python -m experiments.edge_removal --from_records --out=experiments/records

Trains GCN on the graph as it is, and with half or all of its inter-edges (between an
ID and an OOD node) removed, each split with each seed: the paper's table of accuracies.
Which half goes is the same in all runs. Writes to the folder --out:

  edge_removal.jsonl                   one line appended per (data set, share)
  edge_removal.md, edge_removal.tex    the table

What is recorded there with the same settings is not trained again. The paper's four
data sets take about ten minutes on two cores.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

from absl import flags

from experiments.support import (
    paired,
    paper_results,
    study,
    study_flags,
    trainings,
    tuned,
)
from experiments.support.notes import counted
from experiments.support.study import Study
from experiments.support.trainings import Training
from oodgat_jax import tables
from oodgat_jax.cli import app
from oodgat_jax.datasets import edge_kinds
from oodgat_jax.methods import recipes
from oodgat_jax.records import Record, kept_metrics, latest
from oodgat_jax.types import Dataset

FLAGS = flags.FLAGS
SHARES = (0.0, 0.5, 1.0)
PAPER = ("cora", "amazon-computers", "amazon-photo", "coauthor-cs")
SHARED = study_flags.TRAINING
OWN: app.Definitions = {
    **study_flags.several_datasets(PAPER),
    **app.defaulting(method="gcn"),
    **tuned.FLAG,
}
NOTE = (
    "Accuracy in percent, mean ± standard deviation over {runs}, in parentheses "
    "the paper's figure. The last column is the paired difference between all and none "
    f"removed, with its 95 % bootstrap interval over the runs; {paired.NOTE}."
)


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> list[Training]:
    """Returns one training per data set and share of inter-edges removed."""
    names = study_flags.dataset_names(FLAGS.datasets, PAPER, FLAGS.data_dir)
    cells, load = tuned.cells(), trainings.loader()
    plain = [tuned.recipe(cells, name, FLAGS.method) for name in names]
    chosen = zip(names, recipes.override_known(plain, FLAGS.set), strict=True)
    return [
        trainings.of_method(
            f"{FLAGS.method} on {name}, {share:.0%} of inter-edges removed",
            name,
            functools.partial(without_inter_edges, load, name, share),
            FLAGS.method,
            recipe,
            keys={"removed_inter_edges": share},
            unchanged=share == 0,
        )
        for name, recipe in chosen
        for share in SHARES
    ]


def without_inter_edges(
    load: Callable[[str], Dataset], name: str, share: float
) -> Dataset:
    """Loads a data set and removes a share of its inter-edges."""
    return edge_kinds.without(load(name), "inter", share)


def draw(records: Sequence[Record]) -> tables.Table:
    """Draws a row per data set and method, a column per share."""
    names = paper_results.in_order([record["dataset"] for record in records])
    methods = dict.fromkeys(record["method"] for record in records)
    pairs = [(n, m) for n in names for m in methods if find(records, n, m)]
    changes = {pair: c for pair in pairs if (c := _change(find(records, *pair)))}
    told = dict(zip(changes, paired.texts(list(changes.values())), strict=True))
    rows = [[*p, *_cells(find(records, *p)), told.get(p, "")] for p in pairs]
    shares = [f"{share:.0%} removed" for share in SHARES]
    return tables.Table(["Data set", "Method", *shares, "100 % less 0 %"], rows)


def find(records: Sequence[Record], dataset: str, method: str) -> dict[float, Record]:
    """Returns the latest record of each share of inter-edges removed."""
    found = {
        share: latest(
            records, dataset=dataset, method=method, removed_inter_edges=share
        )
        for share in SHARES
    }
    return {share: record for share, record in found.items() if record}


def _cells(found: Mapping[float, Record]) -> list[tables.Cell | str]:
    return [_cell(found.get(share), share) for share in SHARES]


def _change(found: Mapping[float, Record]) -> paired.Difference | None:
    """Returns the difference between all and none of the inter-edges removed."""
    if not {0.0, 1.0} <= found.keys():
        return None
    every, none = (found[share]["metrics"]["accuracy"] for share in (1.0, 0.0))
    return paired.difference(every, none)


def _cell(record: Record | None, share: float) -> tables.Cell | str:
    if record is None:
        return ""
    row = f"{share:g}" if record["method"] == "gcn" else ""
    paper = paper_results.figure("edge_removal", row, record["dataset"], "accuracy")
    return tables.result(kept_metrics(record)["accuracy"], paper)


STUDY = Study(
    name="edge_removal",
    title="Removing inter-edges",
    about="Accuracy of a classifier when edges between ID and OOD nodes go.",
    command="python -m experiments.edge_removal --out=experiments/records",
    trainings=every_training,
    tables=study.single(draw),
    note=counted(NOTE),
    caption="Accuracy",
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
