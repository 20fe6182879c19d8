"""What is trained under the field's protocols: entries, protocols, ways to choose."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import optax

from oodgat_jax import experiment, splits
from oodgat_jax.methods import METHODS, Method, choosing, published, recipes
from oodgat_jax.splits import Shift
from oodgat_jax.types import Dataset, Hyper, Split

BY_VALIDATION, BY_UNLABELED = "validation nodes", "unlabeled nodes"
BY_TEST, LAST_STEP = "test nodes", "nothing: the last step"
# Class 1 of Pubmed's three is exposed, so that one known class would be left.
IMPOSSIBLE = {("gnnsafe", "pubmed", "label")}
OTHER_GRAPH = ("structure", "feature")  # shifts whose OOD nodes are in a second graph
# What others trained OODGAT with (GRASP's `ood_training`): twenty times the paper's
# weight decay, one threshold for all data sets, 200 steps.
AS_OTHERS_RAN_IT = (
    "weight_decay=0.01",
    "threshold=0.6",
    "max_steps=200",
    "check_every=1",
    "patience=200",
)
POST_HOC = (
    "MSP",
    "energy",
    "ODIN",
    "Mahalanobis",
    "kNN",
    "GNNSafe_coded",
    "GNNSafe",
    "GRASP_coded",
    "GRASP",
    "GEBM",
    "Dirichlet",
    "similarity",
)


class Entry(NamedTuple):
    """One training: a method, on the graph learned from or with the exposed one."""

    name: str  # in records
    method: str  # a key of METHODS
    detectors: tuple[str, ...] = ()  # if they are not the method's own
    exposed: bool = False  # whether it is trained where exposed nodes are
    settings: tuple[str, ...] = ()  # over the recipe
    chosen_by: str = BY_VALIDATION
    shifts: tuple[str, ...] = splits.SHIFTS
    oracle: str = ""  # detector of the step that is chosen on test nodes, if it is


ENTRIES = (
    Entry("gcn-bn", "gcn-bn", POST_HOC, oracle="GNNSafe_coded"),
    Entry(
        "gcn-bn-seen",
        "gcn-bn",
        ("energy", "GNNSafe_coded"),
        exposed=True,
        shifts=OTHER_GRAPH,
    ),
    Entry("oe", "oe", exposed=True),
    Entry("energy-ft", "energy-ft", exposed=True),
    Entry("gnnsafe++", "gnnsafe++", exposed=True, oracle="GNNSafe_coded"),
    Entry("nodesafe", "nodesafe", oracle="GNNSafe_coded"),
    Entry("nodesafe++", "nodesafe++", exposed=True),
    Entry("mc-dropout", "mc-dropout", ("energy", "GNNSafe_coded", "total")),
    Entry("gpn", "gpn"),
    Entry("oodgat", "oodgat", ("ATT", "ENT"), oracle="ATT"),
    Entry(
        "oodgat-unlabeled",
        "oodgat",
        ("ATT", "ENT"),
        chosen_by=BY_UNLABELED,
        shifts=("label",),
    ),
    Entry(
        "oodgat-decayed",
        "oodgat",
        ("ATT", "ENT"),
        settings=AS_OTHERS_RAN_IT,
        oracle="ATT",
    ),
    Entry("oodgat-plus", "oodgat-plus", chosen_by=LAST_STEP),
)
ENSEMBLE = "ensemble"  # of the runs of gcn-bn, where they share a split
ENSEMBLED = ("energy", "GNNSafe_coded")  # its detectors


def adamw(hyper: Hyper) -> optax.GradientTransformation:
    """Returns AdamW, whose weight decay GRASP's GCN is trained with."""
    return optax.chain(
        optax.scale_by_adam(),
        optax.add_decayed_weights(hyper["weight_decay"]),
        optax.scale_by_learning_rate(hyper["lr"]),
    )


class Protocol(NamedTuple):
    """How a data set is shifted, and how many splits and seeds are usual."""

    shift: Callable[[Dataset, str], Shift]
    shifts: tuple[str, ...]
    split_seeds: Callable[[int], list[int]]  # of that many runs
    model_seeds: Callable[[int], list[int]]
    has_exposure: bool
    datasets: tuple[str, ...]  # of the table
    adapt: Callable[[Method], Method] = lambda method: method  # the plain GCN


_SIX = (
    "cora",
    "citeseer",
    "pubmed",
    "amazon-photo",
    "amazon-computers",
    "coauthor-cs",
)


def _numbered(runs: int) -> list[int]:
    return list(range(1, runs + 1))


def _as_grasp_trains(method: Method) -> Method:
    """Returns the plain GCN with AdamW and the step by validation accuracy."""
    if method.backbone != "gcn-bn" or method.regularizers:
        return method
    return method._replace(optimizer=adamw, customize=choosing.by_validation_accuracy)


PROTOCOLS = {
    "gnnsafe": Protocol(
        splits.under_gnnsafe,
        splits.SHIFTS,
        lambda runs: [123],
        lambda runs: list(range(runs)),
        True,
        _SIX,
    ),
    "grasp": Protocol(
        lambda dataset, shift: splits.under_grasp(dataset),
        ("label",),
        _numbered,
        lambda runs: [0],
        False,
        ("cora", "amazon-photo", "coauthor-cs"),
        _as_grasp_trains,
    ),
    "gpn": Protocol(
        lambda dataset, shift: splits.under_gpn(dataset),
        ("label",),
        _numbered,
        lambda runs: [0],
        False,
        ("cora", "amazon-photo", "coauthor-cs"),
    ),
}


class Cell(NamedTuple):
    """One training of the table."""

    protocol: str
    dataset: str
    shift: str
    entry: Entry
    chosen_by: str


def definition(cell: Cell) -> Method:
    """Returns the method of a cell, its step chosen as the cell says."""
    entry, method = cell.entry, METHODS[cell.entry.method]
    if entry.detectors:
        method = method._replace(detectors=entry.detectors)
    if cell.chosen_by == BY_VALIDATION:
        by_loss = method._replace(customize=_by_loss(method))
        return PROTOCOLS[cell.protocol].adapt(by_loss)
    if cell.chosen_by in (BY_UNLABELED, LAST_STEP):
        return method
    if cell.protocol == "grasp":
        return method._replace(customize=choosing.by_validation_accuracy)
    detectors = (entry.oracle,)
    return method._replace(
        customize=None, validated_by=entry.oracle, detectors=detectors
    )


def has_ensemble(cell: Cell, model_seeds: list[int]) -> bool:
    """Returns whether the runs of a cell make an ensemble too."""
    several = len(model_seeds) > 1 and cell.chosen_by == BY_VALIDATION
    return several and cell.entry.name == "gcn-bn"


def _by_loss(method: Method) -> Any:
    """Returns a method's own changes of its task, or the rule where it has none."""
    return method.customize or choosing.by_validation_loss


def recipe(cell: Cell, settings: tuple[str, ...] = ()) -> recipes.Recipe:
    """Returns the published settings of a cell's method, with others put in."""
    found = recipes.recipe(cell.dataset, definition(cell))
    known = published.published(cell.entry.method, cell.dataset, cell.shift)
    chosen = [f"{name}={value}" for name, value in known.items()]
    return recipes.override(found, [*chosen, *cell.entry.settings, *settings])


def draw_for(cell: Cell, draw: Callable[[Dataset, int], Split]) -> Any:
    """Returns how splits for training are drawn, by how the step is chosen."""
    if cell.chosen_by == BY_TEST:
        return lambda data, seed: _seeing_test(draw(data, seed))
    if cell.chosen_by == BY_UNLABELED:
        return lambda data, seed: _without_labels(draw(data, seed))
    return draw


def _seeing_test(split: Split) -> Split:
    """Returns the split whose test nodes choose the step."""
    return split._replace(val=split.test)


def _without_labels(split: Split) -> Split:
    """Returns the split as who has no labels but the known nodes' sees it: unlabeled
    nodes stand for unknown ones, as in the classifier."""
    labels = np.asarray(split.labels)
    labeled = np.asarray(split.train) | np.asarray(split.val)
    unlabeled = ~labeled & ~np.asarray(split.exposure)
    known = labels[np.asarray(split.train)].max() + 1
    return split._replace(
        labels=np.where(labeled, labels, known).astype(np.int32),
        is_ood=~labeled,
        val=split.val | unlabeled,
        test=np.zeros_like(labeled),
    )


def cells(
    protocol: str,
    dataset: str,
    shifts: tuple[str, ...],
    entries: tuple[Entry, ...],
    ways: tuple[str, ...],
) -> list[Cell]:
    """Returns the trainings of a data set, those chosen on test nodes last.

    Shifts of one entry follow each other: they may share what they learn from.
    """
    known = PROTOCOLS[protocol]
    possible = [
        (entry, shift)
        for entry in entries
        for shift in shifts
        if (protocol, dataset, shift) not in IMPOSSIBLE
        and shift in entry.shifts
        and (known.has_exposure or not entry.exposed)
    ]
    found = []
    if "validation" in ways:
        found += [Cell(protocol, dataset, s, e, e.chosen_by) for e, s in possible]
    if "test" in ways:  # on a second graph nothing can be chosen in training
        found += [
            Cell(protocol, dataset, shift, entry, BY_TEST)
            for entry, shift in possible
            if entry.oracle and shift == "label"
        ]
    return found


def learned(cell: Cell) -> Cell:
    """Returns what decides the training of a cell, besides its recipe and seeds."""
    other = cell.shift in OTHER_GRAPH and not cell.entry.exposed
    return cell._replace(shift=" or ".join(OTHER_GRAPH)) if other else cell


@functools.lru_cache(maxsize=3)
def shifted(protocol: str, dataset: Any, shift: str, load: Callable) -> Shift:
    """Returns the data set under a protocol; those of one data set are remembered."""
    return PROTOCOLS[protocol].shift(load(dataset), shift)


def scored(cell: Cell, shift: Shift) -> experiment.Scored | None:
    """Returns the second graph to score, and how its true splits are drawn."""
    same = shift.scored is (shift.exposed if cell.entry.exposed else shift.learned)
    if same and cell.chosen_by in (BY_VALIDATION, LAST_STEP):
        return None
    return experiment.Scored(shift.scored, shift.draw)
