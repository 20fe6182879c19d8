"""OODGAT beside GKDE under GKDE's protocol, on the public Planetoid splits.

  python -m experiments.gkde --datasets=cora
  python -m experiments.gkde --out=results
  python -m experiments.gkde --from_records --out=experiments/records

ID classes are those of GKDE's code: Cora 0-3, Citeseer 0-2, Pubmed 0-1 (the paper's
appendix prints them as OOD classes). Labelled are the public train nodes of these. A
result is the mean over ten random draws of 1,000 nodes after the public train nodes.
There are --splits evaluation seeds, each with --seeds initialisations of its own.
Writes to the folder --out:

  gkde.jsonl           one line appended per (data set, method, detector)
  gkde.md, gkde.tex    the table of all data sets recorded there

Runs that are recorded there with the same settings are not trained again. The default,
nine runs of both methods on three data sets, takes about half an hour on two cores.
Exit code 2: the input was wrong; 1: every run failed.
"""

import itertools
import pathlib
import sys
from collections.abc import Sequence

import jax
import numpy as np
from absl import flags

from experiments.support import gkde_table
from oodgat_jax import datasets, experiment, metrics, splits, tables
from oodgat_jax.cli import app, progress
from oodgat_jax.methods import recipes
from oodgat_jax.records import Record, append_records, latest, read_records
from oodgat_jax.registry import check_names
from oodgat_jax.types import Array, Dataset, Split

FLAGS = flags.FLAGS
METHODS = ("gkde", "oodgat")
SHARED = ("splits", "seeds", "set", "out", "data_dir", "kernel", "from_records")
OWN: app.Definitions = {
    "datasets": (
        flags.DEFINE_list,
        list(splits.CITATION_ID_CLASSES),
        f"Of {', '.join(splits.CITATION_ID_CLASSES)}.",
        {},
    ),
    "methods": (flags.DEFINE_list, list(METHODS), f"Of {', '.join(METHODS)}.", {}),
}
FILE = "gkde.jsonl"


def main() -> int | None:
    """Checks all input, trains what is missing, draws."""
    folder = app.out_folder(FLAGS.out)
    log = folder / FILE
    known = read_records(log) if log.exists() or FLAGS.from_records else []
    chosen = plan(FLAGS.datasets, FLAGS.methods, FLAGS.set)
    work = [] if FLAGS.from_records else chosen
    failed = [_run(log, known, *each) for each in work]
    records = read_records(log)
    names = gkde_table.known(records) if FLAGS.from_records else FLAGS.datasets
    print(tables.as_text(gkde_table.draw(records, names)))
    print(gkde_table.note(records))
    table = gkde_table.draw(records, gkde_table.known(records))
    paths = tables.write(folder, "gkde", table, gkde_table.note(records))
    for path in (log, *paths):
        print(f"Written: {path}")
    return 1 if failed and all(failed) else None


def plan(
    names: Sequence[str], methods: Sequence[str], settings: Sequence[str]
) -> list[tuple[str, str, recipes.Recipe]]:
    """Data set, method and recipe of each training; a setting goes where it is known.

    Raises:
      InputError: a name is unknown, or a setting is one to no method.
    """
    check_names("data set", names, splits.CITATION_ID_CLASSES)
    check_names("method", methods, METHODS)
    pairs = list(itertools.product(names, methods))
    chosen = [recipes.recipe(*pair, citation=True) for pair in pairs]
    chosen = recipes.override_known(chosen, settings)
    return [(*pair, recipe) for pair, recipe in zip(pairs, chosen, strict=True)]


def seeds(evaluations: int, initialisations: int) -> tuple[list[int], list[int]]:
    """Evaluation seed and model seed of every run; no model seed serves twice."""
    drawn = np.repeat(experiment.split_seeds(evaluations), initialisations)
    return drawn.tolist(), list(range(len(drawn)))


def train(
    dataset: Dataset,
    method: str,
    recipe: recipes.Recipe,
    evaluation_seeds: Sequence[int],
    model_seeds: Sequence[int],
    **options,
) -> experiment.Result:
    """The runs of a method, trained on the one split and measured by their draws."""
    split = splits.draw_citation(dataset)
    found = splits.CITATION_ID_CLASSES.get(dataset.name, dataset.id_classes)
    outcome = experiment.execute(
        dataset._replace(id_classes=found),
        method,
        recipe,
        evaluation_seeds[:1],
        model_seeds,
        draw=lambda dataset, seed: split,
        **options,
    )
    measured = {
        name: measure(scores, split, evaluation_seeds)
        for name, scores in outcome.scores.items()
    }
    measured = experiment.without_failed(measured, outcome.states)
    return outcome._replace(split_seeds=np.array(evaluation_seeds), metrics=measured)


def measure(
    scores: np.ndarray, split: Split, evaluation_seeds: Sequence[int]
) -> dict[str, np.ndarray]:
    """AUROC and AUPR of runs [S, N], each the mean over its draws: metric -> [S].

    Those called `_unseen` are from nodes that validation did not see.
    """
    pools = {"": split.test, "_unseen": split.test & ~split.val}
    found = {}
    for suffix, pool in pools.items():
        draws = [splits.evaluation_draws(pool, seed) for seed in evaluation_seeds]
        each = [
            _mean_over_draws(*run, split.is_ood)
            for run in zip(scores, draws, strict=True)
        ]
        auroc, aupr = np.array(jax.device_get(each)).T
        found |= {f"auroc{suffix}": auroc, f"aupr{suffix}": aupr}
    return found


@jax.jit
def _mean_over_draws(scores: Array, draws: Array, is_ood: Array) -> tuple[Array, Array]:
    def one(mask: Array) -> tuple[Array, Array]:
        return metrics.auroc(scores, is_ood, mask), metrics.aupr(scores, is_ood, mask)

    auroc, aupr = jax.lax.map(one, draws)
    return auroc.mean(), aupr.mean()


def _run(
    log: pathlib.Path,
    known: Sequence[Record],
    name: str,
    method: str,
    recipe: recipes.Recipe,
) -> bool:
    """Trains and records a method on a data set; says whether every run failed."""
    numbers = seeds(FLAGS.splits, FLAGS.seeds)
    if recorded(known, name, method, recipe, *numbers):
        print(f"{method} on {name} is recorded already.", file=sys.stderr)
        return False
    dataset = datasets.load(name, FLAGS.data_dir)
    with progress.Line(f"{method} on {name}") as line:
        outcome = train(
            dataset, method, recipe, *numbers, kernel=FLAGS.kernel, progress=line
        )
    for sentence in experiment.failures(outcome):
        print(sentence, file=sys.stderr)
    marked = [
        record | {"protocol": "citation"} for record in experiment.records(outcome)
    ]
    append_records(log, *marked)
    return len(outcome.failed) == len(outcome.setting)


def recorded(
    known: Sequence[Record],
    name: str,
    method: str,
    recipe: recipes.Recipe,
    evaluation_seeds: Sequence[int],
    model_seeds: Sequence[int],
) -> bool:
    """Whether these very runs are in the records, with every row of the table."""
    wanted = {
        "dataset": name,
        "method": method,
        "hyperparameters": recipe,
        "split_seeds": list(evaluation_seeds),
        "model_seeds": list(model_seeds),
    }
    rows = [row.detector for row in gkde_table.ROWS if row.method == method]
    return all(latest(known, detector=d, **wanted) for d in rows)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
