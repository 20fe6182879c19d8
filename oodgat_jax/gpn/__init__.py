"""GPN (Graph Posterior Network, Stadler et al. 2021): evidence of densities, diffused.

A plug-in like any other: importing it registers the backbone `gpn`, two scores of
evidence as detectors, and the method `gpn`. The third score of the paper, aleatoric
uncertainty, is `MSP` on the same network.
"""

from types import MappingProxyType

from oodgat_jax.detectors import register_detector
from oodgat_jax.gpn.inference import evidence, evidence_of_features
from oodgat_jax.gpn.network import GPN, ClassDensity
from oodgat_jax.gpn.training import customize, entropy, objective, optimizer
from oodgat_jax.methods import Method, register_method
from oodgat_jax.models import register_backbone

__all__ = [
    "GPN",
    "ClassDensity",
    "customize",
    "entropy",
    "evidence",
    "evidence_of_features",
    "objective",
    "optimizer",
]

register_backbone("gpn", GPN, rates=("dropout",))
register_detector("evidence", evidence)
register_detector("evidence_features", evidence_of_features)
register_method(
    "gpn",
    Method(
        "gpn",
        validated_by="evidence",
        detectors=("evidence", "evidence_features", "MSP"),
        optimizer=optimizer,
        # The published settings of leaving classes out, with latent width 16.
        hyper=MappingProxyType(
            {
                "weight_decay": 0.001,
                "dropout": 0.5,
                "entropy_weight": 1e-4,
                "max_steps": 2000,
                "check_every": 1,
                "patience": 50,
            }
        ),
        customize=customize,
    ),
)
