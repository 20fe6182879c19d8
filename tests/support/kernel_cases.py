"""Random graphs and shapes on which the native kernels meet their definitions.

As a script, in the folder of the tests, it goes through many:
`python -m support.kernel_cases 10000`.
"""

import sys
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from oodgat_jax.dropout import keep
from oodgat_jax.graphs import sparse
from oodgat_jax.kernels import attention as native
from oodgat_jax.kernels import features
from oodgat_jax.models import attention

LOGITS = {"ood": attention.OOD_LOGIT, "gat": attention.GAT_LOGIT}
PER_SHAPE = 50  # graphs that share their shapes, and so a compilation


class Sizes(NamedTuple):
    """What a compiled program depends on: shapes, and which arrays there are."""

    rows: int
    columns: int
    edges: int
    heads: int
    width: int
    logit: str
    drops: str  # "no", "consecutive" or "numbered" positions

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "Sizes":
        """Draws sizes; in some, a node has more edges than a block of the kernel."""
        rows = int(rng.integers(1, 60))
        columns = rows + int(rng.integers(0, 20)) * int(rng.integers(2))
        edges = int(rng.integers(0, min(12, columns) * (rows // 2 + 1)))
        if rng.integers(8) == 0:
            rows, columns, edges = 4, 2000, 2500
        return cls(
            *(rows, columns, edges, int(rng.integers(1, 11)), int(rng.integers(1, 71))),
            logit=str(rng.choice(sorted(LOGITS))),
            drops=str(rng.choice(["no", "consecutive", "numbered"])),
        )


def draw_pattern(sizes: Sizes, rng: np.random.Generator) -> sparse.Pattern:
    """Draws edges: directed, many of them at few nodes, nodes without any."""
    used = sizes.rows // 2 + 1 if rng.integers(2) else sizes.rows
    pairs = rng.choice(used * sizes.columns, sizes.edges, replace=False)
    receivers, senders = np.divmod(np.sort(pairs), sizes.columns)
    pattern = sparse.pattern(receivers, senders, (sizes.rows, sizes.columns))
    second = (pattern.rows_by_column, pattern.columns_by_column)
    return pattern._replace(second=second)


def draw_arrays(sizes: Sizes, rng: np.random.Generator) -> list[np.ndarray]:
    """Draws r [N, H], s [K, H], h [K, H, D] and a gradient [N, H, D]."""
    ends = ((sizes.rows, sizes.heads), (sizes.columns, sizes.heads))
    shapes = (*ends, (*ends[1], sizes.width), (*ends[0], sizes.width))
    r, s, *more = (rng.choice([0.3, 1.0]) * rng.normal(size=shape) for shape in shapes)
    if rng.integers(4) == 0:  # |x| without a slope
        r, s = np.round(r), np.round(s)
    return [x.astype(np.float32) for x in (r, s, *more)]


def draw_dropout(
    sizes: Sizes, rng: np.random.Generator
) -> attention.EdgeDropout | None:
    """Draws a key, a rate and, as on a shard, numbers of the edges."""
    if sizes.drops == "no":
        return None
    key = jax.random.key(int(rng.integers(1000)))
    rate = np.float32(rng.choice([0.0, 0.3, 0.6, 0.9]))
    if sizes.drops == "consecutive":
        return attention.EdgeDropout(key, rate)
    numbers = rng.integers(1 << 32, size=sizes.edges, dtype=np.uint32)
    return attention.EdgeDropout(key, rate, numbers, np.uint32(rng.integers(1 << 32)))


def attention_error(sizes: Sizes, rng: np.random.Generator) -> float:
    """Returns the largest error of values and gradients on a random graph."""
    pattern, arrays = draw_pattern(sizes, rng), draw_arrays(sizes, rng)
    found, factors = _attend(sizes, pattern, arrays, draw_dropout(sizes, rng))
    expected, terms = _attention(LOGITS[sizes.logit], pattern, arrays, factors)
    return _largest_error(zip(found, expected, strict=True), terms)


@partial(jax.jit, static_argnums=0)
def _attend(sizes, pattern, arrays, dropout):
    """Values and gradients of the kernel, and the factors [H, E] of dropout."""
    *values, g = arrays

    def by_kernel(r, s, h):
        return native.attend(LOGITS[sizes.logit], pattern, r, s, h, dropout)

    out, pull = jax.vjp(by_kernel, *values)
    factors = None
    if dropout is not None:
        factors = dropout.factors(jnp.arange(sizes.edges), sizes.heads)
    return (out, *pull(g)), factors


def _attention(logit, pattern, arrays, factors):
    """The definition in models/attention.py, as dense matrices [H, N, K] of numpy.

    Also the size of what is summed: ds_j is a difference of sums whose terms are as
    large as g.out.
    """
    r, s, h, g = (np.moveaxis(x.astype(np.float64), 1, 0) for x in arrays)
    edge = np.zeros(pattern.shape, bool)
    edge[pattern.rows, pattern.columns] = True
    x = r[:, :, None] + logit.sign * s[:, None, :]
    e = logit.constant + logit.linear * x + logit.absolute * np.abs(x)
    e = np.where(edge, e - e.max(-1, keepdims=True, where=edge, initial=-1e9), -np.inf)
    alpha = np.exp(e)
    alpha /= np.maximum(alpha.sum(-1, keepdims=True), 1e-30)
    keep = np.ones_like(alpha)
    if factors is not None:
        keep[:, pattern.rows, pattern.columns] = factors
    weights = keep * alpha
    out = weights @ h
    dalpha = keep * (g @ np.swapaxes(h, 1, 2))
    de = alpha * (dalpha - np.sum(alpha * dalpha, -1, keepdims=True))
    dx = de * (logit.linear + logit.absolute * np.where(x >= 0, 1, -1))
    dr, ds, dh = dx.sum(2), logit.sign * dx.sum(1), np.swapaxes(weights, 1, 2) @ g
    expected = [np.moveaxis(array, 0, 1) for array in (out, dr, ds, dh)]
    return expected, np.abs(np.sum(g * out, -1)).max(initial=1.0)


class FeatureSizes(NamedTuple):
    """The same for features."""

    rows: int
    columns: int
    entries: int
    width: int
    drops: str  # "no", or positions: "consecutive", "numbered", "dense"

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "FeatureSizes":
        """Draws sizes: from no entries to all of them."""
        rows, columns = rng.integers(1, 400, size=2).tolist()
        entries = int(rows * columns * rng.choice([0.0, 0.01, 0.1, 0.35, 1.0]))
        drops = str(rng.choice(["no", "consecutive", "numbered", "dense"]))
        return cls(rows, columns, entries, int(rng.integers(1, 150)), drops)


def feature_error(sizes: FeatureSizes, rng: np.random.Generator) -> float:
    """Returns the largest error of a product with random features and its gradients."""
    rows, columns = sizes.rows, sizes.columns
    places = np.sort(rng.choice(rows * columns, sizes.entries, replace=False))
    pattern = sparse.pattern(*np.divmod(places, columns), (rows, columns))
    pattern = pattern._replace(
        second=(pattern.rows_by_column, pattern.columns_by_column)
    )
    values = rng.normal(size=sizes.entries).astype(np.float32)
    numbers = rng.integers(1 << 32, size=rows, dtype=np.uint32)
    x = sparse.with_tiles(
        sparse.SparseFeatures(values, pattern),
        numbers if sizes.drops == "dense" else None,
    )
    entries = rng.integers(1 << 32, size=sizes.entries, dtype=np.uint32)
    key = jax.random.key(int(rng.integers(1000)))
    key = None if sizes.drops == "no" else key
    dropped = features.Dropped(
        *(x, key, np.float32(rng.choice([0.0, 0.5, 0.8]))),
        entries if sizes.drops == "numbered" else None,
    )
    weights = rng.normal(size=(columns, sizes.width)).astype(np.float32)
    g = rng.normal(size=(rows, sizes.width)).astype(np.float32)
    found, factors = _multiply(dropped, weights, g)
    expected = _product(pattern, values, factors, weights, g)
    return _largest_error(zip(found, expected, strict=True), 1.0)


@jax.jit
def _multiply(x, weights, g):
    """Values and gradients of the kernel, and the factors [Z] of dropout."""

    def by_kernel(values, weights):
        changed = x.features._replace(values=values)
        return features.product(x._replace(features=changed), weights)

    out, pull = jax.vjp(by_kernel, x.features.values, weights)
    factors = None
    if x.key is not None:
        factors = keep(x.key, features.positions(x.features, x.entries), x.rate)
    return (out, *pull(g)), factors


def _product(pattern, values, factors, weights, g):
    """The product with a dense matrix of numpy and its gradients."""
    kept = np.ones(len(values)) if factors is None else np.asarray(factors, np.float64)
    at = (pattern.rows, pattern.columns)
    dense = np.zeros(pattern.shape)
    dense[at] = values * kept
    weights, g = weights.astype(np.float64), g.astype(np.float64)
    return dense @ weights, (g @ weights.T)[at] * kept, dense.T @ g


def _largest_error(pairs, terms):
    """Of all arrays; an array's errors are relative to its largest value."""
    errors = []
    for found, expected in pairs:
        assert found.shape == expected.shape
        scale = max(np.abs(expected).max(initial=1.0), terms)
        errors.append(np.abs(np.asarray(found) - expected).max(initial=0.0) / scale)
    return float(np.max(errors))


def main(count: int) -> None:
    """Goes through random cases; stops at the first that is wrong."""
    worst = 0.0
    for seed in range(count):
        shapes, values = (np.random.default_rng(n) for n in (seed // PER_SHAPE, seed))
        error = float(attention_error(Sizes.draw(shapes), values))
        more = float(feature_error(FeatureSizes.draw(shapes), values))
        worst = max(worst, error, more)
        if not worst < 1e-5:
            sys.exit(f"seed {seed}: errors {error:.1e} and {more:.1e}")
        if seed % 500 == 499:
            jax.clear_caches()
            print(f"{seed + 1} cases, worst error {worst:.1e}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
