"""GKDE (S-BGCN-T-K, Zhao et al. 2020): an evidential GCN with a kernel prior.

`prepare` makes what a run needs beyond its split (prior, teacher), `task` is what the
trainer trains, and `Posterior` is the trained network under Monte Carlo dropout.
"""

from oodgat_jax.gkde.inference import MEASURES, Belief, Posterior
from oodgat_jax.gkde.network import EvidentialGCN
from oodgat_jax.gkde.prior import kernel_prior
from oodgat_jax.gkde.training import HYPER, SCHEDULE, prepare, task

__all__ = [
    "HYPER",
    "MEASURES",
    "SCHEDULE",
    "Belief",
    "EvidentialGCN",
    "Posterior",
    "kernel_prior",
    "prepare",
    "task",
]
