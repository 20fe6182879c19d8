"""OOD scores `(predict, graph, split) -> [N]`, higher = more OOD; table DETECTORS.

A detector is a pure function for `jit`, `vmap` and `lax.map`; it may call `predict` on
any graph, differentiate it, and use the train mask's labels (CaGCN: those of the ID
validation nodes). One with settings comes from a factory, such as `odin(epsilon=0.01)`.
"""

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
from oodgat_jax.detectors.distance import knn, ledoit_wolf, mahalanobis
from oodgat_jax.detectors.gebm import gebm
from oodgat_jax.detectors.grasp import grasp
from oodgat_jax.detectors.grasp_coded import grasp_coded
from oodgat_jax.detectors.odin import input_step, odin
from oodgat_jax.detectors.passes import aleatoric, epistemic, total
from oodgat_jax.detectors.propagation import gnnsafe, propagate
from oodgat_jax.detectors.rank_fusion import fused
from oodgat_jax.detectors.similarity import similarity_propagation
from oodgat_jax.detectors.table import (
    DETECTORS,
    FACTORIES,
    GRIDS,
    NEEDS,
    Settings,
    named,
    register_detector,
)
from oodgat_jax.detectors.tuning import Tuned, remember, score_runs, tune
from oodgat_jax.detectors.unknown import unknown

__all__ = [
    "DETECTORS",
    "FACTORIES",
    "GRIDS",
    "NEEDS",
    "Settings",
    "Tuned",
    "aleatoric",
    "attention",
    "attention_printed",
    "cagcn",
    "dirichlet_energy",
    "energy",
    "entropy",
    "epistemic",
    "fused",
    "gebm",
    "gnnsafe",
    "grasp",
    "grasp_coded",
    "input_step",
    "knn",
    "ledoit_wolf",
    "mahalanobis",
    "max_logit",
    "msp",
    "named",
    "odin",
    "propagate",
    "register_detector",
    "remember",
    "score_runs",
    "similarity_propagation",
    "total",
    "tune",
    "unknown",
]
