"""GKDE (S-BGCN-T-K, Zhao et al. 2020): an evidential GCN with a kernel prior.

`prepare` makes what a run needs beyond its split (prior, teacher), `loss` is what it
minimises, `posterior` is the trained network under Monte Carlo dropout, and MEASURES
are the uncertainties that this gives. The network is `models.EvidentialGCN`.
"""

from oodgat_jax.gkde.inference import MEASURES, posterior
from oodgat_jax.gkde.prior import kernel_prior
from oodgat_jax.gkde.training import loss, prepare

__all__ = ["MEASURES", "kernel_prior", "loss", "posterior", "prepare"]
