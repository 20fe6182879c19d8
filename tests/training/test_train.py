"""The trainer: stopping, keeping the best, and runs that do not see each other."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import forking

from oodgat_jax import evaluation, graphs, methods, metrics, splits, training
from oodgat_jax.methods import recipes
from oodgat_jax.training import Run, Schedule, Task
from oodgat_jax.types import Dataset

GRAPH = graphs.from_edges(np.ones((2, 1), np.float32), [0], [1])
SHORT = Schedule(max_steps=95, check_every=10, patience=3)


class Script(NamedTuple):
    """What happens to a run, decided beforehand."""

    scores: np.ndarray  # [checks] validation scores
    nan_at: np.ndarray | int = -1  # step whose loss is not a number


def steps_taken(params, run):
    """Adam moves by lr against a constant gradient: the parameter counts the steps."""
    return jnp.round(-params / run.hyper["lr"]).astype(jnp.int32)


def scripted(every=10):
    """A task that counts its steps and validates as the script says."""

    def loss(params, aux, graph, run, step, key):
        noise = jax.random.normal(key)  # shows in the history of losses
        return params + jnp.where(step == run.extra.nan_at, jnp.nan, noise)

    def validate(params, aux, graph, run):
        return run.extra.scores[(steps_taken(params, run) - 1) // every]

    return Task(lambda run, graph: jnp.array(0.0), loss, validate, predict=None)


SCRIPTED = scripted()


def scripted_runs(scores, nan_at=None):
    count = len(scores)
    nan_at = np.full(count, -1) if nan_at is None else np.array(nan_at)
    hyper = {"lr": jnp.full(count, 0.5), "weight_decay": jnp.zeros(count)}
    keys = jax.random.split(jax.random.key(0), count)
    return Run(keys, None, hyper, Script(np.float32(scores), nan_at))


def real_loop(scores, schedule):
    """Early stopping as one would write it down, with a real break."""
    best, best_step, stale, seen = -np.inf, 0, 0, []
    for step in range(1, schedule.max_steps + 1):
        if (step - 1) % schedule.check_every:
            continue
        score = scores[(step - 1) // schedule.check_every]
        seen.append(score)
        last = step
        if score > best:
            best, best_step, stale = score, step, 0
        else:
            stale += 1
        if stale > schedule.patience:
            break
    return best, best_step, last, seen


def test_early_stop_is_a_real_break():
    """Random scores with many ties: 40 runs, stopped at different times."""
    checks = training.num_checks(SHORT)
    scores = np.random.default_rng(0).integers(0, 6, (40, checks))
    states = training.train(SCRIPTED, GRAPH, scripted_runs(scores), SHORT)
    lengths = set()
    for k, script in enumerate(scores):
        best, best_step, last, seen = real_loop(script, SHORT)
        assert states.best_score[k] == best
        assert states.best_step[k] == best_step
        assert states.step[k] == last
        assert round(states.best[k] / -0.5) == best_step
        history = states.scores[k]
        np.testing.assert_array_equal(history[: len(seen)], seen)
        assert np.isnan(history[len(seen) :]).all()
        lengths.add(last)
    assert len(lengths) > 3
    assert states.done.all()


def test_defaults_stop_after_more_than_twenty_checks_without_a_new_best():
    scores = np.zeros((2, 100))
    scores[1] = np.arange(100)
    states = training.train(SCRIPTED, GRAPH, scripted_runs(scores))
    # The first check is the best; then 21 checks without a new one: step 1 + 210.
    assert states.step.tolist() == [211, 991]
    assert states.best_step.tolist() == [1, 991]


def test_equal_scores_are_no_improvement():
    scores = np.array([[1.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    states = training.train(SCRIPTED, GRAPH, scripted_runs(scores), SHORT)
    assert states.best_step.tolist() == [11]
    assert states.step.tolist() == [51]


def test_without_early_stop_the_last_is_called_the_best():
    scores = np.array([[3.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    schedule = SHORT._replace(early_stop=False)
    states = training.train(SCRIPTED, GRAPH, scripted_runs(scores), schedule)
    assert states.step.tolist() == states.best_step.tolist() == [95]


def test_run_that_is_not_a_number_is_marked_and_stopped_alone():
    scores = np.tile(np.arange(10.0), (3, 1))
    states = training.train(SCRIPTED, GRAPH, scripted_runs(scores, [-1, 14, -1]), SHORT)
    assert states.failed_at.tolist() == [-1, 14, -1]
    assert states.step.tolist() == [91, 21, 91]
    assert states.best_step.tolist() == [91, 11, 91]
    assert np.isfinite(states.best).all()


def test_progress_tells_what_happens():
    lines = []
    scores = np.tile(np.arange(10.0), (3, 1))
    training.train(
        SCRIPTED, GRAPH, scripted_runs(scores), SHORT, slots=1, progress=lines.append
    )
    assert lines[-1].finished == lines[-1].total == 3
    assert lines[-1].going == 0
    assert lines[-1].steps == 3 * 91
    assert all(a.steps <= b.steps for a, b in itertools.pairwise(lines))


CLASSES, ID, OOD = 2, 150, 200  # known classes, nodes in each, unknown nodes


def make_dataset(separated):
    """Communities with features of their own; or labels that mean nothing."""
    draw = np.random.default_rng(0)
    group = np.repeat(np.arange(CLASSES + 1), [*[ID] * CLASSES, OOD])
    nodes = len(group)
    features = draw.normal(size=(nodes, 6)) + 3.0 * np.eye(6)[group]
    ends = draw.integers(0, nodes, (2, 12 * nodes))
    inside = group[ends[0]] == group[ends[1]]
    senders, receivers = ends[:, inside | (draw.random(len(inside)) < 0.05)]
    labels = group if separated else draw.permutation(group)
    return Dataset(
        name="probe",
        features=features.astype(np.float32),
        senders=np.concatenate([senders, receivers]),
        receivers=np.concatenate([receivers, senders]),
        labels=labels.astype(np.int32),
        id_classes=tuple(range(CLASSES)),
        test_size=100,
    )


HYPER = {
    "lr": 0.01,
    "weight_decay": 0.0,
    "input_dropout": 0.5,
    "dropout": 0.5,
    "attention_dropout": 0.6,
    "consistency": 2.0,
    "entropy": 0.05,
    "discrepancy": 0.005,
    "threshold": 0.6,
}
METHOD = methods.METHODS["oodgat"]
MODULE = recipes.module(METHOD, {"hidden": 4, "heads": 2}, CLASSES)
TASK = methods.assemble(METHOD, MODULE)
BRIEF = Schedule(max_steps=101, check_every=10, patience=20)


def make_runs(dataset, count, **changes):
    drawn = [splits.draw(dataset, seed) for seed in range(count)]
    hyper = {name: jnp.full(count, value) for name, value in HYPER.items()}
    hyper |= {name: jnp.asarray(values) for name, values in changes.items()}
    keys = jax.random.split(jax.random.key(0), count)
    split = jax.tree.map(jnp.asarray, splits.stack(drawn))
    return Run(keys, split, hyper)


def pick(tree, index):
    """Runs or states at an index or slice."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


class Trained(NamedTuple):
    graph: object
    runs: Run
    states: training.State


@pytest.fixture(scope="module")
def separated():
    dataset = make_dataset(separated=True)
    graph, runs = graphs.build(dataset), make_runs(dataset, 3)
    return Trained(graph, runs, training.train(TASK, graph, runs, BRIEF))


def assert_same_bits(got, expected):
    jax.tree.map(np.testing.assert_array_equal, got, expected)


def mean_auroc(trained):
    """By detector, over the runs."""
    graph, runs, states = trained
    found = evaluation.trained(states), graph, runs.split, METHOD.detectors
    _, scores = evaluation.score_all(TASK, *found)
    auroc = jax.jit(jax.vmap(metrics.auroc))
    split = runs.split
    return {k: auroc(v, split.is_ood, split.test).mean() for k, v in scores.items()}


def test_separated_communities_are_told_apart(separated):
    found = mean_auroc(separated)
    assert set(found) == {"ENT", "ATT"}
    assert min(found.values()) > 0.95


def test_ood_nodes_like_id_nodes_are_not_told_apart():
    """The standard deviation of the AUROC of one run is 0.04 by chance."""
    dataset = make_dataset(separated=False)
    graph, runs = graphs.build(dataset), make_runs(dataset, 3)
    found = mean_auroc(Trained(graph, runs, training.train(TASK, graph, runs, BRIEF)))
    assert all(abs(value - 0.5) < 0.1 for value in found.values())


def test_runs_together_are_the_runs_alone(separated):
    """Bit-identical on a CPU, where one program serves any number of runs."""
    for k in (0, 2):
        alone = pick(separated.runs, slice(k, k + 1))
        states = training.train(TASK, separated.graph, alone, BRIEF)
        assert_same_bits(pick(states, 0), pick(separated.states, k))


def test_same_keys_same_bits_and_other_keys_others(separated):
    again = training.train(TASK, separated.graph, separated.runs, BRIEF)
    assert_same_bits(again, separated.states)
    losses = separated.states.losses
    assert not np.array_equal(losses[0], losses[1])


def test_hyper_parameters_are_no_part_of_the_program(separated, caplog):
    changed = {"lr": 0.1, "dropout": 0.2, "consistency": 1.0, "weight_decay": 5e-4}
    hyper = separated.runs.hyper | {k: jnp.full(3, v) for k, v in changed.items()}
    runs = separated.runs._replace(hyper=hyper)
    with jax.log_compiles(True):
        states = training.train(TASK, separated.graph, runs, BRIEF)
    compiled = [line for line in caplog.messages if "ompil" in line]
    assert not compiled
    assert not np.array_equal(states.losses, separated.states.losses)


def test_slots_of_one_device_give_the_same(separated):
    """As on an accelerator, where runs are batched and the segment path is taken.

    Sums round differently there, so losses agree, not the bits.
    """
    method = methods.METHODS["gcn"]
    task = methods.assemble(method, recipes.module(method, {"hidden": 4}, CLASSES))
    graph = separated.graph._replace(globals=graphs.Context())
    brief = BRIEF._replace(max_steps=21)
    one, batched = (
        training.train(task, graph, separated.runs, brief, slots=slots)
        for slots in (1, 3)
    )
    np.testing.assert_allclose(batched.losses, one.losses, rtol=1e-3)
    assert batched.step.tolist() == [21] * 3


DEVICES = """
import jax
jax.config.update("jax_num_cpu_devices", 4)
import numpy as np, test_train as t
from oodgat_jax import training
assert len(jax.devices()) == 4
scores = np.random.default_rng(0).integers(0, 6, (7, 10))
runs = t.scripted_runs(scores)
one, two = (
    training.train(t.SCRIPTED, t.GRAPH, runs, t.SHORT, devices=jax.devices()[:count])
    for count in (1, 2)
)
t.assert_same_bits(two, one)
print("same")
"""


def test_two_devices_give_the_bits_of_one(request):
    done = forking.run("-c", DEVICES, cwd=request.path.parent)
    assert done.stdout == "same\n", done.stderr


def test_what_a_run_keeps_is_finished_once():
    """Of the best parameters, when the run stops; a task without it has no such aux."""

    def finish(params, aux, graph, run):
        return aux + steps_taken(params, run)

    task = SCRIPTED._replace(
        init_aux=lambda params, run, graph: jnp.array(0), finish=finish
    )
    scores = np.random.default_rng(1).integers(0, 6, (5, training.num_checks(SHORT)))
    states = training.train(task, GRAPH, scripted_runs(scores), SHORT)
    np.testing.assert_array_equal(states.best_aux, states.best_step)
    assert not states.aux.any()
