"""Draws histograms of the scores of ID and OOD test nodes, from a saved run.

  python -m experiments.detect
  python -m experiments.histogram --arrays=results/digits-oodgat.npz

One panel per detector. Takes about two seconds.
"""

import pathlib
import zipfile

import jax
import numpy as np
from absl import flags
from matplotlib.axes import Axes

from experiments.support import figures
from oodgat_jax import metrics
from oodgat_jax.cli import app
from oodgat_jax.types import InputError

PREFIX = "scores_"
BINS = 40

FLAGS = flags.FLAGS
OWN: app.Definitions = {
    "arrays": (
        flags.DEFINE_string,
        "results/digits-oodgat.npz",
        "What experiments.detect has written.",
        {},
    ),
    "run": (
        flags.DEFINE_integer,
        0,
        "Number of the run to show.",
        {"lower_bound": 0},
    ),
    "figure": (flags.DEFINE_string, "results/scores.png", "File to write.", {}),
}


def main() -> None:
    """Reads, draws, writes."""
    path, figure = pathlib.Path(FLAGS.arrays), pathlib.Path(FLAGS.figure)
    app.out_folder(str(figure.parent))
    draw(read(path, FLAGS.run), path.stem, figure)
    print(f"Written: {figure}")


def read(path: pathlib.Path, run: int) -> dict[str, np.ndarray]:
    """Returns is_ood and the scores of each detector, of one run's test nodes."""
    if not path.is_file():
        raise InputError(f"There is no file {path}: run python -m experiments.detect.")
    try:
        with np.load(path) as file:
            arrays = dict(file)
        tests, is_ood = arrays["test"], arrays["is_ood"]
    except (EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} was not written by experiments.detect.") from error
    if run >= len(tests):
        raise InputError(f"{path} has {len(tests)} runs, counted from 0: choose --run.")
    names = [name for name in arrays if name.startswith(PREFIX)]
    scores = {name: arrays[name][run][tests[run]] for name in names}
    return {"is_ood": is_ood[tests[run]], **scores}


def draw(test: dict[str, np.ndarray], title: str, path: pathlib.Path) -> None:
    """Draws histograms of every detector's scores, ID and OOD apart."""
    names = [name for name in test if name.startswith(PREFIX)]
    figure, axes = figures.panels(len(names))
    for axis, name in zip(axes[0], names, strict=True):
        _panel(axis, test[name], test["is_ood"])
        axis.set_title(f"{title}, {name.removeprefix(PREFIX)}")
    axes[0, 0].set_ylabel("test nodes")
    figure.savefig(path, dpi=figures.DPI, metadata={"Software": None})


def count(
    scores: np.ndarray, is_ood: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Returns the edges of the bins, and how many ID and OOD nodes are in each."""
    edges = np.linspace(scores.min(), scores.max(), BINS + 1)
    kinds = {"ID": ~is_ood, "OOD": is_ood}
    return edges, {k: np.histogram(scores[mask], edges)[0] for k, mask in kinds.items()}


def _panel(axis: Axes, scores: np.ndarray, is_ood: np.ndarray) -> None:
    figures.histograms(axis, *count(scores, is_ood))
    auroc = jax.jit(metrics.auroc)(scores, is_ood, np.ones_like(is_ood))
    axis.set_xlabel(f"score (higher = more OOD), AUROC {100 * auroc:.1f}")
    axis.legend()


if __name__ == "__main__":
    app.run(main, own=OWN)
