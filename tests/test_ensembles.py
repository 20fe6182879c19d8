"""Ensembles of seeds: ranks, who is left out, decomposition, metrics; MC dropout."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
import scipy.special
import scipy.stats

from oodgat_jax import ensembles, methods, models, testing
from oodgat_jax.detectors import DETECTORS
from oodgat_jax.methods import METHODS, mc_dropout, recipes
from oodgat_jax.training import Run
from oodgat_jax.types import InputError, Rates, Split

N, C, SEEDS = 40, 3, 6


@pytest.fixture(scope="module")
def result():
    """Two splits of six seeds; the second seed of each sees everything upside down."""
    random = np.random.default_rng(0)
    truth = np.arange(N) >= N // 2
    scores = truth + 0.4 * random.normal(size=(2 * SEEDS, N))
    scores[[1, SEEDS + 1]] *= -1
    labels = np.where(truth, C, np.arange(N) % C)
    none = np.zeros(N, bool)
    split = Split(labels, truth, none, none, ~none)
    return SimpleNamespace(
        dataset="toy",
        method="mine",
        scores={"S": scores},
        logits=random.normal(size=(2 * SEEDS, N, C)) + 2 * np.eye(C + 1)[labels][:, :C],
        setting=np.zeros(2 * SEEDS, int),
        split_seeds=np.repeat([123, 1], SEEDS),
        failed=np.array([5]),
        splits=jax.tree.map(lambda leaf: np.stack([leaf] * 2 * SEEDS), split),
    )


def test_members_are_seeds_of_one_split_that_did_not_fail(result):
    found = ensembles.ensembles(result, "S", 3)
    members = [list(one.members) for one in found]
    assert members == [[6, 7, 8], [9, 10, 11], [0, 1, 2]]
    assert [one.split_seed for one in found] == [1, 1, 123]
    with pytest.raises(InputError, match="has 7 runs"):
        ensembles.ensembles(result, "S", 7)


def test_who_disagrees_is_left_out_and_the_rest_is_better(result):
    with_all = ensembles.ensembles(result, "S", 5)
    without = ensembles.ensembles(result, "S", 5, drop=True)
    for every, kept in zip(with_all, without, strict=True):
        assert every.kept.all()
        assert list(kept.kept) == [True, False, True, True, True]
        assert kept.metrics["auroc"] > every.metrics["auroc"]


def test_agreement_is_spearmans_with_the_median_of_the_others(result):
    scores = result.scores["S"][:4]
    found = ensembles.agreement(scores)
    ranks = scipy.stats.rankdata(scores, axis=1)
    for number in range(4):
        others = np.median(np.delete(ranks, number, axis=0), axis=0)
        expected = scipy.stats.spearmanr(scores[number], others).statistic
        np.testing.assert_allclose(found[number], expected)
    assert ensembles.agreeing(scores[:2]).all()  # two that disagree: nobody knows


def test_ranks_need_no_common_scale(result):
    scores = result.scores["S"][[0, 2, 3]]
    stretched = np.exp(scores * np.array([[1.0], [3.0], [9.0]]))
    np.testing.assert_allclose(
        ensembles.combine(scores), ensembles.combine(stretched), atol=1e-12
    )
    assert not np.allclose(
        ensembles.combine(scores, "scores"), ensembles.combine(stretched, "scores")
    )


def test_entropy_is_aleatoric_and_epistemic(result):
    logits = result.logits[:3]
    p = scipy.special.softmax(logits, axis=-1)
    found = ensembles.decompose(logits)
    total = scipy.stats.entropy(p.mean(0), axis=-1)
    mutual = np.mean(scipy.stats.entropy(p, p.mean(0), axis=-1), axis=0)
    np.testing.assert_allclose(found["total"], total)
    np.testing.assert_allclose(found["epistemic"], mutual, atol=1e-12)
    np.testing.assert_allclose(found["aleatoric"], total - mutual)
    first = ensembles.ensembles(result, "epistemic", 3)[-1]
    expected = ensembles.decompose(result.logits[[0, 1, 2]])["epistemic"]
    np.testing.assert_allclose(first.scores, expected, rtol=1e-5)


def test_dropout_is_kept_in_twenty_passes():
    case, method = testing.make_case(), METHODS["mc-dropout"]
    module = recipes.module(method, {"hidden": 4}, testing.CLASSES)
    hyper = {"input_dropout": 0.0, "dropout": 0.5, "attention_dropout": 0.0}
    task = methods.assemble(method, module)
    run = Run(jax.random.key(0), case.split, hyper)
    params = jax.jit(task.init)(run, case.graph)
    aux = jax.jit(task.init_aux)(params, run, case.graph)
    found = jax.jit(task.predict)(params, aux, case.graph)
    keys = jax.random.split(jax.random.key(mc_dropout.SEED), mc_dropout.PASSES)
    rates = Rates(0.0, 0.5, 0.0)

    @jax.jit
    @jax.vmap
    def one(key):
        return models.apply_running(
            module, params, aux[0], case.graph, rates, key
        ).logits

    @jax.jit
    def decomposed(found):
        return {
            name: DETECTORS[name](lambda _: found, case.graph, case.split)
            for name in ensembles.DECOMPOSITION
        }

    each, parts = np.asarray(one(keys)), decomposed(found)
    np.testing.assert_allclose(found.logits, each.mean(0), atol=1e-5)
    expected = ensembles.decompose(each)
    for name, values in parts.items():
        np.testing.assert_allclose(values, expected[name], atol=1e-5)
    assert np.max(parts["epistemic"]) > 1e-4
