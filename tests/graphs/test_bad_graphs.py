"""Odd graphs through the whole of it: correct behaviour, or one clear sentence."""

import numpy as np
import pytest
from support import synthetic

from oodgat_jax import graphs
from oodgat_jax.estimator import OODGATClassifier
from oodgat_jax.types import InputError

NODES = 60
BRIEF = {"max_steps": 11}
NONE = np.zeros((0, 2), int)
LOOPS = np.stack([np.arange(NODES)] * 2, 1)


@pytest.fixture(scope="module")
def made():
    """Features, edges and labels; nodes 50 to 59 have no edge."""
    dataset = synthetic.generate(NODES, 300, 5, signal=2.0)
    edges = np.stack([dataset.senders, dataset.receivers], 1)
    labels = np.where(
        (dataset.labels < 4) & (np.arange(NODES) < 45), dataset.labels, -1
    )
    return dataset.features, edges[(edges < 50).all(1)], labels


def scores(made, edges, method="oodgat", **changes):
    features, _, labels = made
    model = OODGATClassifier(method, members=1, settings=BRIEF, **changes)
    return model.fit(features, edges, labels).ood_score()


@pytest.mark.parametrize("method", ["oodgat", "gcn"])
def test_loops_alone_are_no_edges(made, method):
    without = scores(made, NONE, method)
    assert np.isfinite(without).all()
    np.testing.assert_array_equal(scores(made, LOOPS, method), without)


def test_repeated_edges_and_loops_change_nothing(made):
    edges = made[1]
    more = np.concatenate([edges, edges[::-1], LOOPS])
    found = scores(made, edges)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(scores(made, more), found)


def test_a_graph_of_one_node_is_built_and_has_nothing_to_learn():
    graph = graphs.from_edges(np.ones((1, 2)), NONE[:, 0], NONE[:, 0])
    assert graphs.num_nodes(graph) == 1
    with pytest.raises(InputError, match="No node has a label"):
        OODGATClassifier().fit(np.ones((1, 2)), NONE, [-1])


@pytest.mark.parametrize(
    ("features", "edges", "labels", "sentence"),
    [
        (np.zeros((0, 3)), NONE, [], "row per node"),
        (np.zeros((3, 0)), NONE, [0, 1, -1], "column per feature"),
        (np.ones((3, 2)), [[0, 2**40]], [0, 1, -1], str(2**40)),
        (np.ones((3, 2)), [[0, -(2**40)]], [0, 1, -1], str(2**40)),
        (np.ones((5, 2)), NONE, [0, 0, 1, 1], "4 labels for 5 rows"),
    ],
)
def test_what_is_no_graph_is_one_sentence(features, edges, labels, sentence):
    with pytest.raises(InputError, match=sentence) as raised:
        OODGATClassifier().fit(features, edges, labels)
    assert "\n" not in str(raised.value)


def test_a_class_without_train_node_is_named(made):
    features, edges, labels = made
    with pytest.raises(InputError, match="labeled node of every class"):
        OODGATClassifier().fit(features, edges, labels, validation=labels == 0)
