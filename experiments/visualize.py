"""Draws GCN and OODGAT side by side: hidden layer, scores, entropy over training.

  python -m experiments.visualize
  python -m experiments.visualize --dataset=digits --methods=gat,oodgat
  python -m experiments.visualize --from_records --out=experiments/records

Three rows of panels: t-SNE of the hidden layer and histograms of the test nodes'
scores, both of the run whose AUROC is the median, and the mean entropy of ID and OOD
test nodes over the first --steps steps, mean and deviation over all runs. Writes to the
folder --out:

  visualize.jsonl                  one line appended per (method, detector), with all
                                   that the figure shows
  visualize-DATASET.pdf, .png      the figure

What is recorded there with the same settings is not trained again. Cora takes about
three minutes on two cores.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from absl import flags
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import histogram
from experiments.support import (
    dynamics,
    figures,
    paper_results,
    study,
    study_flags,
    trainings,
    tuned,
)
from experiments.support.study import Study
from experiments.support.trainings import Training
from oodgat_jax import evaluation, experiment, methods
from oodgat_jax.cli import app
from oodgat_jax.methods import recipes
from oodgat_jax.records import Record
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
PAPER = ("cora",)
SHARED = study_flags.TRAINING
OWN: app.Definitions = {
    **study_flags.one_dataset(*PAPER),
    "methods": (
        flags.DEFINE_list,
        ["gcn", "oodgat"],
        "Columns of the figure, of {METHODS}.",
        {},
    ),
    "steps": (
        flags.DEFINE_integer,
        300,
        "Steps over which the entropy is followed.",
        {"lower_bound": 1},
    ),
    "points": (
        flags.DEFINE_integer,
        4000,
        "At most this many nodes in the t-SNE; of a larger graph they are sampled.",
        {"lower_bound": 50},
    ),
    **tuned.FLAG,
}
_MARKERS = "o^sDvP*X"


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> list[Training]:
    """Returns one training per method."""
    (name,) = study_flags.dataset_names(FLAGS.dataset, PAPER, FLAGS.data_dir)
    cells = tuned.cells()
    plain = [tuned.recipe(cells, name, method) for method in FLAGS.methods]
    chosen = recipes.override_known(plain, FLAGS.set)
    load = functools.partial(trainings.loader(), name)
    keys = {"followed_steps": FLAGS.steps}
    return [
        trainings.of_method(
            f"{method} on {name}", name, load, method, recipe, keys=keys, further=look
        )
        for method, recipe in zip(FLAGS.methods, chosen, strict=True)
    ]


def look(result: experiment.Result, detector: str) -> dict:
    """Returns what the figure shows of a result, for the record of a detector."""
    shown = _median_run(result.metrics[detector]["auroc"])
    test = np.asarray(result.splits.test[shown])
    scores = result.scores[detector][shown][test]
    is_ood = np.asarray(result.splits.is_ood[shown])
    edges, counts = histogram.count(scores, is_ood[test])
    found = {
        "shown_run": shown,
        "histogram_edges": edges.round(5).tolist(),
        "histogram": {kind: count.tolist() for kind, count in counts.items()},
    }
    if detector == result.definition.detectors[0]:
        found |= {"embedding": embed(result, shown), "dynamics": follow(result)}
    return found


def _median_run(aurocs: np.ndarray) -> int:
    if np.isnan(aurocs).all():
        raise InputError("Every run failed: there is nothing to show.")
    return int(np.nanargmin(np.abs(aurocs - np.nanmedian(aurocs))))


def embed(result: experiment.Result, run: int) -> dict[str, list]:
    """Returns the t-SNE of the hidden layer: x, y and label of each node shown."""
    from sklearn.manifold import TSNE  # late: seconds of the start of others

    found = jax.tree.map(lambda x: x[run], evaluation.trained(result.states))
    hidden = result.task.predict(*found, result.graph).hidden
    nodes = np.arange(len(hidden))
    if len(nodes) > FLAGS.points:
        rng = np.random.default_rng(0)
        nodes = np.sort(rng.choice(nodes, FLAGS.points, replace=False))
    places = TSNE(random_state=0).fit_transform(np.asarray(hidden)[nodes])
    x, y = places.T.round(2).tolist()
    labels = np.asarray(result.splits.labels[run])[nodes]
    return {
        "x": x,
        "y": y,
        "label": labels.tolist(),
        "classes": result.module.num_classes,
    }


def follow(result: experiment.Result) -> dict[str, list]:
    """Returns mean entropies {kind: [S, T]} at steps [T], of the same runs again."""
    (recipe,) = result.settings
    schedule = recipes.schedule(result.definition, recipe)
    schedule = schedule._replace(max_steps=FLAGS.steps)
    definition, module = result.definition, result.module
    count = len(result.model_seeds)
    drawn = [jax.tree.map(lambda x, n=n: x[n], result.splits) for n in range(count)]
    seeds = experiment.keys(result.model_seeds.tolist())
    started = experiment.make_runs(definition, [recipe] * count, drawn, seeds)
    steps, found = dynamics.trace(
        result.task,
        result.graph,
        methods.prepare(definition, module, result.graph, started),
        schedule,
        dynamics.mean_entropies(module),
    )
    rounded = {kind: values.round(4).tolist() for kind, values in found.items()}
    return {"steps": steps.tolist(), **rounded}


def find(records: Sequence[Record], dataset: str) -> dict[str, dict[str, Record]]:
    """Returns method -> detector -> latest record."""
    found: dict[str, dict[str, Record]] = {}
    for record in records:
        if record["dataset"] == dataset:
            found.setdefault(record["method"], {})[record["detector"]] = record
    return found


def draw_figures(records: Sequence[Record]) -> dict[str, Figure]:
    """Draws a column of panels per method for each data set."""
    names = paper_results.in_order([record["dataset"] for record in records])
    return {name: _figure(find(records, name), name) for name in names}


def _figure(found: Mapping[str, Mapping[str, Record]], name: str) -> Figure:
    columns = [(m, d) for m, detectors in found.items() for d in (detectors,)]
    figure, axes = figures.panels(len(columns), 3)
    for column, (method, detectors) in enumerate(columns):
        whole = next(r for r in detectors.values() if "embedding" in r)
        last = list(detectors.values())[-1]
        _scatter(axes[0, column], whole["embedding"])
        axes[0, column].set_title(f"{method} on {name}: hidden layer, t-SNE")
        _scores(axes[1, column], last)
        _entropies(axes[2, column], whole["dynamics"])
    axes[1, 0].set_ylabel("test nodes")
    axes[2, 0].set_ylabel("mean entropy (nats)")
    low, high = zip(*(axis.get_ylim() for axis in axes[2]), strict=True)
    for axis in axes[2]:
        axis.set_ylim(min(low), max(high))
    return figure


def _scatter(axis: Axes, places: Mapping[str, Any]) -> None:
    """Draws each ID class with its own filled mark, OOD nodes as crosses behind."""
    x, y, label = (np.array(places[name]) for name in ("x", "y", "label"))
    classes = places["classes"]
    outside = label == classes
    axis.scatter(
        x[outside], y[outside], s=9, marker="x", linewidths=0.6, label="OOD",
        color=figures.KINDS["OOD"], alpha=0.6,
    )  # fmt: skip
    colors = [c for c in figures.COLORS if c != figures.KINDS["OOD"]]
    for number in range(classes):
        mine = label == number
        axis.scatter(
            x[mine], y[mine], s=7, marker=_MARKERS[number % len(_MARKERS)],
            linewidths=0, color=colors[number % len(colors)], label=f"ID {number}",
        )  # fmt: skip
    axis.set(xticks=[], yticks=[])
    axis.legend(markerscale=1.8, loc="best", handletextpad=0.1)


def _scores(axis: Axes, record: Record) -> None:
    figures.histograms(axis, record["histogram_edges"], record["histogram"])
    auroc = 100 * record["metrics"]["auroc"][record["shown_run"]]
    axis.set_xlabel(f"{record['detector']} score of a test node, AUROC {auroc:.1f}")
    axis.legend()


def _entropies(axis: Axes, followed: Mapping[str, Sequence]) -> None:
    for number, kind in enumerate(figures.KINDS):
        values = np.array(followed[kind], float)
        figures.band(axis, followed["steps"], values, number, kind)
    axis.set_xlabel("training step")
    axis.legend()


STUDY = Study(
    name="visualize",
    title="Side by side",
    about="What a graph network and OODGAT make of the same graph.",
    command="python -m experiments.visualize --out=experiments/records",
    trainings=every_training,
    figures=draw_figures,
    figure_caption="{}: hidden layer, scores of test nodes, mean entropy over training",
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
