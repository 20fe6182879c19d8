"""Your own graph: fit, predict, decide, with scikit-learn's habits."""

from oodgat_jax.estimator.classifier import OODGATClassifier

__all__ = ["OODGATClassifier"]
