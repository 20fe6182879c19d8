"""Distances in a layer: Mahalanobis to a class, k-th nearest labeled node."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jraph

from oodgat_jax import registry
from oodgat_jax.detectors.odin import input_step
from oodgat_jax.graphs import reductions
from oodgat_jax.types import Array, Detector, Predict, Split

COVARIANCES = ("ledoit-wolf", "pseudo-inverse")
LAYERS = ("hidden", "logits")
LABELED_AT_A_TIME = 256


def mahalanobis(
    epsilon: Array | float = 0.0,
    *,
    covariance: str = "ledoit-wolf",
    layer: str = "hidden",
) -> Detector:
    """Returns min_c (z - mu_c)' S^-1 (z - mu_c) (A Simple Unified Framework, 2018).

    z is the output of a layer, mu_c the mean of the labeled nodes of class c, S the
    covariance of the labeled nodes around their class means. The score is taken at
    x' = x - eps sign(grad_x mean(score / 2)), the means and S at x.

    Args:
      epsilon: eps >= 0, where 0 is no step; may be traced.
      covariance: `ledoit-wolf`, shrunk towards a multiple of the identity, since 20
        nodes a class leave S singular; or `pseudo-inverse` of the plain S.
      layer: `hidden` or `logits`, whose few dimensions 20 nodes a class can fill.
    """
    registry.check_name("covariance", covariance, COVARIANCES)
    registry.check_name("layer", layer, LAYERS)

    def detector(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        def features(graph: jraph.GraphsTuple) -> Array:
            return getattr(predict(graph), layer)

        num_classes = predict(graph).logits.shape[1]
        fitted = fit_classes(features(graph), split, num_classes, covariance)

        def score(graph: jraph.GraphsTuple) -> Array:
            return nearest_class(fitted, features(graph))

        if isinstance(epsilon, float) and epsilon == 0.0:
            return score(graph)
        return score(
            input_step(lambda g: reductions.mean(score(g)) / 2, graph, epsilon)
        )

    return detector


def knn(k: int = 10) -> Detector:
    """Returns the distance of z / |z| to its k-th nearest labeled node (Sun et al.,
    Out-of-Distribution Detection with Deep Nearest Neighbors, 2022).

    A labeled node is its own nearest. With fewer than k labeled nodes, the distance
    to the farthest of them. Labeled nodes are compared with blockwise, as many
    blocks as they need: no array is larger than [N, 256 + k].

    Args:
      k: a whole number >= 1, static.
    """

    def detector(predict: Predict, graph: jraph.GraphsTuple, split: Split) -> Array:
        z = _normalized(predict(graph).hidden)
        count = reductions.total(jnp.asarray(split.train))
        nearest = _nearest(z, jnp.asarray(split.train), count, k)
        return jnp.take(nearest, jnp.clip(count, 1, k) - 1, axis=1)

    return detector


class Classes(NamedTuple):
    """Labeled nodes' statistics, after which a distance is Euclidean."""

    root: Array  # [D, D], root root' is the inverse of S
    means: Array  # [C, D], mu_c root
    present: Array  # [C] bool, classes with a labeled node


def ledoit_wolf(x: Array, count: Array) -> Array:
    """Computes a shrunk covariance [D, D] of centered rows (Ledoit and Wolf, 2004).

        S = X'X / n,  m = tr(S) / D,  d2 = |S - m I|^2
        b2 = min(d2, (sum_i |x_i|^4 / n - |S|^2) / n)
        result = (b2 / d2) m I + (1 - b2 / d2) S

    Args:
      x: [N, D]; rows outside the sample are zero.
      count: n, the rows inside.
    """
    count = jnp.maximum(count, 1)
    sample = reductions.add(x.T @ x) / count
    size = x.shape[1]
    target = jnp.trace(sample) / size * jnp.eye(size)
    d2 = jnp.sum((sample - target) ** 2)
    fourth = reductions.add(jnp.sum(jnp.sum(x**2, axis=1) ** 2))
    b2 = (fourth / count - jnp.sum(sample**2)) / count
    share = jnp.where(d2 > 0, jnp.clip(b2, 0, d2) / jnp.where(d2 > 0, d2, 1), 1.0)
    return share * target + (1 - share) * sample


def fit_classes(
    z: Array, split: Split, num_classes: int, covariance: str = "ledoit-wolf"
) -> Classes:
    """Returns the statistics of the labeled nodes in a layer z [N, D]."""
    member = jax.nn.one_hot(split.labels, num_classes) * split.train[:, None]  # [N, C]
    sizes = reductions.total(member)
    means = reductions.add(member.T @ z) / jnp.maximum(sizes, 1)[:, None]
    centered = (z - member @ means) * member.sum(1)[:, None]
    count = sizes.sum()
    if covariance == "ledoit-wolf":
        root = _inverse_root(ledoit_wolf(centered, count), 0.0)
    else:
        sample = reductions.add(centered.T @ centered) / jnp.maximum(count, 1)
        size = sample.shape[0]
        root = _inverse_root(sample, 10 * size * float(jnp.finfo(sample.dtype).eps))
    return Classes(root, means @ root, sizes > 0)


def _inverse_root(covariance: Array, tolerance: float) -> Array:
    """Returns R with R R' the pseudo-inverse; small eigenvalues are taken as 0."""
    values, vectors = jnp.linalg.eigh(covariance)
    positive = values > jnp.maximum(tolerance * values[-1], 0.0)
    scale = jnp.where(positive, jax.lax.rsqrt(jnp.where(positive, values, 1.0)), 0.0)
    return vectors * scale


def nearest_class(classes: Classes, z: Array) -> Array:
    """Returns squared distance to the nearest class mean: [N]."""
    z = z @ classes.root
    distances = jnp.sum((z[:, None] - classes.means) ** 2, axis=-1)  # [N, C]
    nearest = jnp.argmin(jnp.where(classes.present, distances, jnp.inf), axis=-1)
    return jnp.sum((z - classes.means[nearest]) ** 2, axis=-1)


def _normalized(x: Array) -> Array:
    norms = jnp.sum(x**2, axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.maximum(norms, 1e-24))


def _nearest(z: Array, labeled: Array, count: Array, k: int) -> Array:
    """Returns rising distances to the k nearest labeled nodes, inf for none."""
    # Labeled nodes come first.
    first = jnp.argsort(~reductions.whole(labeled), stable=True)
    first = jnp.pad(first, (0, -first.shape[0] % LABELED_AT_A_TIME))
    offsets = jnp.arange(LABELED_AT_A_TIME)

    def add_block(block: Array, nearest: Array) -> Array:
        places = block * LABELED_AT_A_TIME + offsets
        squares = 2.0 - 2.0 * z @ reductions.rows(z, first[places]).T
        squares = jnp.where(places < count, jnp.maximum(squares, 0.0), jnp.inf)
        both = jnp.concatenate([nearest, squares], axis=1)
        return -jax.lax.top_k(-both, k)[0]

    blocks = -(-count // LABELED_AT_A_TIME)
    start = jnp.full((z.shape[0], k), jnp.inf)
    return jnp.sqrt(jax.lax.fori_loop(0, blocks, add_block, start))
