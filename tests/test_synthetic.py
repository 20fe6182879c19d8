import numpy as np
import pytest
from support import synthetic

from oodgat_jax import splits
from oodgat_jax.types import InputError


def test_same_seed_same_graph():
    first, second = (synthetic.generate(2000, 20000, 8, seed=3) for _ in range(2))
    other = synthetic.generate(2000, 20000, 8, seed=4)
    np.testing.assert_array_equal(first.senders, second.senders)
    np.testing.assert_array_equal(first.features, second.features)
    assert not np.array_equal(first.labels, other.labels)


def test_edges_are_symmetric_homophilous_and_heavy_tailed():
    graph = synthetic.generate(5000, 100_000, 4, homophily=0.7)
    forward = set(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))
    assert all((receiver, sender) in forward for sender, receiver in forward)
    assert not np.any(graph.senders == graph.receivers)
    same = np.mean(graph.labels[graph.senders] == graph.labels[graph.receivers])
    assert 0.7 < same < 0.8  # an eighth of the remaining edges agree by chance
    degrees = np.bincount(graph.receivers, minlength=5000)
    assert degrees.max() > 10 * degrees.mean()


def test_features_tell_classes_apart_as_much_as_asked():
    def distance(signal):
        graph = synthetic.generate(4000, 8000, 16, signal=signal)
        means = [graph.features[graph.labels == c].mean(0) for c in range(8)]
        return np.linalg.norm(means[0] - means[1])

    assert distance(0.0) < 0.5 < 2.0 < distance(3.0)


def test_can_be_split():
    split = splits.draw(synthetic.generate(4000, 8000, 4), seed=1)
    assert split.train.sum() == 4 * 20


def test_impossible_classes_are_refused():
    with pytest.raises(InputError, match="known classes"):
        synthetic.generate(100, 200, num_classes=4, num_id=4)
