"""Measures whether groups of unknown nodes are classes, and what labeling next gains.

  python -m experiments.unknown_groups --datasets=digits,cora
  python -m experiments.unknown_groups --from_records --out=experiments/records

OODGATClassifier gets the labels of each split's train nodes. Nodes of hidden classes
are grouped as a page of `classifier.report` shows them, and compared with the classes
that were hidden by the adjusted Rand index: once the nodes that truly are unknown, once
those that are called unknown. Then --rounds times --labels_each nodes are labeled,
those that `classifier.review` suggests or random ones, and the model is fitted again; a
hidden class is known from its second label on. Test nodes are never labeled. Writes to
the folder --out:

  unknown_groups.jsonl                   one line appended per data set, one value per
                                         split
  unknown_groups.md, unknown_groups.tex  the table

What is recorded there with the same settings is not trained again.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import jax
import numpy as np
from absl import flags
from sklearn.metrics import adjusted_rand_score, f1_score, roc_auc_score

from experiments.support import paper_results, study
from experiments.support.study import Study
from experiments.support.trainings import Keys, Training
from oodgat_jax import datasets, experiment, report, splits, tables
from oodgat_jax.cli import app, progress
from oodgat_jax.estimator import OODGATClassifier
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import Record, made_by
from oodgat_jax.report import groups, review
from oodgat_jax.types import Dataset, Split

FLAGS = flags.FLAGS
COUNT = {"lower_bound": 1}
SHARED = (
    *("datasets", "method", "splits", "seeds", "out", "set", "data_dir"),
    "from_records",
)
OWN: app.Definitions = {
    "rounds": (flags.DEFINE_integer, 10, "Times that nodes are labeled.", COUNT),
    "labels_each": (flags.DEFINE_integer, 5, "Nodes to label each time.", COUNT),
}
STAGES = ("start", "random", "next")
COLUMNS = {
    "ari_unknown": "ARI, unknown",
    "ari_called": "ARI, called",
    **{f"named_{stage}": f"named, {stage}" for stage in STAGES},
    **{f"f1_{stage}": f"F1, {stage}" for stage in STAGES},
    **{f"auroc_{stage}": f"AUROC, {stage}" for stage in STAGES},
}
NOTE = (
    "Percent, {over}, {members} members each of at most {steps} steps. ARI: adjusted "
    "Rand index of the groups against the classes, of nodes of hidden classes and of "
    "nodes called unknown; 0 is chance, 100 is perfect. Then {rounds} times {each} "
    "nodes are labeled, random ones or those suggested (next). Named: test nodes whose "
    "class is found, also the hidden ones. F1 is the joint one, and AUROC that of the "
    "scores, where classes without labels are unknown; none where no class is. Hidden "
    "classes found: {found}."
)


class Measured(NamedTuple):
    """A fitted model's worth on the test nodes."""

    named: float
    f1: float
    auroc: float  # NaN where every class has labels


class Labels(NamedTuple):
    """Who is labeled, and by whom the model may be judged."""

    truth: np.ndarray  # [N] class numbers
    labeled: np.ndarray  # [N] bool
    pool: np.ndarray  # [N] bool, who may be labeled next

    def given(self) -> np.ndarray:
        """Returns labels [N], -1 for none; a class with a single label waits."""
        counts = np.bincount(self.truth[self.labeled], minlength=self.truth.max() + 1)
        return np.where(self.labeled & (counts[self.truth] > 1), self.truth, -1)

    def add(self, nodes: Sequence[int] | np.ndarray) -> "Labels":
        """Returns the same with these nodes labeled."""
        labeled, pool = self.labeled.copy(), self.pool.copy()
        labeled[nodes], pool[nodes] = True, False
        return self._replace(labeled=labeled, pool=pool)


Fit = Callable[[np.ndarray], OODGATClassifier]


def main() -> int | None:
    """Trains what is missing, then draws."""
    return study.run(STUDY)


def every_training() -> list[Training]:
    """Returns one training per data set."""
    return [_training(name, FLAGS.method) for name in FLAGS.datasets]


def _training(name: str, method: str) -> Training:
    recipe = recipes.override(recipes.recipe(name, method), FLAGS.set)
    keys = {
        "dataset": name,
        "method": method,
        "members": FLAGS.seeds,
        "rounds": FLAGS.rounds,
        "labels_each": FLAGS.labels_each,
        "split_seeds": list(experiment.split_seeds(FLAGS.splits)),
        "hyperparameters": recipe,
    }

    def run(missing: Sequence[Keys]) -> Iterable[list[Record]]:
        dataset = datasets.load(name, FLAGS.data_dir)
        yield [measure(dataset, method, recipe, keys)]

    return Training(name, [keys], run)


def measure(
    dataset: Dataset, method: str, recipe: recipes.Recipe, keys: Keys
) -> Record:
    """Trains and returns one record, with a value per split."""
    seeds = keys["split_seeds"]
    drawn = [splits.draw(dataset, seed) for seed in seeds]
    began = time.perf_counter()
    found, curves = [], []
    for number, split in enumerate(drawn, start=1):
        title = f"{method} on {dataset.name}, split {number} of {len(seeds)}"
        with progress.Line(title) as line:
            fit = _fitter(dataset, method, recipe, keys["members"], line)
            values, curve = _one(dataset, split, fit, keys)
        found.append(values)
        curves.append(curve)
    return {
        **keys,
        "detector": METHODS[method].validated_by,
        "metrics": {name: [values[name] for values in found] for name in found[0]},
        "named_by_round": curves,
        "model_seeds": [0] * len(seeds),
        "steps_run": [recipe["max_steps"]] * len(seeds),
        "split_digest": splits.digest(splits.stack(drawn)),
        **made_by(),
        "devices": [device.device_kind for device in jax.local_devices()],
        "seconds": round(time.perf_counter() - began, 3),
    }


def _fitter(dataset: Dataset, method, recipe, members, line) -> Fit:
    edges = np.stack([dataset.senders, dataset.receivers], 1)

    def fit(labels: np.ndarray) -> OODGATClassifier:
        model = OODGATClassifier(
            method, members=members, settings=recipe, directed=True
        )
        return model.fit(dataset.features, edges, labels, progress=line)

    return fit


def _one(
    dataset: Dataset, split: Split, fit: Fit, keys: Keys
) -> tuple[dict[str, float], list[float]]:
    """Returns the values of one split, and the nodes named after each round."""
    test = np.asarray(split.test)
    labeled = np.asarray(split.train)
    has_class = dataset.labels >= 0
    pool = has_class & ~labeled & ~test
    start = Labels(np.where(has_class, dataset.labels, 0), labeled, pool)
    model = fit(start.given())
    values = _agreement(model, dataset, split)
    stages = {"start": (model, start)}
    curve = [_measure(model, start, test).named]
    labels = start
    for _ in range(keys["rounds"]):
        labels = labels.add(_suggested(model, labels, keys["labels_each"]))
        model = fit(labels.given())
        curve.append(_measure(model, labels, test).named)
    stages["next"] = (model, labels)
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(start.pool))
    labels = start.add(drawn[: keys["rounds"] * keys["labels_each"]])
    stages["random"] = (fit(labels.given()), labels)
    hidden = sorted(set(dataset.labels[has_class].tolist()) - set(dataset.id_classes))
    for stage, (model, labels) in stages.items():
        measured = _measure(model, labels, test)
        values |= {f"{name}_{stage}": v for name, v in measured._asdict().items()}
        seen = set(labels.given().tolist())
        values[f"found_{stage}"] = float(np.mean([name in seen for name in hidden]))
    return values | {"hidden": float(len(hidden))}, curve


def _agreement(
    model: OODGATClassifier, dataset: Dataset, split: Split
) -> dict[str, float]:
    """Returns the adjusted Rand index of groups against classes."""
    found = model.findings()
    unknown = np.flatnonzero(np.asarray(split.is_ood) & found.unlabeled)
    called, grouped = found.unknown, report.find_groups(found)
    clusters, _ = groups.cluster(grouped.space[unknown])
    return {
        "ari_unknown": float(adjusted_rand_score(dataset.labels[unknown], clusters)),
        "ari_called": float(
            adjusted_rand_score(dataset.labels[called], grouped.of_node[called])
        )
        if called.any()
        else 0.0,
    }


def _suggested(model: OODGATClassifier, labels: Labels, count: int) -> list[int]:
    """Returns the first suggestions that may be labeled, and are not yet."""
    found = model.findings()
    everyone = int(found.unlabeled.sum())
    picked = review.picks(found, report.find_groups(found), everyone)
    return [pick.node for pick in picked if labels.pool[pick.node]][:count]


def _measure(model: OODGATClassifier, labels: Labels, test: np.ndarray) -> Measured:
    known = np.isin(labels.truth, np.unique(labels.given()))[test]
    truth, predicted = labels.truth[test], model.predict()[test]
    score, both = model.ood_score()[test], known.any() and not known.all()
    return Measured(
        named=float((predicted == truth).mean()),
        f1=float(f1_score(np.where(known, truth, -1), predicted, average="weighted")),
        auroc=float(roc_auc_score(~known, score)) if both else float("nan"),
    )


def draw(records: Sequence[Record]) -> tables.Table:
    """Draws a row per data set."""
    rows, found = [], {record["dataset"]: record for record in records}
    for dataset in paper_results.in_order(found):
        values = found[dataset]["metrics"]
        rows.append([dataset, *(_cell(values[name]) for name in COLUMNS)])
    return tables.Table(["Data set", *COLUMNS.values()], rows)


def note(records: Sequence[Record]) -> str:
    """Returns the note below the table."""
    record, found = records[-1], {each["dataset"]: each for each in records}
    splits_run = len(record["split_seeds"])
    hidden = [_hidden(name, each["metrics"]) for name, each in found.items()]
    return NOTE.format(
        over="one split"
        if splits_run == 1
        else f"mean ± standard deviation over {splits_run} splits",
        members=record["members"],
        steps=record["hyperparameters"]["max_steps"],
        rounds=record["rounds"],
        each=record["labels_each"],
        found="; ".join(hidden),
    )


def _hidden(name: str, values: dict[str, list[float]]) -> str:
    """Returns how many of the hidden classes were found on a data set, in words."""
    count = values["hidden"][0]
    random, suggested = (
        count * float(np.mean(values[f"found_{stage}"])) for stage in STAGES[1:]
    )
    return f"{name}, {random:.1f} of {count:.0f} by random labels, {suggested:.1f} next"


def _cell(values: Sequence[float]) -> tables.Cell | str:
    whole = [value for value in values if not np.isnan(value)]
    if len(values) == 1 and whole:
        return f"{100 * whole[0]:.1f}"
    return tables.result(whole) if whole else "none"


STUDY = Study(
    name="unknown_groups",
    title="Groups of unknown nodes, and what to label next",
    about="Whether groups of unknown nodes are the classes that were hidden, and what "
    "the nodes that `OODGATClassifier.review` suggests gain over random ones.",
    command="python -m experiments.unknown_groups --out=experiments/records \\\n"
    "    --datasets=digits,cora,amazon-photo,coauthor-cs --method=oodgat-plus \\\n"
    "    --splits=1 --seeds=2 --set=max_steps=121",
    trainings=every_training,
    tables=study.single(draw),
    note=note,
    caption="Groups and labels",
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
