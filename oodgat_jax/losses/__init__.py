"""Cross-entropy and regularizers, one file per family; table REGULARIZERS; compose().

A regularizer is `(outputs, split, hyper) -> scalar`, lower is better, finite with a
finite gradient on an empty mask. Its weight is the entry of `hyper` that bears its
name. One that needs the graph or the number of the step says so in the table and gets
it by keyword.
"""

from oodgat_jax.losses.bounded import bounded_energy, bounded_energy_exposed
from oodgat_jax.losses.exposure import (
    energy_margin,
    energy_margin_propagated,
    outlier_exposure,
)
from oodgat_jax.losses.node_values import (
    cosine,
    cross_entropy,
    masked_mean,
    softmax_entropy,
    standardize,
    uniform_loss,
)
from oodgat_jax.losses.paper import (
    consistency,
    consistency_printed,
    discrepancy,
    discrepancy_printed,
    entropy,
    entropy_printed,
)
from oodgat_jax.losses.robust import anchor, consistency_led
from oodgat_jax.losses.table import (
    DECAY,
    REGULARIZERS,
    Term,
    WeightSchedule,
    compose,
    constant,
    paper_decay,
    register_regularizer,
)
from oodgat_jax.losses.unknown_class import (
    known_logit,
    unknown_class,
    unknown_class_pseudo,
    unknown_logit,
)

__all__ = [
    "DECAY",
    "REGULARIZERS",
    "Term",
    "WeightSchedule",
    "anchor",
    "bounded_energy",
    "bounded_energy_exposed",
    "compose",
    "consistency",
    "consistency_led",
    "consistency_printed",
    "constant",
    "cosine",
    "cross_entropy",
    "discrepancy",
    "discrepancy_printed",
    "energy_margin",
    "energy_margin_propagated",
    "entropy",
    "entropy_printed",
    "known_logit",
    "masked_mean",
    "outlier_exposure",
    "paper_decay",
    "register_regularizer",
    "softmax_entropy",
    "standardize",
    "uniform_loss",
    "unknown_class",
    "unknown_class_pseudo",
    "unknown_logit",
]
