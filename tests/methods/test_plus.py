"""OODGAT+: its parts do what they say, and each can be switched off."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import oodgat_jax as og
from oodgat_jax import losses, methods
from oodgat_jax.detectors import DETECTORS, fitted_fusion, rank_fusion
from oodgat_jax.methods import METHODS, plus, recipes
from oodgat_jax.testing import make_case
from oodgat_jax.training import Run, loop
from oodgat_jax.types import Outputs

PLUS = METHODS["oodgat-plus"]


@pytest.fixture(scope="module")
def case():
    return make_case()


def outputs(seed, nodes=64):
    random = np.random.default_rng(seed)

    def draw(width):
        return random.normal(size=(nodes, width)).astype(np.float32)

    attention = draw(2), draw(2)
    return Outputs(draw(3), np.zeros((nodes, 4), np.float32), attention)


def slopes(case, step, led_steps):
    def value(logits, attention):
        given = outputs(0)._replace(logits=logits, attention=attention)
        hyper = {"led_steps": led_steps}
        return losses.consistency_led(given, case.split, hyper, step=step)

    given = outputs(0)
    return jax.jit(jax.grad(value, argnums=(0, 1)))(given.logits, given.attention)


def test_entropy_leads_at_first_and_follows_later(case):
    logits, attention = slopes(case, step=99, led_steps=100.0)
    assert not logits.any()
    assert all(leaf.any() for leaf in attention)
    logits, attention = slopes(case, step=100, led_steps=100.0)
    assert logits.any()
    plain = jax.grad(
        lambda x: losses.consistency(outputs(0)._replace(logits=x), None, {})
    )
    plain = jax.jit(plain)(outputs(0).logits)
    np.testing.assert_allclose(logits, plain, rtol=1e-4)


def test_the_anchor_tells_the_sides_of_attention_apart(case):
    given = outputs(1)
    known = np.where(case.split.train, -3.0, 3.0)[:, None]
    anchor = jax.jit(lambda o: losses.anchor(o, case.split, {"known_share": 0.5}))
    right, wrong = (anchor(given._replace(attention=(x,) * 2)) for x in (known, -known))
    assert right + 1 < wrong


def test_weight_decay_spares_attention_vectors(case):
    module = recipes.module(PLUS, recipes.recipe(None, PLUS), 3)
    params = jax.jit(module.init)({"params": jax.random.key(0)}, case.graph)
    optimizer = plus.adam_sparing_attention({"weight_decay": 0.1, "lr": 1.0})

    @jax.jit
    def step_without_gradient(params):
        nothing = jax.tree.map(jnp.zeros_like, params)
        return optimizer.update(nothing, optimizer.init(params), params)

    updates, _ = step_without_gradient(params)
    moved = {
        path[-1].key: bool(leaf.any())
        for path, leaf in jax.tree_util.tree_leaves_with_path(updates)
    }
    assert moved == {"bias": False, "kernel": True, "query": False}


@functools.cache
def programs():
    """The task, and its start, step and check as functions of (graph, run, ...)."""
    recipe = recipes.recipe(None, PLUS)
    task = methods.assemble(
        PLUS, recipes.module(PLUS, recipe | {"hidden": 4, "heads": 2}, 3)
    )
    schedule = recipes.schedule(PLUS, recipe)
    return (
        task,
        jax.jit(functools.partial(loop.start, task, schedule)),
        jax.jit(functools.partial(loop.train_step, task)),
        jax.jit(functools.partial(loop.check, task, schedule)),
    )


def trained(case, steps, **hyper):
    """Returns the run, the task and the state after some steps and a check."""
    task, start, step, check = programs()
    leaves = recipes.leaves(recipes.recipe(None, PLUS), PLUS)
    assert hyper.keys() <= leaves.keys()
    run = Run(jax.random.key(0), case.split, leaves | hyper)
    states = [start(case.graph, run)]
    for _ in range(steps):
        state, loss = step(case.graph, run, states[-1])
        states.append(state)
    return run, task, [*states[:-1], check(case.graph, run, state, loss)]


@pytest.fixture(scope="module")
def after_three(case):
    return trained(case, 3)


def test_parameters_are_averaged_over_steps(case, after_three):
    _, _, states = after_three
    average = jax.device_get(states[0].params)
    for number, state in enumerate(jax.device_get(states[1:])):
        new = 1 - min(0.99, (number + 1) / (number + 10))
        average = optax.incremental_update(state.params, average, new)
    found = jax.tree.leaves(states[-1].aux.average)
    for ours, theirs in zip(found, jax.tree.leaves(average), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)
    _, _, off = trained(case, 1, averaging=0.0)
    same = zip(
        *map(jax.tree.leaves, (off[-1].aux.average, off[-1].params)), strict=True
    )
    assert all(np.array_equal(*pair) for pair in same)


def test_decay_fits_the_scale_of_the_features(case, after_three):
    run, task, states = after_three
    params, aux = states[0].params, states[0].aux
    scale = np.mean(np.sum(np.square(case.dataset.features), 1))
    np.testing.assert_allclose(aux.scale, scale, rtol=1e-5)
    kernel = params["params"]["OODGATLayer_0"]["Linear_0"]["kernel"]
    key = jax.random.key(1)

    @jax.jit
    def loss(rate):
        chosen = run._replace(hyper={**run.hyper, "feature_decay": rate})
        return task.loss(params, aux, case.graph, chosen, 0, key)

    small = 1e-4 / scale
    added = loss(small) - loss(0.0)
    np.testing.assert_allclose(added, 0.5e-4 * np.sum(kernel**2), rtol=1e-2)
    np.testing.assert_allclose(
        loss(1e3) - loss(0.0), 0.5 * plus.MOST_DECAY * np.sum(kernel**2), rtol=1e-2
    )


def test_the_last_step_is_kept_unless_validation_is_to_choose():
    recipe = recipes.recipe("cora", PLUS)
    assert not recipes.schedule(PLUS, recipe).early_stop
    chosen = recipes.override(recipe, ["early_stop=true"])
    assert recipes.schedule(PLUS, chosen).early_stop


def test_one_setting_for_all_data_sets():
    found = [
        {k: v for k, v in recipes.recipe(name, PLUS).items() if "dropout" not in k}
        for name in ("cora", "amazon-photo", "coauthor-cs", "amazon-computers", None)
    ]
    assert all(each == found[0] for each in found)
    without = recipes.recipe("cora", PLUS, regularizers=("anchor",))
    assert not {"consistency", "entropy", "led_steps"} & {*without}


def test_a_fused_score_is_a_nodes_own(case):
    """On another graph a node with the same two scores has the same fused score."""
    first, second = outputs(2), outputs(3)
    own = jax.jit(rank_fusion.scores)(first)
    kept = jax.jit(rank_fusion.quantiles)(own)
    assert kept.shape == (2, rank_fusion.QUANTILES)
    both = jax.tree.map(lambda *leaves: np.concatenate(leaves), first, second)

    @jax.jit
    def score(given):
        known = given._replace(reference=(kept,))
        return DETECTORS["FUSED"](lambda _: known, None, None)

    alone, among = score(first), score(both)
    np.testing.assert_array_equal(alone, among[:64])
    ranks = np.stack([np.argsort(np.argsort(s)) for s in own])
    expected = (ranks[0] + 2 * ranks[1]) / 3 / 63
    assert np.abs(alone - expected).max() < 0.02
    assert 0 <= among.min() <= among.max() <= 1


def test_a_model_keeps_the_fit_of_its_score(case, after_three):
    run, task, states = after_three
    kept = states[-1].best_aux.fit
    predict, fit = jax.jit(task.predict), jax.jit(fitted_fusion.fit)
    predicted = predict(states[-1].best, states[-1].best_aux, case.graph)
    jax.tree.map(np.testing.assert_array_equal, predicted.reference, kept)
    found = fit(predicted, case.graph, run.split)
    np.testing.assert_allclose(kept.quantiles, found.quantiles, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(kept.weights, found.weights, atol=1e-4)
    np.testing.assert_allclose(kept.weights.sum(), 1, rtol=1e-5)


def test_it_runs_by_name():
    """With the sizes of `experiments/test_robust.py`, whose programs it shares."""
    result = og.run(
        "digits", "oodgat-plus", splits=1, seeds=1,
        settings={"max_steps": 1, "check_every": 1, "hidden": 4, "heads": 1},
    )  # fmt: skip
    assert tuple(result.scores) == PLUS.detectors
    assert result.states.best_aux.student.share.tolist() == [pytest.approx(1 / 3)]
    assert result.states.best_step.tolist() == [1]
