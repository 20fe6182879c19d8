"""GKDE: prior, Dirichlet formulas, measures, loss, extras and inference."""

import itertools
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import scipy.special
import scipy.stats
from scipy.sparse import csgraph
from support import detector_cases
from support.detector_cases import CLASSES, NODES
from support.random_graphs import CASES, random_edges

from oodgat_jax import evaluation, methods, metrics, splits, training
from oodgat_jax.gkde import evidence, inference, prior
from oodgat_jax.gkde import training as gkde_training
from oodgat_jax.gkde.network import EvidentialGCN
from oodgat_jax.methods import METHODS
from oodgat_jax.types import Outputs

METHOD = METHODS["gkde"]
accuracy, auroc = jax.jit(metrics.accuracy), jax.jit(metrics.auroc)
HYPER = {
    "lr": 0.01,
    "weight_decay": 0.0,
    "first_decay": 5e-4,
    "kernel": 0.1,
    "distillation": 1.0,
}


def brute_force(nodes, senders, receivers, labels, train, num_classes):
    """All pairs, by scipy."""
    shape = (nodes, nodes)
    links = scipy.sparse.csr_array((np.ones(len(senders)), (senders, receivers)), shape)
    hops = csgraph.shortest_path(links, unweighted=True)  # [from, to]
    return np.stack(
        [
            1 + np.exp(-(hops[train & (labels == label)] ** 2) / 2).sum(0)
            for label in range(num_classes)
        ],
        axis=1,
    )


def prior_cases():
    yield from CASES.items()
    for seed, directed in itertools.product(range(3), (True, False)):
        name = f"{'directed' if directed else 'symmetric'} {seed}"
        yield name, (40, *random_edges(40, 30 + 30 * seed, seed, directed))


@pytest.mark.parametrize(("name", "graph"), list(prior_cases()))
def test_prior_equals_all_pairs(name, graph):
    nodes, senders, receivers = graph
    draw = np.random.default_rng(len(name))
    labels, train = draw.integers(0, 3, nodes), draw.random(nodes) < 0.4
    found = prior.kernel_prior(senders, receivers, labels, train, 3)
    expected = brute_force(nodes, senders, receivers, labels, train, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == np.float32


def test_prior_in_blocks(monkeypatch):
    edges = random_edges(50, 80, 0)
    labels, train = np.arange(50) % 2, np.ones(50, bool)
    whole = prior.kernel_prior(*edges, labels, train, 2)
    monkeypatch.setattr(prior, "BLOCK", 3)
    np.testing.assert_array_equal(prior.kernel_prior(*edges, labels, train, 2), whole)


def test_prior_ends_after_max_hops_and_at_gaps():
    """A path 0 - ... - 8, and nodes 9, 10 joined to each other only."""
    senders = np.array([*range(8), 9])
    both = np.r_[senders, senders + 1], np.r_[senders + 1, senders]
    train = np.arange(11) == 0
    found = prior.kernel_prior(*both, np.zeros(11, int), train, 2, max_hops=3)
    expected = np.exp(-(np.arange(4.0) ** 2) / 2)
    np.testing.assert_allclose(found[:4, 0], 1 + expected, rtol=1e-6)
    assert (found[4:, 0] == 1).all()
    assert (found[:, 1] == 1).all()


@pytest.mark.real_data
def test_prior_of_pubmed_needs_no_pairs(real):
    pubmed = real("pubmed")
    split = splits.draw_citation(pubmed)
    edges = pubmed.senders, pubmed.receivers
    tracemalloc.start()
    found = prior.kernel_prior(*edges, split.labels, split.train, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6  # one byte per pair would be 389 MB
    assert (found > 1).any(1).mean() > 0.9


@pytest.fixture(scope="module")
def alpha():
    draw = np.random.default_rng(0)
    return (1 + draw.gamma(0.5, 8.0, (30, 4))).astype(np.float32)


def test_kl_divergence(alpha):
    other = alpha[::-1]
    psi = scipy.special.digamma
    gap = psi(alpha) - psi(alpha.sum(1, keepdims=True))
    log_beta = scipy.special.gammaln(other).sum(1) - scipy.special.gammaln(other.sum(1))
    entropies = [scipy.stats.dirichlet.entropy(row) for row in alpha.astype(float)]
    expected = -np.array(entropies) + log_beta - ((other - 1) * gap).sum(1)
    found = evidence.kl_divergence(alpha, other)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(evidence.kl_divergence(alpha, alpha), 0, atol=1e-4)


def test_squared_error_is_an_expectation(alpha):
    labels = np.arange(30) % 4
    one_hot = np.eye(4)[labels]
    expected = [
        ((y - scipy.stats.dirichlet.mean(a)) ** 2 + scipy.stats.dirichlet.var(a)).sum()
        for y, a in zip(one_hot, alpha.astype(float), strict=True)
    ]
    found = evidence.squared_error(alpha, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_differential_entropy(alpha):
    expected = [scipy.stats.dirichlet.entropy(row) for row in alpha.astype(float)]
    found = evidence.differential_entropy(alpha)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def slow_dissonance(alpha):
    belief = (alpha - 1) / alpha.sum()
    total = 0.0
    for k, own in enumerate(belief):
        others = [b for j, b in enumerate(belief) if j != k]
        balances = [1 - abs(b - own) / (b + own) if b * own else 0.0 for b in others]
        if sum(others):
            total += own * np.dot(others, balances) / sum(others)
    return total


def test_dissonance(alpha):
    rows = np.concatenate([alpha, [[1, 1, 1, 1], [9, 1, 1, 1], [5, 5, 1, 1]]])
    expected = [slow_dissonance(row) for row in rows.astype(float)]
    found = jax.jit(evidence.dissonance)(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[-3:], [0, 0, 8 / 12], atol=1e-6)


def test_vacuity_falls_with_evidence():
    logits = np.array([[-50.0, -50.0], [0, 0], [0, 3], [3, 3]])
    found = evidence.vacuity(evidence.concentration(logits))
    np.testing.assert_allclose(found[:2], [1.0, 0.5])
    assert (np.diff(found) < 0).all()


@pytest.fixture(scope="module")
def case():
    return detector_cases.make()


@pytest.fixture(scope="module")
def module():
    return EvidentialGCN(CLASSES, hidden=8)


@pytest.fixture(scope="module")
def params(module, case):
    return jax.jit(module.init)({"params": jax.random.key(0)}, case.graph)


def test_measures_of_passes(module, params, case):
    """Against numpy on the logits of three passes."""
    keys = jax.random.split(jax.random.key(inference.SEED), 3)
    one = jax.jit(
        lambda k: inference.apply_dropped(module, params, case.graph, k).logits
    )
    samples = np.stack([one(key) for key in keys]).astype(float)
    assert samples.std(0).max() > 0
    p = scipy.special.softmax(np.log(np.exp(samples) + 1), axis=-1)
    entropies = scipy.stats.entropy(p, axis=-1)
    mean_alpha = np.exp(samples.mean(0)) + 1
    expected = {
        "vacuity": CLASSES / mean_alpha.sum(-1),
        "dissonance": [slow_dissonance(row) for row in mean_alpha],
        "aleatoric": entropies.mean(0),
        "epistemic": scipy.stats.entropy(p.mean(0), axis=-1) - entropies.mean(0),
        "differential_entropy": [scipy.stats.dirichlet.entropy(a) for a in mean_alpha],
    }
    predict = inference.posterior(module, params, passes=3)

    @jax.jit
    def measured(graph, split):
        outputs = predict(graph)
        return {
            name: measure(lambda _: outputs, graph, split)
            for name, measure in inference.MEASURES.items()
        }

    for name, found in measured(case.graph, case.split).items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-3, atol=2e-5)


def test_a_single_pass_has_no_epistemic_uncertainty(case):
    found = inference.epistemic(case.predict, case.graph, case.split)
    np.testing.assert_allclose(found, 0, atol=1e-6)
    assert inference.aleatoric(case.predict, case.graph, case.split).max() > 0.5


def random_run(case, logits, **extra):
    draw = np.random.default_rng(5)
    teacher = scipy.special.log_softmax(draw.normal(size=logits.shape), axis=-1)
    given = {"prior": 1 + draw.gamma(1.0, size=logits.shape), "teacher": teacher}
    return training.Run(jax.random.key(0), case.split, HYPER, given | extra)


def test_objective_equals_its_formula(case):
    logits = np.random.default_rng(4).normal(size=(NODES, CLASSES))
    run = random_run(case, logits)
    alpha = np.exp(logits) + 1
    p = alpha / alpha.sum(1, keepdims=True)
    errors = jax.jit(evidence.squared_error)(alpha, case.split.labels)
    error = np.asarray(errors)[case.split.train].mean()
    divergence = np.mean(jax.jit(evidence.kl_divergence)(alpha, run.extra["prior"]))
    imitation = (p * (np.log(p) - run.extra["teacher"])).mean()
    outputs = Outputs(logits, None, ())
    objective = jax.jit(lambda step: gkde_training.objective(outputs, run, step))
    for step, ramp in ((0, 0.0), (50, 0.25), (200, 1.0), (999, 1.0)):
        found = objective(step)
        expected = error + 0.1 * divergence + ramp * imitation
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_objective_has_its_optimum_at_prior_and_teacher(case):
    logits = np.random.default_rng(4).normal(size=(NODES, CLASSES))
    alpha = evidence.concentration(logits)
    log_p = jnp.log(evidence.expected(alpha))
    run = random_run(case, logits, prior=alpha, teacher=log_p)
    nobody = run._replace(split=case.split._replace(train=np.zeros(NODES, bool)))
    assert abs(gkde_training.objective(Outputs(logits, None, ()), nobody, 300)) < 1e-5


def test_objective_is_finite_for_any_logits(case):
    draw = np.random.default_rng(4)
    logits = np.multiply.outer([0, 30, 1e4], draw.normal(size=(NODES, CLASSES)))
    run = random_run(case, logits[0])

    def objective(logits):
        return gkde_training.objective(Outputs(logits, None, ()), run, 300)

    for values in jax.jit(jax.vmap(jax.value_and_grad(objective)))(logits):
        assert np.isfinite(values).all()


def stacked(case, count=2):
    """Runs of different splits."""
    draw = np.random.default_rng(7)
    drawn = [detector_cases.draw(draw, case.split.labels) for _ in range(count)]
    return training.Run(
        key=jax.vmap(jax.random.key)(jnp.arange(count, dtype=jnp.uint32)),
        split=splits.stack(drawn),
        hyper={name: np.full(count, v, np.float32) for name, v in HYPER.items()},
    )


@pytest.fixture(scope="module")
def trained(module, case):
    """Two runs with their extras, and where they ended."""
    runs = methods.prepare(METHOD, module, case.graph, stacked(case))
    schedule = training.Schedule(max_steps=100, check_every=9, early_stop=False)
    task = methods.assemble(METHOD, module)
    return runs, training.train(task, case.graph, runs, schedule)


def test_extras_belong_to_their_run(module, case, trained):
    runs, _ = trained
    for extra in runs.extra.values():
        assert extra.shape == (2, NODES, CLASSES)
        assert (extra[0] != extra[1]).any()
    for number in range(2):
        split = jax.tree.map(lambda leaf, n=number: leaf[n], runs.split)
        alone = gkde_training.priors(case.graph, splits.stack([split]), CLASSES)
        np.testing.assert_array_equal(alone[0], runs.extra["prior"][number])
        teacher = runs.extra["teacher"][number]
        np.testing.assert_allclose(np.exp(teacher).sum(-1), 1, rtol=1e-5)
        assert accuracy(teacher, split, split.test) > 0.9


def test_extras_do_not_leak(module, case, trained):
    runs, _ = trained
    free = ~runs.split.train
    hidden = runs.split._replace(
        labels=np.where(free, (runs.split.labels + 1) % CLASSES, runs.split.labels),
        is_ood=np.where(free, ~runs.split.is_ood, runs.split.is_ood),
    )
    again = methods.prepare(METHOD, module, case.graph, runs._replace(split=hidden))
    jax.tree.map(np.testing.assert_array_equal, again.extra, runs.extra)


def test_all_steps_are_taken_and_the_last_is_kept(trained):
    states = trained[1]
    assert states.step.tolist() == [100, 100]
    assert (states.failed_at < 0).all()
    jax.tree.map(np.testing.assert_array_equal, states.best, states.params)


def test_vacuity_finds_the_other_community(module, case, trained):
    runs, states = trained
    names = ("vacuity", "aleatoric", "differential_entropy")
    task = methods.assemble(METHOD, module)
    found = evaluation.trained(states), case.graph, runs.split, names
    logits, scores = evaluation.score_all(task, *found)
    for number in range(2):
        split = jax.tree.map(lambda leaf, n=number: leaf[n], runs.split)
        assert accuracy(logits[number], split, split.test) > 0.9
        for name in names:
            found = auroc(scores[name][number], split.is_ood, split.test)
            assert found > 0.9, name
