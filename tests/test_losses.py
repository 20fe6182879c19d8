"""Loss terms against numpy, at the edges of their domain, and composed."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oodgat_jax import graphs, losses
from oodgat_jax.losses import REGULARIZERS
from oodgat_jax.types import Outputs, Split

N, C, H = 12, 4, 3
HYPER = {"consistency": 2.0, "entropy": 0.05, "discrepancy": 0.005, "threshold": 0.6}
ALL = pytest.mark.parametrize("name", REGULARIZERS)


def make_outputs(nodes=N, seed=0):
    draw = np.random.default_rng(seed)
    logits = draw.normal(size=(nodes, C)).astype(np.float32)
    attention = tuple(3 * draw.normal(size=(2, nodes, H)).astype(np.float32))
    return Outputs(jnp.asarray(logits), jnp.zeros((nodes, 1)), attention)


def make_split(nodes=N, labeled=5):
    labels = jnp.arange(nodes) % (C + 1)
    train = (jnp.cumsum(labels < C) <= labeled) & (labels < C)
    none = jnp.zeros(nodes, bool)
    exposed = (labels == C) & (labeled > 0)
    return Split(labels, labels == C, train, none, none, exposed)


def ring(nodes=N):
    ids = np.arange(nodes)
    return graphs.from_edges(np.zeros((nodes, 1)), ids, np.roll(ids, 1), "segment")


def term(name, outputs, split, hyper=HYPER, step=500):
    """A term's value with the defaults of what it needs beyond `hyper`."""
    found = REGULARIZERS[name]
    nodes = outputs.logits.shape[0]
    return found.value(outputs, split, {**found.hyper, **hyper}, step, ring(nodes))


@functools.cache
def term_and_slope(name):
    """(outputs, split, hyper) -> a term's value and gradient, compiled."""
    return jax.jit(jax.value_and_grad(functools.partial(term, name)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cosine(x, y):
    return x @ y / np.linalg.norm(x) / np.linalg.norm(y)


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def target(logits):
    """e: the sigmoid of the z-scored entropies."""
    log_p = log_softmax(logits)
    entropies = -(np.exp(log_p) * log_p).sum(-1)
    return sigmoid((entropies - entropies.mean()) / entropies.std(ddof=1))


def uniform_loss(logits, mask):
    return -log_softmax(logits).mean(-1)[mask].mean()


ORACLES = {
    "consistency": lambda f, s: (
        -np.mean([cosine(sigmoid(x.mean(1)), target(f)) for x in s])
    ),
    "consistency_printed": lambda f, s: (
        -np.mean([cosine(sigmoid(x).mean(1), target(f)) for x in s])
    ),
    "entropy": lambda f, s: uniform_loss(
        f, sigmoid(np.concatenate(s, 1).mean(1)) >= HYPER["threshold"]
    ),
    "entropy_printed": lambda f, s: uniform_loss(
        f, sigmoid(np.concatenate(s, 1)).mean(1) > HYPER["threshold"]
    ),
    "discrepancy": lambda f, s: -cosine(s[0].mean(1), s[1].mean(1)),
    "discrepancy_printed": lambda f, s: (
        -cosine(sigmoid(s[0]).mean(1), sigmoid(s[1]).mean(1))
    ),
}


@pytest.mark.parametrize("name", ORACLES)
def test_term_against_numpy(name):
    outputs = make_outputs()
    arrays = [np.asarray(s, np.float64) for s in outputs.attention]
    expected = ORACLES[name](np.asarray(outputs.logits, np.float64), arrays)
    got = REGULARIZERS[name].function(outputs, make_split(), HYPER)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["consistency", "entropy", "discrepancy"])
def test_printed_and_coded_readings_differ(name):
    outputs, split = make_outputs(), make_split()
    first = REGULARIZERS[name].function(outputs, split, HYPER)
    second = REGULARIZERS[f"{name}_printed"].function(outputs, split, HYPER)
    assert abs(first - second) > 1e-4


def test_entropy_counts_the_threshold_itself_only_as_coded():
    outputs = make_outputs()._replace(attention=(jnp.zeros((N, H)),) * 2)
    hyper = {**HYPER, "threshold": 0.5}
    coded = losses.entropy(outputs, make_split(), hyper)
    assert coded > np.log(C)
    assert losses.entropy_printed(outputs, make_split(), hyper) == 0.0


@pytest.mark.parametrize("name", ["entropy", "entropy_printed"])
def test_pseudo_labels_have_no_gradient(name):
    outputs, split = make_outputs(), make_split()
    _, slope = term_and_slope(name)(outputs, split, HYPER)
    assert all(not np.any(leaf) for leaf in slope.attention)
    assert np.any(slope.logits)


@ALL
@pytest.mark.parametrize("side", ["logits", "attention"])
def test_consistency_and_discrepancy_reach_what_they_should(name, side):
    """Gradients flow through both sides of the cosines; entropy's through logits."""
    outputs, split = make_outputs(), make_split()
    _, slope = term_and_slope(name)(outputs, split, HYPER)
    reached = any(np.any(leaf) for leaf in jax.tree.leaves(getattr(slope, side)))
    sides = {"consistency": ("logits", "attention"), "entropy": ("logits",)}
    kind = name.removesuffix("_printed")
    if kind in HYPER:
        assert reached == (side in sides.get(kind, ("attention",)))


@ALL
def test_every_term_has_a_gradient(name):
    _, slope = term_and_slope(name)(make_outputs(), make_split(), HYPER)
    assert any(np.any(leaf) for leaf in jax.tree.leaves(slope))


def zeros(outputs):
    return jax.tree.map(jnp.zeros_like, outputs)


EDGES = {
    "constant outputs": (zeros(make_outputs()), HYPER),
    "one node": (make_outputs(nodes=1), HYPER),
    "one constant node": (zeros(make_outputs(nodes=1)), HYPER),
    "no pseudo-OOD node": (make_outputs(), {**HYPER, "threshold": 2.0}),
    "all pseudo-OOD": (make_outputs(), {**HYPER, "threshold": -1.0}),
    "large outputs": (jax.tree.map(lambda x: 1e4 * x, make_outputs()), HYPER),
}


@ALL
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("labeled", [0, 5])
def test_finite_with_a_finite_gradient(name, edge, labeled):
    outputs, hyper = EDGES[edge]
    split = make_split(outputs.logits.shape[0], labeled)
    loss, slope = term_and_slope(name)(outputs, split, hyper)
    assert np.isfinite(loss)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


def test_entropy_is_zero_when_no_node_passes():
    hyper = {**HYPER, "threshold": 2.0}
    assert losses.entropy(make_outputs(), make_split(), hyper) == 0.0


def test_cross_entropy_is_a_mean_over_labeled_nodes():
    outputs, split = make_outputs(), make_split()
    nodes = np.flatnonzero(split.train)
    log_p = log_softmax(np.asarray(outputs.logits, np.float64))
    expected = -log_p[nodes, np.asarray(split.labels)[nodes]].mean()
    np.testing.assert_allclose(losses.cross_entropy(outputs, split), expected, 1e-6)
    assert losses.cross_entropy(outputs, make_split(labeled=0)) == 0.0


@pytest.mark.parametrize("step", [0, 1, 10, 37, 100, 999])
def test_schedule(step):
    np.testing.assert_allclose(losses.DECAY(step), 0.9 ** (0.01 * step), rtol=1e-5)


def chosen(*names):
    return {name: REGULARIZERS[name] for name in names}


def test_composed_is_the_weighted_decayed_sum():
    outputs, split, step = make_outputs(), make_split(), 250
    names = ("consistency", "entropy_printed", "discrepancy")
    total = losses.compose(chosen(*names))(outputs, split, HYPER, step)
    terms = [REGULARIZERS[name].function(outputs, split, HYPER) for name in names]
    weighted = 2.0 * terms[0] + 0.05 * terms[1] + 0.005 * terms[2]
    expected = losses.cross_entropy(outputs, split) + 0.9**2.5 * weighted
    np.testing.assert_allclose(total, expected, rtol=1e-5)


def test_leaving_a_name_out_is_the_same_as_weight_zero():
    outputs, split, step = make_outputs(), make_split(), 5
    without = losses.compose(chosen("consistency", "discrepancy"))
    with_all = losses.compose(chosen("consistency", "entropy", "discrepancy"))
    hyper = {key: HYPER[key] for key in HYPER if key not in ("entropy", "threshold")}
    dropped = without(outputs, split, hyper, step)
    zero = with_all(outputs, split, {**HYPER, "entropy": 0.0}, step)
    np.testing.assert_allclose(dropped, zero, rtol=1e-6)
    assert dropped != with_all(outputs, split, HYPER, step)


def test_no_terms_is_cross_entropy():
    outputs, split = make_outputs(), make_split()
    total = losses.compose({})(outputs, split, {}, 3)
    assert total == losses.cross_entropy(outputs, split)


def energies(logits):
    return -np.log(np.exp(np.asarray(logits, np.float64)).sum(-1))


def test_margins_hold_labeled_nodes_below_and_exposed_ones_above():
    outputs, split = make_outputs(), make_split()
    hyper = {"m_in": -2.0, "m_out": -1.5}
    e = energies(outputs.logits)
    inside = np.maximum(e + 2.0, 0)[np.asarray(split.train)] ** 2
    outside = np.maximum(-1.5 - e, 0)[np.asarray(split.exposure)] ** 2
    expected = inside.mean() + outside.mean()
    assert expected > 0
    found = term("energy_margin", outputs, split, hyper)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    spread = (e + 2 * np.roll(e, -1) + np.roll(e, -2)) / 4
    inside = np.maximum(spread + 2.0, 0)[np.asarray(split.train)] ** 2
    outside = np.maximum(-1.5 - spread, 0)[np.asarray(split.exposure)] ** 2
    found = term("energy_margin_propagated", outputs, split, hyper)
    np.testing.assert_allclose(found, inside.mean() + outside.mean(), rtol=1e-5)


def test_an_unknown_class_is_cross_entropy_over_one_class_more():
    outputs, split = make_outputs(), make_split()
    unknown = np.asarray(outputs.attention[-1]).mean(1)
    p = log_softmax(np.column_stack([outputs.logits, unknown]))
    own = p[np.arange(N), np.asarray(split.labels)]
    expected = -own[np.asarray(split.train)].mean() - p[:, C][split.exposure].mean()
    hyper = {"unknown_class": 1.0, "complement": 0.0}
    names = {"unknown_class": REGULARIZERS["unknown_class"]}
    found = losses.compose(names, losses.constant)(outputs, split, hyper, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_pseudo_unknown_nodes_have_the_highest_energies_after_a_while():
    outputs, split = make_outputs(), make_split()
    hyper = {"complement": 0.0, "pseudo_share": 0.3, "pseudo_after": 50.0}
    gap = np.asarray(outputs.attention[-1]).mean(1) + energies(outputs.logits)
    known = np.log1p(np.exp(gap))[np.asarray(split.train)].mean()
    early = term("unknown_class_pseudo", outputs, split, hyper, step=50)
    np.testing.assert_allclose(early, known, rtol=1e-5)
    free = np.flatnonzero(~np.asarray(split.train))
    top = free[np.argsort(-energies(outputs.logits)[free])][: int(0.3 * len(free))]
    late = term("unknown_class_pseudo", outputs, split, hyper, step=51)
    expected = known + np.log1p(np.exp(-gap))[top].mean()
    np.testing.assert_allclose(late, expected, rtol=1e-5)
