"""Draws how results change with one hyper-parameter at a time: four curves.

  python -m experiments.sensitivity
  python -m experiments.sensitivity --dataset=digits --values=consistency=0,1,2,4
  python -m experiments.sensitivity --from_records --out=experiments/records

Every value of a curve is a run of the same compiled program, with all splits and seeds.
--values takes any hyper-parameter that is a float, as often as wanted. Writes to --out:

  sensitivity.jsonl                      one line appended per (setting, detector)
  sensitivity.md, .tex                   the numbers
  sensitivity-DATASET-METHOD.pdf, .png   the curves

What is recorded there, or with these seeds or more in the main table's
`end_to_end.jsonl` in the same folder, is not trained again. By default a curve has five
points of nine runs; Amazon-Computers takes about five hours on two cores, an hour and a
half with --seeds=1.
"""

import functools
from collections.abc import Mapping, Sequence

import numpy as np
from absl import flags
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import ablation, tune
from experiments.support import figures, study, study_flags, trainings
from experiments.support.notes import counted
from experiments.support.study import Study
from experiments.support.trainings import Training
from oodgat_jax import tables
from oodgat_jax.cli import app
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import Record, kept_metrics
from oodgat_jax.registry import check_names

FLAGS = flags.FLAGS
PAPER = ("amazon-computers",)
SHARED = (*study_flags.TRAINING, "method")
VALUES: Mapping[str, tuple[float, ...]] = {
    "consistency": (0.0, 0.5, 1.0, 2.0, 4.0),
    "entropy": (0.0, 0.01, 0.05, 0.1, 0.3),
    "discrepancy": (0.0, 0.001, 0.005, 0.02, 0.1),
    "threshold": (0.0, 0.2, 0.4, 0.6, 0.8),
}
OWN: app.Definitions = {
    **study_flags.one_dataset(*PAPER),
    "values": (
        flags.DEFINE_multi_string,
        [],
        "name=value,value,... for one curve, instead of the paper's four.",
        {},
    ),
}
SYMBOLS = {
    "consistency": r"$\beta$",
    "entropy": r"$\gamma$",
    "discrepancy": r"$\zeta$",
    "threshold": r"$\epsilon$",
}
METRICS = ablation.METRICS
NOTE = (
    "Percent, mean ± standard deviation over {runs}; all other hyper-parameters "
    "are those of the main table."
)


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> list[Training]:
    """Returns one training per curve, its values one more axis of the runs."""
    (name,) = study_flags.dataset_names(FLAGS.dataset, PAPER, FLAGS.data_dir)
    method, recipe = FLAGS.method, trainings.recipe(name, FLAGS.method)
    curves = tune.parse_grid(FLAGS.values, recipe) if FLAGS.values else VALUES
    known = recipes.floats(recipe, METHODS[method])
    check_names(f"float hyper-parameter of {method}", list(curves), known)
    load = functools.partial(trainings.loader(), name)
    return [
        trainings.of_method(
            f"{method} on {name}, {each}",
            name,
            load,
            method,
            recipe,
            keys={"base": recipe},
            hypers=[{each: value} for value in values],
            unchanged=True,
        )
        for each, values in curves.items()
    ]


def curves(
    records: Sequence[Record], dataset: str, method: str
) -> dict[str, dict[str, list[Record]]]:
    """Returns hyper-parameter -> detector -> records by value, of the latest base."""
    mine = [r for r in records if (r["dataset"], r["method"]) == (dataset, method)]
    mine = [r for r in mine if r["base"] == mine[-1]["base"]]
    varied = dict.fromkeys(name for record in mine for name in _changed(record))
    return {name: _points(mine, name) for name in varied}


def _changed(record: Record) -> list[str]:
    """Returns the hyper-parameters that are not the base's; none for the base."""
    setting = record["hyperparameters"]
    return [name for name, value in record["base"].items() if setting[name] != value]


def _points(records: Sequence[Record], name: str) -> dict[str, list[Record]]:
    """Returns detector -> latest record of each value, rising; the base is one.

    All have the splits and seeds of the latest.
    """
    found: dict[str, dict[float, Record]] = {}
    last = next(r for r in reversed(records) if _changed(r) == [name])
    for record in records:
        same = all(record[key] == last[key] for key in ("split_seeds", "model_seeds"))
        if same and _changed(record) in ([], [name]):
            points = found.setdefault(record["detector"], {})
            points[record["hyperparameters"][name]] = record
    return {d: [p[value] for value in sorted(p)] for d, p in found.items()}


def shown(records: Sequence[Record]) -> list[Record]:
    """Returns the records of the points of all curves."""
    found = [curves(records, *pair) for pair in ablation.known(records)]
    return [
        record
        for curve in found
        for detectors in curve.values()
        for points in detectors.values()
        for record in points
    ]


def draw(records: Sequence[Record]) -> tables.Table:
    """Draws a row per value of each curve and detector."""
    rows = []
    for pair in ablation.known(records):
        for name, detectors in curves(records, *pair).items():
            for detector, points in detectors.items():
                rows += [[*pair, detector, name, *_cells(r, name)] for r in points]
    header = ["Data set", "Method", "Score", "Hyper-parameter", "Value"]
    return tables.Table([*header, *METRICS.values()], rows)


def draw_figures(records: Sequence[Record]) -> dict[str, Figure]:
    """Draws a panel per hyper-parameter for each `DATASET-METHOD`."""
    drawn = {}
    for pair in ablation.known(records):
        found = curves(records, *pair)
        columns = min(2, len(found))
        figure, axes = figures.panels(columns, -(-len(found) // columns), sharey=True)
        for axis, (name, detectors) in zip(axes.flat, found.items(), strict=False):
            _panel(axis, name, detectors)
        for axis in axes.flat[len(found) :]:
            axis.set_visible(False)
        for axis in axes[:, 0]:
            axis.set_ylabel("percent")
        axes[0, 0].legend()
        figure.suptitle(", ".join(pair))
        drawn["-".join(pair)] = figure
    return drawn


def _cells(record: Record, name: str) -> list[tables.Cell | str]:
    kept = kept_metrics(record)
    value = f"{record['hyperparameters'][name]:g}"
    return [value, *(tables.result(kept[metric]) for metric in METRICS)]


def _panel(axis: Axes, name: str, detectors: Mapping[str, Sequence[Record]]) -> None:
    """Draws lines over evenly spaced values, which grow by factors and begin at 0."""
    detector = "ATT" if "ATT" in detectors else next(iter(detectors))
    points = detectors[detector]
    values = [record["hyperparameters"][name] for record in points]
    for number, (metric, title) in enumerate(METRICS.items()):
        each = np.array([record["metrics"][metric] for record in points], float).T
        label = title if metric == "accuracy" else f"{title}, {detector}"
        figures.band(axis, range(len(values)), 100 * each, number, label)
    axis.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    base = points[0]["base"][name]
    if base in values:
        axis.axvline(values.index(base), color="0.7", linewidth=0.8, zorder=0)
    symbol = f"{SYMBOLS[name]}, " if name in SYMBOLS else ""
    axis.set_xlabel(f"{symbol}{name} (gray: main table)")


STUDY = Study(
    name="sensitivity",
    title="Sensitivity",
    about="OODGAT over each of its hyper-parameters, the others held.",
    command="python -m experiments.sensitivity --out=experiments/records",
    trainings=every_training,
    tables=study.single(draw),
    figures=draw_figures,
    note=counted(NOTE, shown),
    caption="Points of the curves",
    figure_caption="{}: over one hyper-parameter at a time",
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
