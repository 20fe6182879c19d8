"""Several data sets as one graph without edges between them."""

import numpy as np
import scipy.sparse

from oodgat_jax.types import Dataset, Features, InputError


def join(first: Dataset, *others: Dataset, exposed: bool = False) -> Dataset:
    """Returns a data set whose graph is several ones side by side.

    No message passes between them, so that a network sees each as if it were alone.
    Nodes of the others that have a label are OOD, whatever it is: they get the class
    after the last one of `first`.

    Args:
      first: keeps its name, labels and known classes.
      others: with as many features each.
      exposed: whether these OOD nodes are examples for training.
    """
    widths = {data.features.shape[1] for data in (first, *others)}
    if len(widths) > 1:
        raise InputError(
            f"Graphs with {sorted(widths)} features cannot be joined: give all the "
            "same features."
        )
    sizes = [data.num_nodes for data in (first, *others)]
    starts = np.cumsum([0, *sizes])
    edges = [
        np.stack([data.senders, data.receivers]).astype(np.int64) + start
        for data, start in zip((first, *others), starts, strict=False)
    ]
    senders, receivers = np.concatenate(edges, axis=1).astype(np.int32)
    labels = np.concatenate([first.labels, *(data.labels for data in others)])
    others_ood = (labels >= 0) & (np.arange(len(labels)) >= sizes[0])
    labels[others_ood] = first.labels.max() + 1
    mask = others_ood & exposed
    if first.exposure is not None:
        mask[: sizes[0]] = first.exposure
    return first._replace(
        features=_stacked([data.features for data in (first, *others)]),
        senders=senders,
        receivers=receivers,
        labels=labels,
        exposure=mask if mask.any() else None,
        components=tuple(sizes),
    )


def _stacked(features: list[Features]) -> Features:
    if all(scipy.sparse.issparse(part) for part in features):
        return scipy.sparse.vstack(features, format="csr", dtype=np.float32)
    dense = [
        part.toarray() if scipy.sparse.issparse(part) else part for part in features
    ]
    return np.concatenate(dense).astype(np.float32)
