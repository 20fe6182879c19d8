"""Detectors by name, those with settings as factories, and the grids to tune them.

A new detector is a function and a line in DETECTORS; one with settings is a factory
`(**settings) -> Detector` and a line in FACTORIES, and may have a grid.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

from oodgat_jax.detectors.calibration import cagcn
from oodgat_jax.detectors.distance import COVARIANCES, LAYERS, knn, mahalanobis
from oodgat_jax.detectors.input_step import odin
from oodgat_jax.detectors.propagation import GRASP_SCORES, gnnsafe, grasp, propagate
from oodgat_jax.detectors.simple import (
    attention,
    attention_printed,
    energy,
    entropy,
    max_logit,
    msp,
)
from oodgat_jax.gkde import MEASURES
from oodgat_jax.types import Detector

Settings = dict[str, Any]

FACTORIES: dict[str, Callable[..., Detector]] = {
    "energy": energy,
    "ODIN": odin,
    "Mahalanobis": mahalanobis,
    "CaGCN": cagcn,
    "kNN": knn,
    "GRASP": grasp,
    "GNNSafe": gnnsafe,
    "ATT+prop": partial(propagate, attention),
    "ENT+prop": partial(propagate, entropy),
}

DETECTORS: dict[str, Detector] = {
    "ENT": entropy,
    "ATT": attention,
    "ATT_printed": attention_printed,
    "MSP": msp,
    "maxlogit": max_logit,
    **{name: factory() for name, factory in FACTORIES.items()},
    **MEASURES,
}


def _all(**choices: tuple) -> list[Settings]:
    """Every combination, the first choices first."""
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
    ],
    "kNN": _all(k=(10, 1, 5, 20, 50)),
    "GRASP": _all(score=tuple(reversed(GRASP_SCORES)), rounds=(8, 2, 4, 16)),
    "GNNSafe": _all(**_PROPAGATION),
    "ATT+prop": _all(**_PROPAGATION),
    "ENT+prop": _all(**_PROPAGATION),
}
