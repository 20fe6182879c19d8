"""GKDE (S-BGCN-T-K, Zhao et al. 2020): an evidential GCN with a kernel prior.

A plug-in like any other: importing it registers the backbone `evidential-gcn`, its five
measures of uncertainty as detectors, and the method `gkde`. `prepare` makes what a run
needs beyond its split (prior, teacher), `customize` gives the method its loss and its
prediction, the mean over Monte Carlo dropout.
"""

from types import MappingProxyType

from oodgat_jax.detectors import register_detector
from oodgat_jax.gkde.inference import MEASURES, posterior
from oodgat_jax.gkde.network import EvidentialGCN
from oodgat_jax.gkde.prior import kernel_prior
from oodgat_jax.gkde.training import customize, prepare
from oodgat_jax.methods import Method, register_method
from oodgat_jax.models import register_backbone

__all__ = ["MEASURES", "EvidentialGCN", "kernel_prior", "posterior", "prepare"]

register_backbone("evidential-gcn", EvidentialGCN, rates=())
for _name, _measure in MEASURES.items():
    register_detector(_name, _measure)
register_method(
    "gkde",
    Method(
        "evidential-gcn",
        validated_by="vacuity",
        detectors=tuple(MEASURES),
        # It has dropout in its model and takes all steps; check_every=9 puts the last
        # check exactly on step 1000.
        hyper=MappingProxyType(
            {
                "weight_decay": 0.0,
                "check_every": 9,
                "first_decay": 5e-4,
                "kernel": 0.1,
                "distillation": 1.0,
            }
        ),
        prepare=prepare,
        customize=customize,
        early_stop=False,
    ),
)
