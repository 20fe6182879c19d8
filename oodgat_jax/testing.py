"""Checks of the contracts that regularizers, detectors and backbones must keep.

Call them from your own tests:

  import oodgat_jax as og

  def test_my_regularizer():
      og.testing.check_regularizer(margin, hyper={"margin": 0.5})

Each raises AssertionError with a sentence that says which contract is broken. A graph
of four communities serves all of them, also cut into shards as on several devices: a
`jnp.mean` over nodes, where `reductions.mean` is needed, is found on a single CPU.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
import numpy as np

from oodgat_jax import graphs, metrics, models
from oodgat_jax.datasets import streaming
from oodgat_jax.graphs import reductions
from oodgat_jax.losses import Term
from oodgat_jax.sharding import layout as layouts
from oodgat_jax.sharding import shards
from oodgat_jax.types import (
    AnyArray,
    Array,
    Dataset,
    Detector,
    Outputs,
    Predict,
    Rates,
    Regularizer,
    Split,
)

CLASSES, PER_GROUP, FEATURES, HEADS, SHARDS = 3, 16, 8, 2, 3
NODES = (CLASSES + 1) * PER_GROUP
RTOL, ATOL = 2e-3, 2e-4
LATE = 500  # a step after which every part of a regularizer counts
_auroc = jax.jit(metrics.auroc)
_NO_HYPER: Mapping[str, float] = MappingProxyType({})


class Case(NamedTuple):
    """Three known communities and an unknown one, whole and in shards."""

    dataset: Dataset
    graph: jraph.GraphsTuple
    split: Split
    layout: layouts.Layout
    shards: jraph.GraphsTuple  # arrays [P, ...]


def make_case(seed: int = 0) -> Case:
    """Makes the graph that all checks use."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(CLASSES + 1), PER_GROUP)
    features = random.normal(size=(NODES, FEATURES)) / 3 + 2 * np.eye(FEATURES)[labels]
    near = np.where(labels[:, None] == labels, 0.3, 0.03)
    senders, receivers = np.nonzero(np.triu(random.random(near.shape) < near, 1))
    ends = np.append(senders, receivers), np.append(receivers, senders)
    dataset = Dataset(
        "checks", features.astype(np.float32), *ends, labels.astype(np.int32),
        tuple(range(CLASSES)), PER_GROUP // 4,
    )  # fmt: skip
    order = random.permutation(NODES)
    layout = layouts.even(NODES, SHARDS, order)
    whole = graphs.build(dataset, "segment")
    return Case(dataset, whole, _split(random, labels), layout, _cut(dataset, layout))


def check_regularizer(
    function: Regularizer,
    *,
    hyper: Mapping[str, float] = _NO_HYPER,
    needs: tuple[str, ...] = (),
) -> None:
    """Checks a regularizer `(outputs, split, hyper) -> scalar`.

    Args:
      function: the regularizer.
      hyper: its hyper-parameters, as `register_regularizer` takes them.
      needs: what it reads, as `register_regularizer` takes it.
    """
    case, hyper = make_case(), {k: jnp.float32(v) for k, v in hyper.items()}
    outputs = _random_outputs("attention" in needs)
    term = Term(function, "", {}, needs)

    def on_shard(graph: jraph.GraphsTuple, outputs: Outputs, split: Split) -> Array:
        return term.value(outputs, split, hyper, LATE, graph)

    def on_whole(outputs: Outputs, split: Split, hyper: Any) -> Array:
        return term.value(outputs, split, hyper, LATE, case.graph)

    eager = on_whole(outputs, case.split, hyper)
    _hold(jnp.shape(eager) == (), f"it must return a scalar, not {jnp.shape(eager)}")
    call = jax.jit(jax.value_and_grad(on_whole))
    value, slope = call(outputs, case.split, hyper)
    _hold(_finite((value, slope)), "its value and gradient must be finite")
    _close(eager, value, "it must give the same under jit")
    none = np.zeros(NODES, bool)
    nobody = case.split._replace(train=none, exposure=none)
    empty = call(outputs, nobody, hyper)
    _hold(_finite(empty), "it must be finite, with a finite gradient, on an empty mask")
    hidden = call(outputs, _scrambled(case.split), hyper)
    _close(hidden, (value, slope), "it must not read labels outside of split.train")
    spread = jax.tree.map(lambda x: _to_shards(case, np.asarray(x)), outputs)
    found = _on_shards(case, on_shard, spread)
    _close(found, np.full(SHARDS, value), _SHARDED)


def check_detector(detector: Detector, *, needs: tuple[str, ...] = ()) -> None:
    """Checks a detector `(predict, graph, split) -> [N]`, higher = more OOD.

    Args:
      detector: the detector.
      needs: what it reads, as `register_detector` takes it.
    """
    case = make_case()
    predict = _predictor("attention" in needs)
    scores = jax.jit(functools.partial(detector, predict))(case.graph, case.split)
    _hold(scores.shape == (NODES,), f"it must return [N] scores, not {scores.shape}")
    _hold(_finite(scores), "its scores must be finite")
    known = case.split.val if "validation" in needs else np.zeros(NODES, bool)
    splits = case.split, _scrambled(case.split, known)
    both = jax.tree.map(lambda *leaves: np.stack(leaves), *splits)
    call = jax.vmap(functools.partial(detector, predict), (None, 0))
    same, hidden = jax.jit(call)(case.graph, both)
    _close(same, scores, "it must give the same under vmap")
    _close(hidden, same, "it must not read is_ood, nor labels that it does not need")
    area = _auroc(scores, case.split.is_ood, case.split.test)
    _hold(bool(area > 0.5), f"OOD nodes must score higher, but the AUROC is {area:.2f}")

    def on_shard(graph: jraph.GraphsTuple, nothing: Any, split: Split) -> Array:
        return detector(predict, graph, split)

    found = case.layout.from_shards(_on_shards(case, on_shard, ()).reshape(-1))
    _close(found, scores, _SHARDED)


def check_backbone(module: type[nn.Module], **fields: Any) -> None:
    """Checks a backbone `module(num_classes=C)(graph, rates) -> Outputs`.

    Args:
      module: the linen module class.
      fields: of the module, beyond `num_classes`.
    """
    case, net = make_case(), module(num_classes=CLASSES, **fields)
    params = _random_params(net, case.graph)
    call = jax.jit(functools.partial(models.apply, net))
    outputs = call(params, case.graph)
    _check_outputs(outputs)
    calm = call(params, case.graph, Rates(0.0, 0.0, 0.0), jax.random.key(0))
    _close(calm, outputs, "rates of zero must be no dropout")
    dropout = params, case.graph, Rates(0.5, 0.5, 0.5), jax.random.key(1)
    # Not compiled: what depends on `jit`, and randomness of Python, show.
    again = models.apply(net, *dropout)
    _close(call(*dropout), again, "same key, same dropout, with and without jit")
    sparse = call(params, graphs.build(case.dataset, "sparse"))
    _close(sparse, outputs, "the sparse and the segment kernel must give the same")
    order = np.random.default_rng(5).permutation(NODES)
    moved = call(params, _renumbered(case.dataset, order))
    expected = jax.tree.map(lambda leaf: leaf[order], outputs)
    _close(moved, expected, "it must follow a renumbering of the nodes")

    def on_shard(graph: jraph.GraphsTuple, nothing: Any, split: Split) -> Array:
        return models.apply(net, params, graph).logits

    found = _on_shards(case, on_shard, ())
    found = found.reshape(-1, CLASSES).T
    _close(case.layout.from_shards(found).T, outputs.logits, _SHARDED)


_SHARDED = (
    "it must give the same on a sharded graph: sum, average and rank over nodes with "
    "oodgat_jax.graphs.reductions, and read neighbors through graphs.sources or "
    "graphs.aggregate"
)


def _check_outputs(outputs: Outputs) -> None:
    _hold(isinstance(outputs, Outputs), "it must return Outputs")
    shape = outputs.logits.shape
    _hold(shape == (NODES, CLASSES), f"logits must be [N, C], not {shape}")
    _hold(outputs.hidden.shape[0] == NODES, "hidden must be [N, D]")
    attention = all(x.shape[0] == NODES and x.ndim == 2 for x in outputs.attention)
    _hold(attention, "attention must be a tuple of OOD logits [N, H]")
    _hold(_finite(outputs), "its outputs must be finite")


def _split(random: np.random.Generator, labels: np.ndarray) -> Split:
    masks = np.zeros((3, NODES), bool)
    for label in range(CLASSES + 1):
        nodes = random.permutation(np.flatnonzero(labels == label))
        for mask, chosen in zip(masks, np.array_split(nodes, 3), strict=True):
            mask[chosen] = True
    is_ood = labels == CLASSES
    train, val, test = masks
    shown = train & is_ood
    return Split(labels.astype(np.int32), is_ood, train & ~is_ood, val, test, shown)


def _scrambled(split: Split, known: AnyArray | None = None) -> Split:
    """Returns other labels and is_ood outside of train and of what may be known."""
    random = np.random.default_rng(3)
    free = ~split.train if known is None else ~split.train & ~known
    labels = np.where(free, random.integers(-1, CLASSES + 1, NODES), split.labels)
    is_ood = np.where(free, random.random(NODES) < 0.5, split.is_ood)
    return split._replace(labels=labels.astype(np.int32), is_ood=is_ood)


def _random_outputs(attention: bool) -> Outputs:
    random = np.random.default_rng(4)

    def draw(*shape: int) -> Array:
        return jnp.asarray(random.normal(size=shape), jnp.float32)

    layers = (draw(NODES, HEADS), draw(NODES, HEADS)) if attention else ()
    return Outputs(draw(NODES, CLASSES), draw(NODES, FEATURES), layers)


def _predictor(attention: bool) -> Predict:
    """Returns a fixed linear model: mean over neighbors, then class scores."""

    def predict(graph: jraph.GraphsTuple) -> Outputs:
        weights = graphs.symmetric_weights(graph)
        hidden = graphs.aggregate(graph, weights, jnp.asarray(graph.nodes))
        ood = hidden[:, CLASSES : CLASSES + 1] + jnp.arange(HEADS) - 1.0
        return Outputs(
            2.0 * hidden[:, :CLASSES], hidden, (ood, ood) if attention else ()
        )

    return predict


def _random_params(net: nn.Module, graph: jraph.GraphsTuple) -> Any:
    """Returns parameters without zeros, so that biases count too."""
    shapes = jax.eval_shape(lambda: net.init({"params": jax.random.key(0)}, graph))
    random = np.random.default_rng(1)
    return jax.tree.map(
        lambda leaf: jnp.asarray(random.normal(0, 0.5, leaf.shape), leaf.dtype), shapes
    )


def _renumbered(dataset: Dataset, order: np.ndarray) -> jraph.GraphsTuple:
    place = np.argsort(order)
    ends = place[dataset.senders], place[dataset.receivers]
    return graphs.from_edges(dataset.features[order], *ends, "segment")


def _cut(dataset: Dataset, layout: layouts.Layout) -> jraph.GraphsTuple:
    """Cuts the graph into shards, stacked [P, ...], their requests exchanged."""
    read = streaming.of_dataset(dataset, layout.order)
    parts = [read(*layout.starts[n : n + 2].tolist()) for n in range(SHARDS)]
    needs = [shards.sizes(layout, n, part) for n, part in enumerate(parts)]
    fit = shards.Sizes(*np.max(needs, axis=0).tolist())
    total = sum(len(part.senders) for part in parts)
    built = [
        shards.build(layout, n, part, fit, total, 0, False)
        for n, part in enumerate(parts)
    ]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *built)
    send = np.swapaxes(stacked.globals.send, 0, 1)
    return stacked._replace(globals=stacked.globals._replace(send=send))


def _to_shards(case: Case, values: np.ndarray) -> Array:
    """Arranges node values [N, ...] as [P, B, ...]."""
    placed = case.layout.to_shards(np.moveaxis(values, 0, -1))
    placed = np.moveaxis(placed, -1, 0)
    return jnp.asarray(placed.reshape(SHARDS, case.layout.size, *values.shape[1:]))


def _on_shards(case: Case, function: Callable[..., Array], values: Any) -> Array:
    """Calls (shard, values, split) on all shards, as devices would: [P, ...]."""
    split = case.layout.split_to_shards(case.split)
    split = jax.tree.map(lambda leaf: jnp.asarray(leaf).reshape(SHARDS, -1), split)

    def on_one(graph: jraph.GraphsTuple, values: Any, split: Split) -> Array:
        with reductions.on_shard(graph.globals.node_ids, graph.globals.is_real):
            return function(graph, values, split)

    mapped = jax.vmap(on_one, axis_name=reductions.AXIS)
    return jax.jit(mapped)(case.shards, values, split)


def _finite(tree: Any) -> bool:
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(tree))


def _close(found: Any, expected: Any, contract: str) -> None:
    def same(a: Any, b: Any) -> bool:
        return np.allclose(a, b, rtol=RTOL, atol=ATOL)

    agree = jax.tree.leaves(jax.tree.map(same, found, expected))
    _hold(all(agree), contract)


def _hold(fact: bool, contract: str) -> None:
    if not fact:
        raise AssertionError(f"A contract is broken: {contract}.")
