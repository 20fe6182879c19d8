"""Metrics of node classification, OOD detection and both at once.

All are pure functions of fixed-shape arrays and a mask over the nodes, so they work
under `jit` and `vmap`. OOD is the positive class; a higher score is more OOD. Nodes
outside the mask have no influence, whatever their scores and labels are.

Counts are int32 (exact up to N = 10^7) and become float32 only in ratios; ratios are
added pairwise, so a sum over 10^6 nodes keeps about six digits.

Where a metric is not defined it is still finite, and never flatters: accuracy, AUPR
and F1 are 0, AUROC is 0.5 (chance), FPR95 is 1. A NaN score inside the mask makes
the metrics of the scores NaN, so that a diverged run shows.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from oodgat_jax.graphs import reductions
from oodgat_jax.types import AnyArray, Array, Split


class Ranking(NamedTuple):
    """The nodes by falling score, those outside the mask behind all others."""

    order: Array  # [N] int32, node at each rank
    scores: Array  # [N], falling; -inf outside the mask
    inside: AnyArray  # [N] bool, the mask
    ends: Array  # [N] bool, the last of a group of equal scores inside the mask


class Roc(NamedTuple):
    """Counts of nodes called OOD when the threshold is each node's score."""

    tp: Array  # [N] int32, OOD nodes up to this rank
    fp: Array  # [N] int32, ID nodes up to this rank
    points: Array  # [N] bool, ranks that are ROC points (one per distinct score)

    @property
    def num_ood(self) -> Array:
        """Returns P, the OOD nodes in the mask."""
        return self.tp[-1]

    @property
    def num_id(self) -> Array:
        """Returns the ID nodes in the mask."""
        return self.fp[-1]


def _sum(values: Array) -> Array:
    """Sums [N] by halves: the error grows with log N, not with N."""
    while values.shape[0] > 1:
        half = values.shape[0] // 2
        odd = values[2 * half :]
        values = jnp.concatenate([values[:half] + values[half : 2 * half], odd])
    return values[0]


def _ratio(part: Array, whole: Array) -> Array:
    """Computes part / whole of counts, 0 where whole is 0."""
    return part / jnp.maximum(whole, 1).astype(jnp.float32)


def _nan_if_unordered(value: Array, scores: AnyArray, mask: AnyArray) -> Array:
    """Computes value, or NaN if a score inside the mask is NaN."""
    return jnp.where(reductions.anywhere(jnp.isnan(scores) & mask), jnp.nan, value)


def _rank(scores: Array, mask: AnyArray) -> Ranking:
    """Sorts the nodes by (outside the mask, falling score)."""
    nodes = jnp.arange(scores.shape[0], dtype=jnp.int32)
    rising = jnp.where(mask, -jnp.asarray(scores), jnp.inf)
    outside = ~jnp.asarray(mask, bool)
    outside, rising, order = lax.sort((outside, rising, nodes), num_keys=2)
    followed = ~outside[1:] & (rising[1:] == rising[:-1])
    ends = ~outside & ~jnp.append(followed, False)
    return Ranking(order, -rising, ~outside, ends)


def _roc(scores: AnyArray, is_ood: AnyArray, mask: AnyArray) -> Roc:
    """Counts ROC points at every rank."""
    scores, is_ood, mask = (
        reductions.whole(jnp.asarray(x)) for x in (scores, is_ood, mask)
    )
    ranking = _rank(scores, mask)
    positive = jnp.asarray(is_ood, bool)[ranking.order]
    tp = jnp.cumsum(ranking.inside & positive, dtype=jnp.int32)
    fp = jnp.cumsum(ranking.inside & ~positive, dtype=jnp.int32)
    return Roc(tp, fp, ranking.ends)


def _at_previous_point(counts: Array, points: Array) -> Array:
    """Returns rising counts [N] as of the last ROC point before each rank."""
    reached = lax.cummax(jnp.where(points, counts, 0))
    return jnp.concatenate([jnp.zeros(1, counts.dtype), reached[:-1]])


def accuracy(logits: Array, split: Split, mask: AnyArray) -> Array:
    """Computes the share of ID nodes in the mask whose largest logit is their class.

    Args:
      logits: [N, C]. A row with a NaN counts as wrong.
      split: labels and is_ood are used; OOD nodes and nodes without label are ignored.
      mask: [N] bool.

    Returns:
      A scalar in [0, 1]; 0 if the mask has no ID node.
    """
    labels = jnp.asarray(split.labels)
    counted = mask & ~jnp.asarray(split.is_ood) & (labels >= 0)
    right = (jnp.argmax(logits, axis=-1) == labels) & ~jnp.isnan(logits).any(axis=-1)
    return _ratio(reductions.total(counted & right), reductions.total(counted))


def auroc(scores: AnyArray, is_ood: AnyArray, mask: AnyArray) -> Array:
    """Computes the area under the ROC curve, exact with ties.

    P(s_ood > s_id) + P(s_ood = s_id) / 2 over pairs in the mask, computed as the
    trapezoids between ROC points in O(N log N).

    Args:
      scores: [N], higher is more OOD.
      is_ood: [N] bool.
      mask: [N] bool.

    Returns:
      A scalar in [0, 1]; 0.5 if the mask lacks ID or OOD nodes.
    """
    tp, fp, points = roc = _roc(scores, is_ood, mask)
    width = _ratio(fp - _at_previous_point(fp, points), roc.num_id)
    height = _ratio(tp + _at_previous_point(tp, points), 2 * roc.num_ood)
    area = _sum(jnp.where(points, width * height, 0.0))
    area = jnp.where((roc.num_ood > 0) & (roc.num_id > 0), area, 0.5)
    return _nan_if_unordered(area, scores, mask)


def aupr(scores: AnyArray, is_ood: AnyArray, mask: AnyArray) -> Array:
    """Computes average precision, OOD positive: sum_k (R_k - R_{k-1}) P_k.

    R and P are recall and precision at each distinct score, as in scikit-learn's
    `average_precision_score`. Arguments as in `auroc`; 0 without an OOD node.
    """
    tp, fp, points = roc = _roc(scores, is_ood, mask)
    gain = _ratio(tp - _at_previous_point(tp, points), roc.num_ood)
    area = _sum(jnp.where(points, gain * _ratio(tp, tp + fp), 0.0))
    return _nan_if_unordered(area, scores, mask)


def fpr_at_tpr(
    scores: AnyArray, is_ood: AnyArray, mask: AnyArray, percent: int = 95
) -> Array:
    """Returns the FPR at the first ROC point with TPR >= percent / 100; else 1.

    ROC points lie at distinct scores. Arguments as in `auroc`. The comparison is
    between integers, so that TPR = 0.95 exactly is reached and not missed by rounding.
    """
    tp, fp, points = roc = _roc(scores, is_ood, mask)
    reached = points & (100 * tp >= percent * roc.num_ood)
    rate = _ratio(jnp.min(jnp.where(reached, fp, roc.num_id)), roc.num_id)
    rate = jnp.where((roc.num_ood > 0) & (roc.num_id > 0), rate, 1.0)
    return _nan_if_unordered(rate, scores, mask)


def fpr_near_tpr(
    scores: AnyArray, is_ood: AnyArray, mask: AnyArray, percent: int = 95
) -> Array:
    """Computes the authors' FPR: mean over ROC points with |TPR - percent| < 0.5 %.

    All distinct scores are ROC points (scikit-learn's `drop_intermediate=False`).
    Without such a point it is 0, which flatters: it is here to compare with the paper,
    and `fpr_at_tpr` is the one to report. Arguments as in `auroc`.
    """
    tp, fp, points = roc = _roc(scores, is_ood, mask)
    near = points & (jnp.abs(200 * tp - 2 * percent * roc.num_ood) < roc.num_ood)
    rates = _ratio(fp, roc.num_id)
    mean = _ratio(_sum(jnp.where(near, rates, 0.0)), jnp.sum(near))
    return _nan_if_unordered(mean, scores, mask)


def fpr95(scores: AnyArray, is_ood: AnyArray, mask: AnyArray) -> Array:
    """Computes `fpr_at_tpr` at 95 %."""
    return fpr_at_tpr(scores, is_ood, mask, percent=95)


def fpr95_paper(scores: AnyArray, is_ood: AnyArray, mask: AnyArray) -> Array:
    """Computes `fpr_near_tpr` at 95 %."""
    return fpr_near_tpr(scores, is_ood, mask, percent=95)


def _f1(hits: Array, called: Array, members: Array) -> Array:
    """Computes F1 of one class from counts: 2 hits / (called + members)."""
    return _ratio(2 * hits, called + members)


def _weighted_f1_curve(
    ranking: Ranking, predicted: Array, labels: AnyArray, num_classes: int
) -> Array:
    """Computes weighted F1 when the k top-ranked nodes are called OOD: [N + 1].

    The first k nodes leave their predicted class c for class C, so the counts of
    every class at every k are totals minus running sums. One class at a time: O(N C)
    time, O(N) memory.
    """
    predicted, labels = predicted[ranking.order], labels[ranking.order]
    size = jnp.sum(ranking.inside)

    def running(flags: Array) -> Array:
        total = jnp.cumsum(ranking.inside & flags, dtype=jnp.int32)
        return jnp.concatenate([jnp.zeros(1, jnp.int32), total])

    def add_class(curve: Array, c: Array) -> tuple[Array, None]:
        called, member = running(predicted == c), running(labels == c)
        hit = running((predicted == c) & (labels == c))
        f1 = _f1(hit[-1] - hit, called[-1] - called, member[-1])
        return curve + _ratio(member[-1], size) * f1, None

    ood = running(labels == num_classes)
    curve = _ratio(ood[-1], size) * _f1(ood, running(labels >= 0), ood[-1])
    return lax.scan(add_class, curve, jnp.arange(num_classes))[0]


def weighted_f1(
    scores: Array,
    predicted: Array,
    labels: AnyArray,
    mask: AnyArray,
    num_classes: int,
    threshold: Array | float,
) -> Array:
    """Computes weighted F1 of joint classification over C + 1 classes, OOD being C.

    A node is called OOD if score > threshold, else its predicted class. The F1 of
    each class is weighted by its share of the nodes, as scikit-learn's
    `f1_score(average="weighted")`.

    Args:
      scores: [N], higher is more OOD.
      predicted: [N] int, class in 0..C-1.
      labels: [N] int, C for OOD; nodes with a negative label are ignored.
      mask: [N] bool.
      num_classes: C.
      threshold: scalar.

    Returns:
      A scalar in [0, 1]; 0 on an empty mask.
    """
    classes = jnp.arange(num_classes + 1)[:, None]
    counted = mask & (labels >= 0)
    called = jnp.where(scores > threshold, num_classes, predicted)
    member, chosen = counted & (labels == classes), counted & (called == classes)
    members, chosen, hits = (
        reductions.add(jnp.sum(flags, axis=1))
        for flags in (member, chosen, member & chosen)
    )
    f1 = _f1(hits, chosen, members)
    value = jnp.sum(_ratio(members, reductions.total(counted)) * f1)
    return _nan_if_unordered(value, scores, counted)


def best_threshold(
    scores: Array, predicted: Array, labels: AnyArray, mask: AnyArray, num_classes: int
) -> Array:
    """Returns the threshold with the best `weighted_f1` in the mask, over all.

    Only the distinct scores in the mask (OOD means score > threshold) and -inf, below
    them all, can differ; all are tried. Among equally good ones the highest is taken,
    which calls the fewest nodes OOD. Arguments as in `weighted_f1`.

    Returns:
      A scalar; inf on an empty mask (no node is OOD), -inf if all are best called OOD.
    """
    joint = (scores, predicted, labels, mask)
    scores, predicted, labels, mask = (reductions.whole(jnp.asarray(x)) for x in joint)
    ranking = _rank(scores, mask & (labels >= 0))
    curve = _weighted_f1_curve(ranking, predicted, labels, num_classes)
    thresholds = jnp.append(ranking.scores, -jnp.inf)
    # A cut below a score of -inf is no threshold: nothing is smaller.
    cuts = ranking.ends & (ranking.scores > thresholds[1:])
    cuts = jnp.concatenate([jnp.ones(1, bool), cuts])
    best = thresholds[jnp.argmax(jnp.where(cuts, curve, -1.0))]
    return jnp.where(jnp.any(ranking.inside), best, jnp.inf)


def evaluate(scores: Array, logits: Array, split: Split) -> dict[str, Array]:
    """Computes all metrics of one run on its test nodes; `vmap` it over runs.

    `weighted_f1` takes the threshold that is best on the test nodes, as the paper
    does, and so looks at their labels; `weighted_f1_val` takes the one that is best on
    the validation nodes.

    Args:
      scores: [N], higher is more OOD.
      logits: [N, C].
      split: the run's split.

    Returns:
      Scalars: accuracy, auroc, aupr, fpr95, fpr95_paper, weighted_f1, weighted_f1_val.
    """
    split = jax.tree.map(jnp.asarray, split)
    detection = (scores, split.is_ood, split.test)
    predicted, num_classes = jnp.argmax(logits, axis=-1), logits.shape[-1]

    def f1_with_threshold_of(mask: AnyArray) -> Array:
        joint = (scores, predicted, split.labels)
        threshold = best_threshold(*joint, mask, num_classes)
        return weighted_f1(*joint, split.test, num_classes, threshold)

    return {
        "accuracy": accuracy(logits, split, split.test),
        "auroc": auroc(*detection),
        "aupr": aupr(*detection),
        "fpr95": fpr95(*detection),
        "fpr95_paper": fpr95_paper(*detection),
        "weighted_f1": f1_with_threshold_of(split.test),
        "weighted_f1_val": f1_with_threshold_of(split.val),
    }


def validation_score(scores: Array, logits: Array, split: Split) -> Array:
    """Returns what picks the best step: ID accuracy + AUROC on validation nodes.

    In [0, 2], higher is better. Arguments as in `evaluate`.
    """
    detected = auroc(scores, split.is_ood, split.val)
    return accuracy(logits, split, split.val) + detected
