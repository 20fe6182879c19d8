"""Each detector against a plain numpy version of its equation."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import sklearn.covariance
from support import detector_cases
from support.detector_cases import CLASSES, NODES, softmax

from oodgat_jax import detectors, models
from oodgat_jax.detectors import DETECTORS

CLOSE = {"rtol": 2e-4, "atol": 1e-5}


@pytest.fixture(scope="module")
def case():
    return detector_cases.make()


@pytest.fixture(scope="module")
def logits(case):
    return detector_cases.hidden(case) @ case.weights


def scores(detector, case):
    def call(graph, split):
        return detector(case.predict, graph, split)

    return np.asarray(jax.jit(call)(case.graph, case.split))


def test_simple_scores(case, logits):
    p = softmax(logits)
    expected = {
        "MSP": 1 - p.max(1),
        "ENT": -(p * np.log(p)).sum(1),
        "maxlogit": -logits.max(1),
        "energy": -scipy.special.logsumexp(logits, axis=1),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(scores(DETECTORS[name], case), values, **CLOSE)
    warm = -5 * scipy.special.logsumexp(logits / 5, axis=1)
    np.testing.assert_allclose(scores(detectors.energy(5.0), case), warm, **CLOSE)


def test_attention(case):
    first = detector_cases.hidden(case)[:, -1:] - 0.5 + np.arange(2)
    both = np.concatenate([first, 2 * first], axis=1)
    coded, printed = (
        scipy.special.expit(both.mean(1)),
        scipy.special.expit(both).mean(1),
    )
    np.testing.assert_allclose(scores(DETECTORS["ATT"], case), coded, **CLOSE)
    np.testing.assert_allclose(scores(DETECTORS["ATT_printed"], case), printed, **CLOSE)


def odin(case, temperature, epsilon, moves, zero_sign=0.0):
    """The gradient of the mean cross-entropy of a linear model by hand."""
    smooth = detector_cases.smoothing(case)
    called = (smooth @ case.features @ case.weights).argmax(1)
    p = softmax(smooth @ case.features @ case.weights / temperature)
    slope = (p - np.eye(CLASSES)[called]) / (temperature * NODES)
    slope = smooth.T @ slope @ case.weights.T
    sign = np.where(slope == 0, zero_sign, np.sign(slope))
    moved = case.features - epsilon * sign * moves
    return -softmax(smooth @ moved @ case.weights / temperature).max(1)


@pytest.mark.parametrize("stored", ["sparse", "dense"])
@pytest.mark.parametrize("dense", [False, True])
def test_odin(stored, dense):
    case = detector_cases.make(stored=stored)
    moves = (case.features != 0) | dense | (stored == "dense")
    detector = detectors.odin(temperature=2.0, epsilon=0.1, dense=dense)
    expected = odin(case, 2.0, 0.1, moves)
    np.testing.assert_allclose(scores(detector, case), expected, **CLOSE)
    assert np.abs(expected - odin(case, 2.0, 0.0, moves)).max() > 1e-2


def test_odin_sparse_equals_dense_where_all_is_stored():
    """A matrix without zeros, as SparseFeatures and as an array."""
    case = detector_cases.make()
    stored = detectors.odin(epsilon=0.1, temperature=5.0, dense=True)
    array = detector_cases.make(stored="dense")
    np.testing.assert_allclose(scores(stored, case), scores(stored, array), **CLOSE)


def test_odin_sign_of_zero():
    """The last feature has no weight: its gradient is exactly zero."""
    case = detector_cases.make(stored="dense")
    weights = case.weights.copy()
    weights[-1] = 0.0
    flat = case._replace(weights=weights, predict=detector_cases.linear(weights))

    def moved(zero_sign):
        def loss(graph):
            return jnp.sum(flat.predict(graph).logits)

        stepped = detectors.input_step(loss, flat.graph, 0.5, zero_sign=zero_sign)
        return np.asarray(flat.graph.nodes - stepped.nodes)

    np.testing.assert_array_equal(moved(0.0)[:, -1], 0.0)
    np.testing.assert_allclose(moved(1.0)[:, -1], 0.5, atol=1e-6)
    np.testing.assert_array_equal(moved(0.0)[:, 0], moved(1.0)[:, 0])


@pytest.mark.parametrize("temperature", [1.0, 1000.0])
def test_odin_without_a_step_is_tempered_msp(case, logits, temperature):
    expected = -softmax(logits / temperature).max(1)
    found = scores(detectors.odin(temperature, 0.0), case)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def labeled(case, hidden):
    """Class means [C, D] and the labeled nodes around them."""
    train, labels = case.split.train, case.split.labels
    means = np.stack([hidden[train & (labels == c)].mean(0) for c in range(CLASSES)])
    return means, hidden[train] - means[labels[train]]


def nearest(hidden, means, inverse):
    apart = hidden[:, None] - means
    return np.einsum("ncd,de,nce->nc", apart, inverse, apart).min(1)


@pytest.mark.parametrize("layer", ["hidden", "logits"])
def test_mahalanobis(layer, case, logits):
    z = {"hidden": detector_cases.hidden(case), "logits": logits}[layer]
    means, centered = labeled(case, z)
    fitted = sklearn.covariance.LedoitWolf(assume_centered=True).fit(centered)
    assert layer == "logits" or 0.0 < fitted.shrinkage_ < 1.0
    shrunk = nearest(z, means, np.linalg.inv(fitted.covariance_))
    found = scores(detectors.mahalanobis(layer=layer), case)
    np.testing.assert_allclose(found, shrunk, rtol=1e-3)


def test_mahalanobis_with_few_labeled_nodes(case):
    """A singular covariance and its pseudo-inverse."""
    hidden = detector_cases.hidden(case)
    train = case.split.train & (np.arange(NODES) % 3 == 0)
    few = case._replace(split=case.split._replace(train=train))
    means, centered = labeled(few, hidden)
    sample = centered.T @ centered / len(centered)
    assert np.linalg.matrix_rank(sample) < len(sample)
    plain = nearest(hidden, means, np.linalg.pinv(sample, rcond=2e-5))
    found = scores(detectors.mahalanobis(covariance="pseudo-inverse"), few)
    np.testing.assert_allclose(found, plain, rtol=1e-2)


def test_mahalanobis_input_step():
    """By hand: the gradient of mean(score / 2) with respect to linear features."""
    case = detector_cases.make(stored="dense")
    hidden = detector_cases.hidden(case)
    means, centered = labeled(case, hidden)
    fitted = sklearn.covariance.LedoitWolf(assume_centered=True).fit(centered)
    inverse = np.linalg.inv(fitted.covariance_)
    apart = hidden[:, None] - means
    chosen = np.einsum("ncd,de,nce->nc", apart, inverse, apart).argmin(1)
    slope = (hidden - means[chosen]) @ inverse / NODES
    slope = detector_cases.smoothing(case).T @ slope
    moved = detector_cases.hidden(case, case.features - 0.05 * np.sign(slope))
    found = scores(detectors.mahalanobis(0.05), case)
    np.testing.assert_allclose(found, nearest(moved, means, inverse), rtol=2e-3)


@pytest.mark.parametrize("rows", [8, 40])
def test_ledoit_wolf(rows):
    x = np.random.default_rng(rows).normal(size=(rows, 6)) * np.arange(1, 7)
    expected = sklearn.covariance.LedoitWolf(assume_centered=True).fit(x).covariance_
    padded = np.concatenate([x, np.zeros((5, 6))]).astype(np.float32)
    found = jax.jit(detectors.ledoit_wolf)(padded, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_class_without_labeled_nodes_is_no_class(case):
    hidden = detector_cases.hidden(case)
    train = case.split.train & (case.split.labels != 1)
    alone = case._replace(split=case.split._replace(train=train))
    found = scores(detectors.mahalanobis(), alone)
    means = np.stack([hidden[train & (case.split.labels == c)].mean(0) for c in (0, 2)])
    centered = hidden[train] - means[case.split.labels[train] // 2]
    fitted = sklearn.covariance.LedoitWolf(assume_centered=True).fit(centered)
    expected = nearest(hidden, means, np.linalg.inv(fitted.covariance_))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("block", [4, 256])
@pytest.mark.parametrize("k", [1, 10, 40])
def test_knn(monkeypatch, case, k, block):
    """Also with more blocks than one, and with k beyond the labeled nodes."""
    monkeypatch.setattr("oodgat_jax.detectors.distance.LABELED_AT_A_TIME", block)
    hidden = detector_cases.hidden(case)
    unit = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    apart = np.linalg.norm(unit[:, None] - unit[case.split.train], axis=-1)
    place = min(k, apart.shape[1]) - 1
    expected = np.sort(apart, axis=1)[:, place]
    np.testing.assert_allclose(scores(detectors.knn(k), case), expected, atol=1e-3)


def row_mean(adjacency):
    return adjacency / np.maximum(adjacency.sum(1, keepdims=True), 1)


@pytest.mark.parametrize(("rounds", "alpha"), [(0, 0.5), (2, 0.5), (5, 0.1)])
def test_propagation(case, logits, rounds, alpha):
    energy = -scipy.special.logsumexp(logits, axis=1)
    expected = energy.copy()
    for _ in range(rounds):
        expected = alpha * expected + (1 - alpha) * row_mean(case.adjacency) @ expected
    found = scores(detectors.gnnsafe(rounds, alpha), case)
    np.testing.assert_allclose(found[:-1], expected[:-1], **CLOSE)
    np.testing.assert_allclose(found[-1], energy[-1], **CLOSE)


def test_propagation_follows_the_edges_of_a_directed_graph():
    """Node 1 hears from node 0 and not the other way round."""
    graph = detectors.propagation.graphs.from_edges(
        np.ones((3, 1), np.float32), np.array([0]), np.array([1])
    )
    spread = detectors.propagate(lambda *_: jnp.array([4.0, 0.0, 7.0]), rounds=1)
    np.testing.assert_allclose(spread(None, graph, None), [4.0, 2.0, 7.0])


def grasp(case, logits, rounds, score, hold):
    """With loops, and the joined edges in a dense matrix."""
    confidence, train = softmax(logits).max(1), case.split.train
    order = [i for i in np.argsort(confidence) if not train[i]]
    size = int(0.05 * len(order))
    unsure, sure = set(order[:size]), set(order[-size:])
    ratio = {}
    for i in np.flatnonzero(train):
        linked = set(np.flatnonzero(case.adjacency[i]))
        ratio[i] = len(linked & sure) / (len(linked & unsure) + 1)
    best = sorted(ratio, key=lambda i: (-ratio[i], i))[: len(ratio) // 2]
    matrix = case.adjacency.copy()
    matrix[np.ix_(best, best)] += 1.0
    first = {"MSP": 1 - confidence, "energy": -scipy.special.logsumexp(logits, axis=1)}
    now = first[score]
    for _ in range(rounds):
        after = row_mean(matrix) @ now
        after[-1] = now[-1]
        now = np.where(train & hold, now, after)
    return now


@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize(("rounds", "score"), [(8, "energy"), (3, "MSP")])
def test_grasp(case, logits, rounds, score, hold):
    found = scores(detectors.grasp(rounds, score=score, hold=hold), case)
    expected = grasp(case, logits, rounds, score, hold)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_grasp_joins_in_vain_if_labeled_nodes_are_held(case):
    """Why `hold` is off by default."""
    free = ~case.split.train
    joined, not_joined = (detectors.grasp(top=top, hold=True) for top in (0.5, 0.0))
    np.testing.assert_array_equal(
        scores(joined, case)[free], scores(not_joined, case)[free]
    )
    joined, not_joined = (detectors.grasp(top=top) for top in (0.5, 0.0))
    assert not np.allclose(scores(joined, case)[free], scores(not_joined, case)[free])


@dataclasses.dataclass
class Calibrator:
    """CaGCN in float64 without dropout, its gradient by differences."""

    case: detector_cases.Case
    logits: np.ndarray

    def calibrated(self, flat):
        shapes = [(CLASSES, 16), (16,), (16, 1), (1,)]
        cuts = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
        pieces = zip(np.split(flat, cuts), shapes, strict=True)
        w1, b1, w2, b2 = (piece.reshape(shape) for piece, shape in pieces)
        smooth = detector_cases.smoothing(self.case)
        hidden = np.maximum(smooth @ self.logits @ w1 + b1, 0)
        return self.logits * np.log(1.1 + np.exp(smooth @ hidden @ w2 + b2))

    def loss(self, flat, margin_weight):
        split = self.case.split
        known = split.val & ~split.is_ood
        p = softmax(self.calibrated(flat)[known])
        labels = split.labels[known]
        ce = -np.log(p[np.arange(len(p)), labels]).mean()
        second, first = np.sort(p, axis=1)[:, -2:].T
        right = p.argmax(1) == labels
        margin = np.where(right, 1 - first + second, first - second).mean()
        return ce + margin_weight * margin

    def gradient(self, flat, margin_weight):
        steps = 1e-6 * np.eye(len(flat))
        up, down = ([self.loss(flat + s * d, margin_weight) for d in steps]
                    for s in (1, -1))  # fmt: skip
        return (np.array(up) - np.array(down)) / 2e-6

    def train(self, flat, steps, patience, lr, margin_weight, decay=5e-3):
        """Adam with L2; the parameters of the lowest cross-entropy, steps taken."""
        m = v = np.zeros_like(flat)
        best, lowest, found_at = flat, np.inf, 0
        for t in range(1, steps + 1):
            g = self.gradient(flat, margin_weight) + decay * flat
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            rate = np.sqrt(v / (1 - 0.999**t)) + 1e-8
            flat = flat - lr * m / (1 - 0.9**t) / rate
            if self.loss(flat, 0.0) < lowest:
                best, lowest, found_at = flat, self.loss(flat, 0.0), t
            if t - found_at == patience:
                break
        return best, t


def first_parameters(case, logits, seed):
    """Those of a GCN, in the order of the layers."""
    graph = case.graph._replace(nodes=jnp.asarray(logits, jnp.float32))
    gcn = models.GCN(num_classes=1, hidden=16)
    tree = gcn.init({"params": jax.random.key(seed)}, graph)["params"]
    order = [("Linear_0", "kernel"), ("Bias_0", "bias"),
             ("Linear_1", "kernel"), ("Bias_1", "bias")]  # fmt: skip
    leaves = [np.asarray(tree[layer][name], np.float64) for layer, name in order]
    return np.concatenate([leaf.reshape(-1) for leaf in leaves])


@pytest.fixture(scope="module")
def calibrated(case):
    """settings -> scores of CaGCN without dropout, compiled once."""

    @jax.jit
    def program(graph, split, settings):
        detector = detectors.cagcn(**settings, dropout=0.0, seed=3)
        return detector(case.predict, graph, split)

    return lambda split, **settings: np.asarray(program(case.graph, split, settings))


def wrong_labels(case):
    """A validation set that no calibrator fits, so that its loss goes up and down."""
    labels = np.where(np.arange(NODES) % 3 == 0, 1, case.split.labels)
    split = case.split._replace(labels=labels.astype(np.int32))
    return case._replace(split=split)


@pytest.mark.parametrize(
    ("lr", "steps", "patience", "margin_weight", "taken"),
    [(0.01, 6, 6, 0.5, 6), (0.1, 11, 11, 0.0, 11), (0.1, 11, 3, 0.0, 5)],
)
def test_cagcn(case, logits, calibrated, lr, steps, patience, margin_weight, taken):
    """Also where the loss rises, and where the patience ends."""
    wrong = wrong_labels(case)
    plain = Calibrator(wrong, logits)
    first = first_parameters(case, logits, seed=3)
    flat, last = plain.train(first, steps, patience, lr, margin_weight)
    expected = -softmax(plain.calibrated(flat)).max(1)
    settings = {"max_steps": steps, "patience": patience}
    found = calibrated(wrong.split, lr=lr, margin_weight=margin_weight, **settings)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert last == taken
    untrained = -softmax(plain.calibrated(first)).max(1)
    assert np.abs(untrained - expected).max() > 1e-2
