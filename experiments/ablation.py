"""Shows what each regularizer does: trains a method with some of them only.

  python -m experiments.ablation
  python -m experiments.ablation --dataset=digits --method=oodgat-printed
  python -m experiments.ablation --from_records --out=experiments/records

Rows are cross-entropy alone, with each regularizer, with the first and each other one,
and with all: for OODGAT the paper's seven. Weights are those of the whole method. Steps
are chosen by the same validation score in all rows. Writes to the folder --out:

  ablation.jsonl              one line appended per (regularizers, detector)
  ablation.md, .tex           the table

What is recorded there, or with these seeds or more in the main table's
`end_to_end.jsonl` in the same folder, is not trained again. Amazon-Computers takes
about an hour and a half on two cores, half an hour with --seeds=1.
"""

import functools
from collections.abc import Sequence

from absl import flags

from experiments.support import paper_results, study, study_flags, trainings
from experiments.support.notes import counted
from experiments.support.study import Study
from experiments.support.trainings import Training
from oodgat_jax import tables
from oodgat_jax.cli import app
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import Record, kept_metrics
from oodgat_jax.registry import check_name, check_names

FLAGS = flags.FLAGS
PAPER = ("amazon-computers",)
SHARED = (*study_flags.TRAINING, "method")
OWN: app.Definitions = {
    **study_flags.one_dataset(*PAPER),
    "rows": (
        flags.DEFINE_list,
        None,
        "Those to train, if not all, as the table calls them: ce,ce+con,...",
        {},
    ),
}
METRICS = {"accuracy": "Accuracy", "auroc": "AUROC", "weighted_f1": "F1 (best)"}
SHORT = {"consistency": "con", "entropy": "ent", "discrepancy": "dis"}
NOTE = (
    "Percent, mean ± standard deviation over {runs}, in parentheses the paper's "
    "figure (it has those of ATT). CE is the cross-entropy of the labeled nodes."
)


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY)


def subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns none, each alone, the first with each other one, all, as the paper."""
    first, *others = names
    found = [(), *((name,) for name in names), *((first, name) for name in others)]
    return list(dict.fromkeys([*found, tuple(names)]))


def every_training() -> list[Training]:
    """Returns one training per row; settings go where they are known."""
    (name,) = study_flags.dataset_names(FLAGS.dataset, PAPER, FLAGS.data_dir)
    able = [key for key, each in METHODS.items() if each.regularizers]
    check_name("method with regularizers", FLAGS.method, able)
    rows = _chosen(subsets(METHODS[FLAGS.method].regularizers), FLAGS.rows)
    plain = [recipes.recipe(name, FLAGS.method, regularizers=row) for row in rows]
    chosen = recipes.override_known(plain, FLAGS.set)
    load = functools.partial(trainings.loader(), name)
    return [
        trainings.of_method(
            f"{FLAGS.method} on {name}, {title(row)}",
            name,
            load,
            FLAGS.method,
            recipe,
            keys={"regularizers": list(row)},
            definition=METHODS[FLAGS.method]._replace(regularizers=row),
            unchanged=True,
        )
        for row, recipe in zip(rows, chosen, strict=True)
    ]


def _chosen(
    rows: Sequence[tuple[str, ...]], named: Sequence[str] | None
) -> list[tuple[str, ...]]:
    known = {title(row): row for row in rows}
    check_names("row", named or (), known)
    return [row for name, row in known.items() if named is None or name in named]


def title(regularizers: Sequence[str]) -> str:
    """Returns the name of a row as the paper has it: `ce+con+ent`."""
    plain = [name.removesuffix("_printed") for name in regularizers]
    return "+".join(["ce", *(SHORT.get(name, name) for name in plain)])


def known(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Returns the data sets and methods of the records."""
    pairs = dict.fromkeys((r["dataset"], r["method"]) for r in records)
    names = paper_results.in_order([dataset for dataset, _ in pairs])
    return sorted(pairs, key=lambda pair: names.index(pair[0]))


def find(
    records: Sequence[Record], dataset: str, method: str
) -> dict[tuple[str, str], Record]:
    """Returns (row, detector) -> latest record, by detector in the paper's order."""
    mine = [r for r in records if (r["dataset"], r["method"]) == (dataset, method)]
    order = sorted({tuple(r["regularizers"]) for r in mine}, key=lambda t: (len(t), t))
    latest = {(title(r["regularizers"]), r["detector"]): r for r in mine}
    titles = [title(row) for row in _in_order(order)]
    detectors = sorted({detector for _, detector in latest})
    keys = [(row, detector) for detector in detectors for row in titles]
    return {key: latest[key] for key in keys if key in latest}


def _in_order(found: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Sorts rows in the paper's order, which the longest one decides."""
    every = max(found, key=len, default=())
    order = subsets(every) if every else [()]
    return [t for t in order if t in found] + [t for t in found if t not in order]


def shown(records: Sequence[Record]) -> list[Record]:
    """Returns the records of the table's rows."""
    pairs = known(records)
    return [each for pair in pairs for each in find(records, *pair).values()]


def draw(records: Sequence[Record]) -> tables.Table:
    """Draws a row per data set, method, regularizers and detector."""
    rows: list[list[tables.Cell | str]] = []
    for dataset, method in known(records):
        for (row, detector), record in find(records, dataset, method).items():
            cells = _cells(record, row, detector)
            rows.append([dataset, f"{method}-{detector}", row, *cells])
    return tables.Table(["Data set", "Method", "Loss", *METRICS.values()], rows)


def _cells(record: Record, row: str, detector: str) -> list[tables.Cell]:
    row = row if (record["method"], detector) == ("oodgat", "ATT") else ""
    kept, name = kept_metrics(record), record["dataset"]
    return [
        tables.result(kept[m], paper_results.figure("ablation", row, name, m))
        for m in METRICS
    ]


STUDY = Study(
    name="ablation",
    title="Ablation",
    about="OODGAT trained with some of its regularizers only.",
    command="python -m experiments.ablation --out=experiments/records",
    trainings=every_training,
    tables=study.single(draw),
    note=counted(NOTE, shown),
    caption="By regularizers",
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
