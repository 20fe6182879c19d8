"""Detectors by name, those with settings as factories, and the grids to tune them."""

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import jax.numpy as jnp
import jraph

from oodgat_jax.detectors.basic import (
    attention,
    attention_printed,
    energy,
    entropy,
    max_logit,
    msp,
)
from oodgat_jax.detectors.cagcn import cagcn
from oodgat_jax.detectors.dirichlet import dirichlet_energy
from oodgat_jax.detectors.distance import COVARIANCES, LAYERS, knn, mahalanobis
from oodgat_jax.detectors.fitted_fusion import fitted
from oodgat_jax.detectors.gebm import gebm
from oodgat_jax.detectors.grasp import GRASP_SCORES, grasp
from oodgat_jax.detectors.grasp_coded import grasp_coded
from oodgat_jax.detectors.odin import odin
from oodgat_jax.detectors.passes import aleatoric, epistemic, total
from oodgat_jax.detectors.propagation import gnnsafe, propagate
from oodgat_jax.detectors.rank_fusion import fused
from oodgat_jax.detectors.similarity import similarity_propagation
from oodgat_jax.detectors.student_fusion import with_student
from oodgat_jax.detectors.unknown import unknown
from oodgat_jax.registry import Registry, check_function, check_needs
from oodgat_jax.types import Array, Detector, InputError, Predict, Split

Settings = dict[str, Any]

FACTORIES: Registry[Callable[..., Detector]] = Registry(
    "detector with settings",
    {
        "energy": energy,
        "ODIN": odin,
        "Mahalanobis": mahalanobis,
        "CaGCN": cagcn,
        "kNN": knn,
        "GRASP": grasp,
        "GNNSafe": gnnsafe,
        "ATT+prop": partial(propagate, attention),
        "ENT+prop": partial(propagate, entropy),
        "FUSED+prop": partial(propagate, fused, rounds=1),
        "GNNSafe_coded": partial(gnnsafe, keep_isolated=False),
        "GRASP_coded": grasp_coded,
        "GEBM": gebm,
        "Dirichlet": dirichlet_energy,
        "similarity": similarity_propagation,
    },
)

DETECTORS: Registry[Detector] = Registry(
    "detector",
    {
        "ENT": entropy,
        "ATT": attention,
        "ATT_printed": attention_printed,
        "FUSED": fused,
        "FUSED+fit": fitted,
        "FUSED+student": with_student,
        "MSP": msp,
        "maxlogit": max_logit,
        "aleatoric": aleatoric,
        "epistemic": epistemic,
        "total": total,
        "unknown": unknown,
        **{name: factory() for name, factory in FACTORIES.items()},
    },
)

# What a detector reads that is not always there: "attention" of the backbone, the
# "labels" of the train nodes, those of the known "validation" nodes.
_READABLE = ("attention", "labels", "validation")
NEEDS: dict[str, tuple[str, ...]] = {
    "ATT": ("attention",),
    "ATT_printed": ("attention",),
    "ATT+prop": ("attention",),
    "CaGCN": ("validation",),
    "FUSED": ("attention",),
    "FUSED+fit": ("attention", "labels", "validation"),
    "FUSED+prop": ("attention",),
    "FUSED+student": ("attention", "labels", "validation"),
    "GEBM": ("labels",),
    "GRASP": ("labels",),
    "GRASP_coded": ("labels", "validation"),
    "Mahalanobis": ("labels",),
    "kNN": ("labels",),
    "unknown": ("attention",),
}


def _all(**choices: tuple) -> list[Settings]:
    """Returns every combination, the first choices first."""
    values = product(*choices.values())
    return [dict(zip(choices, chosen, strict=True)) for chosen in values]


_PROPAGATION: Mapping[str, tuple] = {
    "rounds": (2, 1, 4, 8),
    "alpha": (0.5, 0.1, 0.3, 0.7, 0.9),
}

# The default comes first, so that it wins a tie. Floats share one compilation.
GRIDS: dict[str, list[Settings]] = {
    "energy": _all(temperature=(1.0, 0.1, 0.5, 2.0, 5.0, 10.0)),
    "ODIN": _all(
        temperature=(1000.0, 1.0, 5.0, 10.0, 100.0),
        epsilon=(0.0014, 0.0, 1e-4, 0.0028, 0.01, 0.1, 0.5, 1.0),
    ),
    "Mahalanobis": _all(
        covariance=COVARIANCES, layer=LAYERS, epsilon=(0.0, 0.0014, 0.01, 0.1)
    ),
    "CaGCN": [
        {"margin_weight": 0.5, "weight_decay": 5e-3},
        {"margin_weight": 0.5, "weight_decay": 5e-4},
        {"margin_weight": 0.5, "weight_decay": 5e-2},
        {"margin_weight": 0.0, "weight_decay": 5e-3},
        # The lowest cross-entropy takes hundreds of steps, the best order a few.
        {"margin_weight": 0.5, "weight_decay": 5e-3, "max_steps": 20},
        {"margin_weight": 0.5, "weight_decay": 5e-2, "max_steps": 20},
    ],
    "kNN": _all(k=(10, 1, 5, 20, 50)),
    "GRASP": _all(score=tuple(reversed(GRASP_SCORES)), rounds=(8, 2, 4, 16)),
    "GNNSafe": _all(**_PROPAGATION),
    "ATT+prop": _all(**_PROPAGATION),
    "ENT+prop": _all(**_PROPAGATION),
    "FUSED+prop": _all(rounds=(1, 2, 4, 8), alpha=_PROPAGATION["alpha"]),
    "GNNSafe_coded": _all(**_PROPAGATION),
    "GRASP_coded": _all(score=tuple(GRASP_SCORES), rounds=(8, 2, 4, 16)),
    "GEBM": _all(weight=(1.0, 0.0, 0.5), edges=(False, True)),
    "Dirichlet": _all(**_PROPAGATION),
    "similarity": _all(sharpness=(5.0, 1.0, 20.0), rounds=(2, 8)),
}


def named(name: str) -> Detector:
    """Returns the detector of this name; what it gives is checked when compiled."""
    return _checked(name, DETECTORS[name])


@functools.lru_cache(maxsize=256)
def _checked(name: str, detector: Detector) -> Detector:
    def score(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        scores = detector(predict, graph, split)
        if not _are_real(scores) or scores.shape != split.train.shape:
            found = getattr(scores, "aval", type(scores).__name__)
            raise InputError(
                f"Detector '{name}' must return one real number per node, "
                f"{list(split.train.shape)}, not {found}."
            )
        return scores

    return score


def _are_real(scores: Any) -> bool:
    if not hasattr(scores, "dtype") or not hasattr(scores, "shape"):
        return False
    return any(jnp.issubdtype(scores.dtype, k) for k in (jnp.integer, jnp.floating))


def register_detector(
    name: str,
    detector: Detector | None = None,
    *,
    needs: tuple[str, ...] = (),
    factory: Callable[..., Detector] | None = None,
    grid: Sequence[Settings] = (),
) -> None:
    """Adds a detector to the table, so that methods and --detectors can name it.

    Args:
      name: of the score, as in records.
      detector: (predict, graph, split) -> [N], higher = more OOD; by default what the
        factory makes without settings.
      needs: what it reads that is not always there; see NEEDS.
      factory: (**settings) -> detector, for one that has settings.
      grid: the settings that tuning tries, the default first.
    """
    if detector is None:
        if factory is None:
            raise InputError(f"Detector '{name}' needs a function or a factory.")
        detector = factory()
    check_function("detector", name, detector)
    check_needs("detector", name, needs, _READABLE)
    DETECTORS.register(name, detector)
    NEEDS[name] = tuple(needs)
    if factory is not None:
        FACTORIES.register(name, factory)
        GRIDS[name] = list(grid) or [{}]
