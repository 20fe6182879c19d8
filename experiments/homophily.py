"""Measures how alike neighbors are: by class, and by being known or unknown.

  python -m experiments.homophily
  python -m experiments.homophily --datasets=cora,digits

The paper's proposition: a graph is never less homophilic with respect to {ID, OOD} than
with respect to its classes. Nothing is trained. By default it
takes all data sets whose files are present. Writes to the folder --out:

  homophily.jsonl            one line appended per data set
  homophily.md, .tex         the table

What is recorded there is not measured again. Takes a few seconds per data set.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from absl import flags

from experiments.support import paper_results, study, study_flags
from experiments.support.study import Study
from experiments.support.trainings import LINES, Keys, Training
from oodgat_jax import datasets, tables
from oodgat_jax.cli import app
from oodgat_jax.datasets import DATASETS, edge_kinds
from oodgat_jax.records import Record, made_by, read_lines
from oodgat_jax.registry import check_names
from oodgat_jax.types import Dataset

FLAGS = flags.FLAGS
SHARED = ("out", "data_dir", "from_records")
OWN: app.Definitions = {
    "datasets": (
        flags.DEFINE_list,
        None,
        "Of {DATASETS}; by default those whose files are present.",
        {},
    ),
}
NOTE = (
    "Node homophily: the share of a node's neighbors that are like it, mean over the "
    "nodes that have neighbors, in percent; directed edges by their kind, in percent "
    "of all."
)


def main() -> int | None:
    """Measures what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> list[Training]:
    """Returns a measurement per data set."""
    return [_measurement(name) for name in _names()]


def _measurement(name: str) -> Training:
    def run(missing: Sequence[Keys]) -> Iterable[list[Record]]:
        yield [measure(datasets.load(name, FLAGS.data_dir))]

    return Training(f"The homophily of {name}", [{"dataset": name}], run, format=LINES)


def _names() -> list[str]:
    every = tuple(DATASETS)  # also those that a plug-in has registered
    names = study_flags.dataset_names(FLAGS.datasets, every, FLAGS.data_dir)
    check_names("data set", names, DATASETS)
    return names


def measure(dataset: Dataset) -> Record:
    """Returns the record of a data set."""
    kinds = edge_kinds.kinds(dataset)
    counts = np.bincount(kinds[kinds >= 0], minlength=len(edge_kinds.KINDS))
    return {
        "dataset": dataset.name,
        "nodes": dataset.num_nodes,
        "edges": len(dataset.senders),
        "ood_nodes": int(edge_kinds.is_ood(dataset).sum()),
        "edges_by_kind": dict(zip(edge_kinds.KINDS, counts.tolist(), strict=True)),
        "class_homophily": edge_kinds.class_homophily(dataset),
        "identity_homophily": edge_kinds.identity_homophily(dataset),
        **made_by(),
    }


def draw(records: Sequence[Record]) -> tables.Table:
    """Draws a row per data set, from its latest record."""
    latest = {record["dataset"]: record for record in records}
    rows = [_row(latest[name]) for name in paper_results.in_order(latest)]
    header = ["Data set", "nodes", "OOD nodes", "edges"]
    header += [f"{kind} edges" for kind in edge_kinds.KINDS]
    return tables.Table([*header, "by class", "by ID/OOD"], rows)


def _row(record: Record) -> list[tables.Cell | str]:
    shares = [count / record["edges"] for count in record["edges_by_kind"].values()]
    shares += [record["class_homophily"], record["identity_homophily"]]
    return [
        record["dataset"],
        f"{record['nodes']:,}",
        f"{100 * record['ood_nodes'] / record['nodes']:.1f} %",
        f"{record['edges']:,}",
        *(tables.Cell(f"{100 * share:.1f}", 100 * share) for share in shares),
    ]


STUDY = Study(
    name="homophily",
    title="Homophily",
    about="How alike neighbors are: by class, and by being known or unknown.",
    command="python -m experiments.homophily --out=experiments/records",
    trainings=every_training,
    tables=study.single(draw),
    note=lambda records: NOTE,
    caption="All data sets",
    read=read_lines,
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN)
