"""Draws ROC curves without some edges: which of them help to detect OOD nodes?

  python -m experiments.edge_roles
  python -m experiments.edge_roles --dataset=digits --method=gat
  python -m experiments.edge_roles --from_records --out=experiments/records

Trains MLP and GCN on the whole graph, and GCN on the graph without inter-edges (between
an ID and an OOD node), and without those and the edges inside the ID or inside the OOD
nodes, each split with each seed. Writes to the folder --out:

  edge_roles.jsonl                    one line appended per curve, its points included
  edge_roles.md, .tex                 the areas under the curves
  edge_roles-DATASET-METHOD.pdf, .png the curves

What is recorded there with the same settings is not trained again. Cora takes about two
minutes on two cores.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from absl import flags
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.support import (
    figures,
    paper_results,
    study,
    study_flags,
    trainings,
    tuned,
)
from experiments.support.notes import counted
from experiments.support.study import Study
from experiments.support.trainings import Training
from oodgat_jax import experiment, tables
from oodgat_jax.cli import app
from oodgat_jax.datasets import edge_kinds
from oodgat_jax.methods import recipes
from oodgat_jax.records import Record, kept_metrics, latest
from oodgat_jax.types import Dataset

FLAGS = flags.FLAGS
PAPER = ("cora",)
SHARED = study_flags.TRAINING
OWN: app.Definitions = {
    **study_flags.one_dataset(*PAPER),
    **app.defaulting(method="gcn"),
    **tuned.FLAG,
}
# What a curve's graph lacks: kinds of edges.
SUBSETS: Mapping[str, tuple[str, ...]] = {
    "all edges": (),
    "no inter-edges": ("inter",),
    "no inter- and ID-ID edges": ("inter", "id-id"),
    "no inter- and OOD-OOD edges": ("inter", "ood-ood"),
}
FPR = np.linspace(0.0, 1.0, 101)
NOTE = (
    "Percent, mean ± standard deviation over {runs}; entropy of the prediction "
    "unless another score is named."
)


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> list[Training]:
    """Returns the trainings of the graph-free MLP and of the method on each graph."""
    (name,) = study_flags.dataset_names(FLAGS.dataset, PAPER, FLAGS.data_dir)
    pairs = [("mlp", "all edges"), *((FLAGS.method, title) for title in SUBSETS)]
    pairs = pairs[:1] if FLAGS.method == "mlp" else pairs
    cells = tuned.cells()
    plain = [tuned.recipe(cells, name, method) for method, _ in pairs]
    chosen, load = recipes.override_known(plain, FLAGS.set), trainings.loader()
    return [
        trainings.of_method(
            f"{method} on {name}, {title}",
            name,
            functools.partial(without_edges, load, name, SUBSETS[title]),
            method,
            recipe,
            keys={"removed_edges": list(SUBSETS[title])},
            further=_curve,
        )
        for (method, title), recipe in zip(pairs, chosen, strict=True)
    ]


def without_edges(
    load: Callable[[str], Dataset], name: str, kinds: Sequence[str]
) -> Dataset:
    """Loads a data set and removes its edges of these kinds."""
    dataset = load(name)
    for kind in kinds:
        dataset = edge_kinds.without(dataset, kind)
    return dataset


def curve(scores: np.ndarray, is_ood: np.ndarray) -> np.ndarray:
    """Returns the TPR at the rates FPR, linear between ROC points; OOD is positive."""
    from sklearn.metrics import roc_curve  # late: a second of the start of others

    fpr, tpr, _ = roc_curve(is_ood, scores)
    return np.interp(FPR, fpr, tpr)


def _curve(result: experiment.Result, detector: str) -> dict:
    """Returns the points of every run's curve on its test nodes, for the record."""
    split = result.splits
    points = []
    for run, scores in enumerate(result.scores[detector]):
        test = np.asarray(split.test[run])
        if np.isfinite(scores).all():
            found = curve(scores[test], np.asarray(split.is_ood[run])[test])
            points.append(found.round(4).tolist())
        else:
            points.append([None] * len(FPR))
    return {"roc_tpr": points}


def find(
    records: Sequence[Record], dataset: str, method: str
) -> dict[tuple[str, str, str], Record]:
    """Returns (method, title, detector) -> latest record, those of the MLP first."""
    found = {}
    for each in dict.fromkeys(("mlp", method)):
        for title, removed in SUBSETS.items():
            for detector in ("ENT", "ATT", "vacuity"):
                record = latest(
                    records,
                    dataset=dataset,
                    method=each,
                    detector=detector,
                    removed_edges=list(removed),
                )
                if record:
                    found[each, title, detector] = record
    return found


def known(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Returns the data sets and methods of the records; the MLP only if it is alone."""
    pairs = dict.fromkeys((r["dataset"], r["method"]) for r in records)
    names = paper_results.in_order([dataset for dataset, _ in pairs])
    found = [(d, m) for d in names for other, m in pairs if other == d and m != "mlp"]
    return found or list(pairs)


def draw(records: Sequence[Record]) -> tables.Table:
    """Draws a row per curve: AUROC and FPR95."""
    rows: list[list[tables.Cell | str]] = []
    for dataset, method in known(records):
        for (_, title, _), record in find(records, dataset, method).items():
            kept = kept_metrics(record)
            cells = (tables.result(kept[metric]) for metric in ("auroc", "fpr95"))
            rows.append([dataset, _name(record), title, *cells])
    return tables.Table(["Data set", "Method", "Graph", "AUROC", "FPR95"], rows)


def draw_figures(records: Sequence[Record]) -> dict[str, Figure]:
    """Draws two panels per `DATASET-METHOD`: with and without a graph, and by edges."""
    drawn = {}
    for dataset, method in known(records):
        found = find(records, dataset, method)
        figure, axes = figures.panels(2, sharey=True)
        whole = {
            _name(r): r for (_, title, _), r in found.items() if title == "all edges"
        }
        subsets = {t: r for (m, t, _), r in found.items() if m == method}
        score = _name(next(iter(subsets.values())))
        _panel(axes[0, 0], whole, f"{dataset}, whole graph")
        _panel(axes[0, 1], subsets, f"{dataset}, {score} by edges")
        axes[0, 0].set_ylabel("true positive rate (OOD found)")
        drawn[f"{dataset}-{method}"] = figure
    return drawn


def _name(record: Record) -> str:
    detector = record["detector"]
    return record["method"] if detector == "ENT" else f"{record['method']}, {detector}"


def _panel(axis: Axes, curves: Mapping[str, Record], title: str) -> None:
    for number, (label, record) in enumerate(curves.items()):
        points = np.array(record["roc_tpr"], float)
        auroc = 100 * np.mean(kept_metrics(record)["auroc"])
        figures.band(axis, FPR, points, number, f"{label} ({auroc:.1f})")
    axis.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, zorder=0)
    axis.set(title=title, xlabel="false positive rate (ID called OOD)")
    axis.legend(title="AUROC in parentheses", loc="lower right")


STUDY = Study(
    name="edge_roles",
    title="The roles of edges in detection",
    about="Detection with and without a graph, and on graphs that lack some edges.",
    command="python -m experiments.edge_roles --out=experiments/records",
    trainings=every_training,
    tables=study.single(draw),
    figures=draw_figures,
    note=counted(NOTE),
    caption="Areas under the curves",
    figure_caption="{}: ROC curves of detection",
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
