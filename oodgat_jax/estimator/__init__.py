"""Your own graph: fit, predict, decide, with a scikit-learn style interface."""

from oodgat_jax.estimator.classifier import OODGATClassifier

__all__ = ["OODGATClassifier"]
