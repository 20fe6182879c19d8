"""GKDE's protocol on the public Planetoid splits."""

from collections.abc import Sequence

import numpy as np

from oodgat_jax.splits.assembly import (
    enough,
    expose,
    exposed_nodes,
    from_ids,
    random_state,
)
from oodgat_jax.types import Dataset, InputError, Split

# GKDE's code has these ID classes; the paper's appendix prints them as OOD classes.
CITATION_ID_CLASSES: dict[str, tuple[int, ...]] = {
    "cora": (0, 1, 2, 3),
    "citeseer": (0, 1, 2),
    "pubmed": (0, 1),
}
CITATION_VAL_NODES = 500
CITATION_TEST_NODES = 1000


def draw_citation(dataset: Dataset, id_classes: Sequence[int] | None = None) -> Split:
    """GKDE's split of a citation data set, which leaves nothing to chance.

    Train: the public train nodes of the ID classes, which are GKDE's (Cora 0-3,
    Citeseer 0-2, Pubmed 0-1) unless given; they need not be `dataset.id_classes`.
    Validation: the public validation nodes, the 500 that follow the public train nodes.
    Test: all nodes that follow the public train nodes, those for validation included,
    as in GKDE, which validates on nothing; results are means over `evaluation_draws`
    of them. Nodes without a label are in none of the three.
    """
    if not dataset.num_public_train:
        raise InputError(
            f"{dataset.name} has no public train split, which the citation protocol "
            f"needs; use one of {', '.join(CITATION_ID_CLASSES)}."
        )
    if id_classes is None:
        id_classes = CITATION_ID_CLASSES.get(dataset.name, dataset.id_classes)
    labels = np.where(np.isin(dataset.labels, id_classes), dataset.labels, -1)
    train = np.flatnonzero(labels[: dataset.num_public_train] >= 0)
    for label in id_classes:
        found = int((labels[train] == label).sum())
        enough(dataset.name, f"public train nodes of class {label}", found, 1)
    exposed = exposed_nodes(dataset._replace(id_classes=tuple(id_classes)))
    test = np.flatnonzero((dataset.labels >= 0) & ~exposed)
    test = test[test >= dataset.num_public_train]
    val = test[test < dataset.num_public_train + CITATION_VAL_NODES]
    return expose(from_ids(dataset.labels, id_classes, train, val, test), exposed)


def evaluation_draws(
    nodes: np.ndarray, seed: int, *, draws: int = 10, size: int = CITATION_TEST_NODES
) -> np.ndarray:
    """Draws random subsets of a mask [N], without replacement: bool [draws, N]."""
    pool = np.flatnonzero(nodes)
    enough("The data set", "nodes to evaluate on", pool.size, size)
    random = random_state(seed)
    drawn = np.zeros((draws, len(nodes)), bool)
    for row in drawn:
        row[random.choice(pool, size, replace=False)] = True
    return drawn
