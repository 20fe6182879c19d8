"""RawGraph -> Dataset: check the counts, tidy the edges, scale the features."""

import numpy as np
import scipy.sparse

from oodgat_jax.datasets.records import RawGraph, Source
from oodgat_jax.types import Dataset, InputError


def tidy_edges(
    senders: np.ndarray, receivers: np.ndarray, num_nodes: int, directed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Drop self-loops and duplicates, symmetrise unless `directed`.

    The result is sorted by (receiver, sender), so that equal graphs give equal
    arrays whatever the order in the file.
    """
    senders, receivers = senders.astype(np.int64), receivers.astype(np.int64)
    if not directed:
        senders, receivers = (
            np.concatenate([senders, receivers]),
            np.concatenate([receivers, senders]),
        )
    keep = senders != receivers
    keys = np.unique(receivers[keep] * num_nodes + senders[keep])
    return (keys % num_nodes).astype(np.int32), (keys // num_nodes).astype(np.int32)


def divide_by_row_sums(
    features: np.ndarray | scipy.sparse.csr_array,
) -> np.ndarray | scipy.sparse.csr_array:
    """Rows that sum to one; a row that sums to zero stays as it is."""
    sums = np.asarray(features.sum(axis=1), dtype=np.float64).reshape(-1)
    scale = (1.0 / np.where(sums == 0, 1.0, sums)).astype(np.float32)
    if scipy.sparse.issparse(features):
        per_entry = np.repeat(scale, np.diff(features.indptr))
        return scipy.sparse.csr_array(
            (features.data * per_entry, features.indices, features.indptr),
            shape=features.shape,
        )
    return features * scale[:, None]


def _check_counts(source: Source, raw: RawGraph, num_edges: int) -> None:
    """Refuse a graph that is not the published one."""
    known = raw.labels[raw.labels >= 0]
    found = {
        "nodes": raw.features.shape[0],
        "edges": num_edges,
        "features": raw.features.shape[1],
        "classes": np.unique(known).size,
    }
    for what, count in found.items():
        expected = getattr(source, what)
        if expected is not None and count != expected:
            raise InputError(
                f"The files of {source.name} hold {count} {what} where {expected} "
                f"were published; replace them with the published files."
            )


def assemble(source: Source, raw: RawGraph) -> Dataset:
    """The Dataset of a source from what its reader found."""
    senders, receivers = tidy_edges(
        raw.senders, raw.receivers, raw.features.shape[0], source.directed
    )
    # A directed graph is published with its links as stored, loops included.
    _check_counts(source, raw, raw.senders.size if source.directed else senders.size)
    features = raw.features.astype(np.float32)
    if source.row_normalise:
        features = divide_by_row_sums(features)
    return Dataset(
        name=source.name,
        features=features,
        senders=senders,
        receivers=receivers,
        labels=raw.labels.astype(np.int32),
        id_classes=source.id_classes,
        test_size=source.test_size,
        num_public_train=source.num_public_train,
    )
