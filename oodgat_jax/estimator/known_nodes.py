"""The nodes that the members learned from, for detectors that compare with them."""

import hashlib
from collections.abc import Sequence

import jraph
import numpy as np
import scipy.sparse

from oodgat_jax import graphs
from oodgat_jax.detectors import NEEDS
from oodgat_jax.estimator import holding_out
from oodgat_jax.estimator.answers import Labeled
from oodgat_jax.estimator.inputs import UNKNOWN
from oodgat_jax.graphs.sparse import SparseFeatures
from oodgat_jax.methods import Method
from oodgat_jax.types import Features, InputError, Split


def needs(method: Method) -> Sequence[str]:
    """Returns what its detector reads that a model of a method does not keep.

    Args:
      method: from `members.validated_by`.

    Raises:
      InputError: a model can never give it.
    """
    detector = method.validated_by
    found = () if detector in method.keeps else NEEDS.get(detector, ())
    if "validation" in found:
        raise InputError(
            f"Detector {detector} learns from validation nodes, which a model of this "
            "method does not keep: choose another detector."
        )
    return found


def as_split(graph: jraph.GraphsTuple, method: Method, labeled: Labeled) -> Split:
    """Returns a split with the fit's train nodes, if the detector needs them.

    Args:
      graph: to be scored.
      method: from `members.validated_by`.
      labeled: the nodes that the members learned from.
    """
    size = graphs.num_nodes(graph)
    codes, nobody = np.full(size, UNKNOWN), np.zeros(size, bool)
    if "labels" in needs(method):
        nodes = labeled.nodes
        if size <= nodes.max() or digest(graph, nodes) != labeled.digest:
            raise InputError(
                f"Detector {method.validated_by} compares with the labeled nodes of "
                "the fit, which this graph does not begin with: give the fitted graph "
                "with further nodes behind it, or choose another detector."
            )
        codes[nodes] = labeled.codes
    return holding_out.as_split(codes, nobody)


def digest(graph: jraph.GraphsTuple, nodes: np.ndarray) -> str:
    """Returns the SHA-256 of some nodes' features."""
    features = host_features(graph)[nodes]
    if not isinstance(features, np.ndarray):
        features = features.toarray()
    return hashlib.sha256(np.ascontiguousarray(features).tobytes()).hexdigest()


def host_features(graph: jraph.GraphsTuple) -> Features:
    """Returns a graph's features [N, F] as a numpy array or a scipy matrix."""
    features = graph.nodes
    if not isinstance(features, SparseFeatures):
        return np.asarray(features)
    values, pattern = np.asarray(features.values), features.pattern
    parts = (values, np.asarray(pattern.columns), np.asarray(pattern.row_ptr))
    return scipy.sparse.csr_array(parts, shape=features.shape)
