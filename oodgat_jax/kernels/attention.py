"""Attention of node numbers (OODGAT, GAT) in two fused kernels.

The forward kernel goes over receivers, the backward one over senders; both compute an
edge's weight and dropout bits anew, so that no array of the edges' size is made. See
attention.cc for the formulas and models/attention.py for the definition.
"""

from functools import partial
from typing import Any

import jax
import numpy as np

from oodgat_jax.kernels import calling
from oodgat_jax.types import Array


def attend(
    edge_logit: Any,
    pattern: Any,
    receiver: Array,
    sender: Array,
    h: Array,
    dropout: Any,
) -> Array:
    """Returns attention-weighted sums over neighbors, [N, H, D].

    Args:
      edge_logit: a `models.attention.EdgeLogit`.
      pattern: a `graphs.sparse.Pattern` of the edges, [N, K].
      receiver: r [N, H], float32 like all other values.
      sender: s [K, H].
      h: [K, H, D].
      dropout: a `models.attention.EdgeDropout` on attention weights, or None.
    """
    places = calling.numbers(None if dropout is None else dropout.numbers)
    words = calling.numbers(None)
    if dropout is not None:
        edges = pattern.columns.shape[0]
        size = edges if dropout.size is None else dropout.size
        words = calling.words(dropout.key, dropout.rate, size)
    return _attend(edge_logit, pattern, receiver, sender, h, places, words)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(edge_logit, pattern, receiver, sender, h, numbers, words):
    args = (pattern, receiver, sender, h, numbers, words)
    return _call_forward(edge_logit, False, *args)[0]


def _forward(edge_logit, *args):
    out, *more = _call_forward(edge_logit, True, *args)
    return out, (*args, out, *more)


def _call_forward(
    edge_logit, residuals, pattern, receiver, sender, h, numbers, words
) -> list[Array]:
    out = (receiver.shape[0], *h.shape[1:])
    each, none = receiver.shape, (0,)
    largest = none if edge_logit.bounded else each
    more = (out, each, each, largest) if residuals else (none,) * 4
    index = (pattern.row_ptr, pattern.columns)
    args = (*index, numbers, words, receiver, sender, h)
    attributes = _attributes(edge_logit)
    return calling.call("oodgat_attend_forward", (out, *more), *args, **attributes)


def _backward(edge_logit, residuals, gradient):
    pattern, receiver, sender, h, numbers, words, *more = residuals
    index = (pattern.column_ptr, pattern.rows_by_column, pattern.by_column)
    args = (*index, numbers, words, receiver, sender, h, *more, gradient)
    shapes = (receiver.shape, sender.shape, h.shape)
    attributes = _attributes(edge_logit)
    found = calling.call("oodgat_attend_backward", shapes, *args, **attributes)
    return None, *found, None, None


_attend.defvjp(_forward, _backward)


def _attributes(edge_logit) -> dict:
    names = ("sign", "constant", "linear", "absolute")
    numbers = {name: np.float32(getattr(edge_logit, name)) for name in names}
    return numbers | {"bounded": edge_logit.bounded}
