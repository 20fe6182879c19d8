"""What every backbone and method must satisfy, also those added later.

The same for detectors is in `test_detectors.py`, for regularizers in `test_losses.py`;
that nothing depends on `jit`, and no regularizer on hidden labels or on the order of
nodes, is a contract of `oodgat_jax.testing`, under which `test_testing.py` puts every
entry.
"""

import functools
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from support.random_graphs import random_edges

from oodgat_jax import graphs, methods, training
from oodgat_jax.graphs import sparse
from oodgat_jax.losses import REGULARIZERS
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.models import BACKBONES
from oodgat_jax.types import Rates, Split

NODES, FEATURES, CLASSES, HIDDEN, HEADS = 20, 7, 3, 5, 2
SIZES = {"hidden": HIDDEN, "heads": HEADS, "latent": HIDDEN}
KEY = jax.random.key(9)
RATES, NO_DROPOUT = Rates(0.5, 0.5, 0.6), Rates(0.0, 0.0, 0.0)
HYPER = {
    **{name: value for m in METHODS.values() for name, value in m.hyper.items()},
    **{name: value for t in REGULARIZERS.values() for name, value in t.hyper.items()},
    **{name.removesuffix("_printed"): 0.7 for name in REGULARIZERS},
    "threshold": 0.5,
    "lr": 0.01,
    "weight_decay": 5e-4,
    "input_dropout": 0.5,
    "dropout": 0.5,
    "attention_dropout": 0.6,
    "first_decay": 5e-4,
    "kernel": 0.1,
    "distillation": 1.0,
    "entropy_weight": 1e-4,
}
LATE = 500  # a step after which every part of a regularizer counts
EVERY_BACKBONE = pytest.mark.parametrize("name", BACKBONES)
EVERY_METHOD = pytest.mark.parametrize("name", METHODS)


def make_features():
    draw = np.random.default_rng(0)
    features = draw.normal(size=(NODES, FEATURES)).astype(np.float32)
    return np.where(draw.random(features.shape) < 0.5, features, 0.0)


def make_graph(order=None, path="sparse"):
    """A directed graph; node order[i] of it is node i of the renumbered one."""
    order = np.arange(NODES) if order is None else order
    place = np.argsort(order)
    senders, receivers = (place[ends] for ends in random_edges(NODES, 50, 1))
    return graphs.from_edges(make_features()[order], senders, receivers, path)


def make_split():
    labels = np.arange(NODES, dtype=np.int32) % (CLASSES + 1)
    nodes = np.arange(NODES)
    train = (labels < CLASSES) & (nodes < 10)
    test = nodes >= 15
    exposed = (labels == CLASSES) & (nodes < 10)
    val = ~train & ~test & ~exposed
    return Split(labels, labels == CLASSES, train, val, test, exposed)


def scrambled(split):
    """Other labels and is_ood on every node outside the train mask."""
    draw = np.random.default_rng(3)
    labels = (split.labels + draw.integers(1, CLASSES + 1, NODES)) % (CLASSES + 1)
    return split._replace(
        labels=np.where(split.train, split.labels, labels).astype(np.int32),
        is_ood=np.where(split.train, split.is_ood, ~split.is_ood),
    )


def random_params(module, graph):
    """Parameters without zeros, so that biases count too."""
    shapes = jax.eval_shape(module.init, jax.random.key(0), graph)

    def draw(path, leaf):
        seed = zlib.crc32(jax.tree_util.keystr(path).encode())
        values = np.random.default_rng(seed).normal(size=leaf.shape)
        return jnp.asarray(values, jnp.float32)

    return jax.tree_util.tree_map_with_path(draw, shapes)


@functools.cache
def backbone(name):
    """Module, parameters, and outputs(graph, rates, seed), compiled."""
    module = BACKBONES[name].build(CLASSES, SIZES)
    params = random_params(module, make_graph())
    apply = jax.jit(
        lambda graph, rates, key: module.apply(
            params, graph, rates, rngs={"dropout": key}
        )
    )

    def outputs(graph, rates=NO_DROPOUT, seed=0):
        return apply(graph, rates, jax.random.key(seed))

    return module, params, outputs


def assert_trees_close(got, expected, atol=1e-5):
    def check(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=atol)

    jax.tree.map(check, got, expected)


def assert_trees_equal(got, expected):
    jax.tree.map(np.testing.assert_array_equal, got, expected)


@EVERY_BACKBONE
def test_backbone_shapes(name):
    outputs = backbone(name)[2](make_graph())
    assert outputs.logits.shape == (NODES, CLASSES)
    assert outputs.hidden.shape[0] == NODES
    assert outputs.hidden.shape[1] in (HIDDEN, HIDDEN * HEADS)
    heads = 1 if name == "gcn-unknown" else HEADS
    assert all(layer.shape == (NODES, heads) for layer in outputs.attention)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(outputs))


@EVERY_BACKBONE
def test_backbone_follows_a_renumbering_of_nodes(name):
    outputs = backbone(name)[2]
    order = np.random.default_rng(5).permutation(NODES)
    moved = outputs(make_graph(order))
    expected = jax.tree.map(lambda leaf: leaf[order], outputs(make_graph()))
    assert_trees_close(moved, expected)


@EVERY_BACKBONE
def test_backbone_is_the_same_on_both_paths_and_storages(name):
    outputs = backbone(name)[2]
    stored = sparse.features(scipy.sparse.csr_array(make_features()))
    stored = jax.tree.map(jnp.asarray, stored)
    other = make_graph(path="segment")._replace(nodes=stored)
    assert_trees_close(outputs(other), outputs(make_graph()))


@EVERY_BACKBONE
def test_backbone_takes_dropout_from_its_key(name):
    outputs, graph = backbone(name)[2], make_graph()
    first, again, other = (outputs(graph, RATES, seed) for seed in (1, 1, 2))
    assert_trees_equal(first, again)
    assert not np.allclose(first.logits, other.logits)


def make_runs(split_of_each):
    """Runs that share key and hyper-parameters."""
    count = len(split_of_each)
    splits = jax.tree.map(lambda *leaves: jnp.stack(leaves), *split_of_each)
    hyper = {name: jnp.full(count, value) for name, value in HYPER.items()}
    return training.Run(jnp.stack([jax.random.key(1)] * count), splits, hyper)


@EVERY_METHOD
def test_method_sees_no_hidden_labels_and_reaches_every_parameter(name):
    """Loss, gradient and whatever is prepared are bit-identical."""
    method, graph, split = METHODS[name], make_graph(), make_split()
    assert (scrambled(split).labels != split.labels).sum() > NODES / 2
    module = recipes.module(method, SIZES, CLASSES)
    task = methods.assemble(method, module)
    runs = methods.prepare(method, module, graph, make_runs([split, scrambled(split)]))
    params = random_params(module, graph)

    def value(params, graph, run):
        aux = task.init_aux(params, run, graph)
        found = task.loss(params, aux, graph, run, 3, KEY)
        return found[0] if isinstance(found, tuple) else found

    loss = jax.jit(jax.value_and_grad(value))
    first, second = (
        loss(params, graph, jax.tree.map(lambda leaf, k=k: leaf[k], runs))
        for k in range(2)
    )
    assert_trees_equal(first, second)
    assert np.isfinite(first[0])
    for path, leaf in jax.tree_util.tree_leaves_with_path(first[1]):
        assert np.any(leaf), path
