"""What removing the edges between known and unknown nodes does to a classifier.

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

from collections.abc import Sequence

from absl import flags

from experiments.support import choices, main_table, paper_results, study
from oodgat_jax import datasets, tables
from oodgat_jax.cli import app
from oodgat_jax.datasets import edge_kinds
from oodgat_jax.records import Record, count_runs, kept_metrics, latest, read_records
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
SHARES = (0.0, 0.5, 1.0)
PAPER = ("cora", "amazon-computers", "amazon-photo", "coauthor-cs")
OWN: app.Definitions = choices.several(PAPER) | app.defaulting(method="gcn")
FILE = "edge_removal.jsonl"
NOTE = (
    "Accuracy in percent, mean ± standard deviation over {runs} runs, in parentheses "
    "the paper's figure. The last column is the paired difference between all and none "
    "removed, with its 95 % bootstrap interval over the runs."
)


def main() -> None:
    """Trains what is missing, draws."""
    folder = app.out_folder(FLAGS.out)
    if not FLAGS.from_records:
        names = choices.names(FLAGS.datasets, PAPER, FLAGS.data_dir)
        recipes = [study.recipe(name, FLAGS.method) for name in names]
        for name, recipe in zip(names, recipes, strict=True):
            study.train(folder / FILE, trainings(name, FLAGS.method, recipe))
    records = read_records(folder / FILE)
    study.show(folder, "edge_removal", draw(records), note(records))


def trainings(name: str, method: str, recipe) -> list[study.Training]:
    """One per share of inter-edges removed."""
    dataset = datasets.load(name, FLAGS.data_dir)
    return [
        study.Training(
            f"{method} on {name}, {share:.0%} of inter-edges removed",
            edge_kinds.without(dataset, "inter", share),
            method,
            recipe,
            {"removed_inter_edges": share},
            unchanged=share == 0,
        )
        for share in SHARES
    ]


def draw(records: Sequence[Record]) -> tables.Table:
    """A row per data set and method, a column per share.

    Raises:
      InputError: there is no record.
    """
    rows = [
        _row(records, dataset, method)
        for dataset in paper_results.in_order([record["dataset"] for record in records])
        for method in dict.fromkeys(record["method"] for record in records)
        if latest(records, dataset=dataset, method=method)
    ]
    if not rows:
        raise InputError("There is no record of edge removal: run it first.")
    shares = [f"{share:.0%} removed" for share in SHARES]
    return tables.Table(["Data set", "Method", *shares, "100 % less 0 %"], rows)


def note(records: Sequence[Record]) -> str:
    """What the figures are."""
    return NOTE.format(runs=count_runs(records))


def find(records: Sequence[Record], dataset: str, method: str) -> dict[float, Record]:
    """Share of inter-edges removed -> its latest record."""
    found = {
        share: latest(
            records, dataset=dataset, method=method, removed_inter_edges=share
        )
        for share in SHARES
    }
    return {share: record for share, record in found.items() if record}


def _row(
    records: Sequence[Record], dataset: str, method: str
) -> list[tables.Cell | str]:
    found = find(records, dataset, method)
    cells = [_cell(found.get(share), share) for share in SHARES]
    change = ""
    if {0.0, 1.0} <= found.keys():
        values = (found[share]["metrics"]["accuracy"] for share in (1.0, 0.0))
        mean, low, high = main_table.difference(*values)
        change = f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"
    return [dataset, method, *cells, change]


def _cell(record: Record | None, share: float) -> tables.Cell | str:
    if record is None:
        return ""
    row = f"{share:g}" if record["method"] == "gcn" else ""
    paper = paper_results.figure("edge_removal", row, record["dataset"], "accuracy")
    return tables.result(kept_metrics(record)["accuracy"], paper)


if __name__ == "__main__":
    app.run(main, study.SHARED, OWN, goes_on=True)
