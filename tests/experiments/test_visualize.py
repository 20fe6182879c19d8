"""The figure of two methods side by side, and the training that is watched for it."""

import jax
import numpy as np
import pytest
import scipy.special
from support.binaries import call
from support.example_records import record

from experiments import visualize
from experiments.support import dynamics
from oodgat_jax import datasets, experiment, graphs, methods, splits, training
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import read_records
from oodgat_jax.types import InputError

SCHEDULE = training.Schedule(max_steps=31, check_every=10, patience=0)


def watched_run():
    dataset = datasets.digits()
    method = METHODS["mlp"]
    recipe = recipes.recipe("digits", method) | {"hidden": 4}
    module = recipes.module(method, recipe, dataset.num_classes)
    drawn = [splits.draw(dataset, seed) for seed in (123, 1)]
    keys = experiment.keys(range(2))
    runs = experiment.make_runs(method, [recipe] * 2, drawn, keys)
    return methods.assemble(method, module), graphs.build(dataset), runs, module


def test_a_watched_training_is_the_same_training():
    task, graph, runs, _ = watched_run()

    def watch(params, graph, split):
        run = training.Run(None, split, None)
        return {"score": task.validate(params, (), graph, run)}

    steps, found = dynamics.trace(task, graph, runs, SCHEDULE, watch)
    patient = SCHEDULE._replace(patience=99)
    states = training.train(task, graph, runs, patient)
    assert steps.tolist() == [1, 11, 21, 31]
    np.testing.assert_allclose(found["score"], states.scores, atol=1e-6)


def test_mean_entropies_are_of_test_nodes_by_kind():
    _, graph, runs, module = watched_run()
    params = jax.jit(module.init)(jax.random.key(0), graph)
    split = jax.tree.map(lambda leaf: leaf[0], runs.split)
    found = dynamics.mean_entropies(module)(params, graph, split)
    logits = jax.jit(module.apply)(params, graph).logits
    p = scipy.special.softmax(np.asarray(logits, np.float64), axis=1)
    entropy = -(p * np.log(p)).sum(axis=1)
    for kind, mask in (("ID", ~split.is_ood), ("OOD", split.is_ood)):
        assert found[kind] == pytest.approx(entropy[split.test & mask].mean(), abs=1e-5)


def shown(method, detector, whole):
    keys = {
        "shown_run": 1,
        "histogram_edges": [0.0, 0.5, 1.0],
        "histogram": {"ID": [5, 1], "OOD": [2, 3]},
    }
    if whole:
        places = {"x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 0.0], "label": [0, 1, 2]}
        curves = {"steps": [1, 11], "ID": [[1.0, 0.5]] * 2, "OOD": [[1.0, 0.9]] * 2}
        keys |= {"embedding": places | {"classes": 2}, "dynamics": curves}
    return record("cora", detector, (0.6, 0.8), method=method, **keys)


def test_figure_from_records():
    records = [
        shown("gcn", "ENT", True),
        shown("oodgat", "ENT", True),
        shown("oodgat", "ATT", False),
    ]
    ((name, figure),) = visualize.draw_figures(records).items()
    axes = np.array(figure.axes).reshape(3, 2)
    assert name == "cora"
    assert axes[1, 1].get_xlabel() == "ATT score of a test node, AUROC 80.0"
    assert axes[2, 0].get_ylim() == axes[2, 1].get_ylim()
    assert len(axes[0, 0].collections) == 3  # OOD and two classes


def test_the_median_run_is_shown():
    assert visualize._median_run(np.array([0.9, np.nan, 0.5, 0.7])) == 3
    with pytest.raises(InputError, match="Every run failed"):
        visualize._median_run(np.array([np.nan]))


def test_a_call_records_all_that_the_figure_shows(tmp_path, cache):
    tiny = ["--splits=1", "--seeds=2", "--set=max_steps=11", "--set=hidden=8"]
    tiny += ["--methods=mlp", "--steps=11", "--points=200", f"--out={tmp_path}"]
    code, _, err = call("visualize", *tiny, cache=cache)
    assert code == 0, err
    (found,) = read_records(tmp_path / visualize.STUDY.file)
    assert len(found["embedding"]["x"]) == 200
    assert found["dynamics"]["steps"] == [1, 11]
    assert np.shape(found["dynamics"]["OOD"]) == (2, 2)
    png = (tmp_path / "visualize-digits.png").read_bytes()
    arguments = ["--from_records", f"--out={tmp_path}"]
    assert call("visualize", *arguments, cache=cache)[0] == 0
    assert (tmp_path / "visualize-digits.png").read_bytes() == png
