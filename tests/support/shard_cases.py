"""A small graph, sharded over the devices of this process, against the whole graph.

Run as a module in the folder of the tests, with a number of devices, which is chosen
before JAX starts, and the name of a case: `python -m support.shard_cases 8 gradients`.
With a port and a number in SHARD_CASES it is one of two processes that work together.
"""

import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax.sharding import PartitionSpec as P

from oodgat_jax import (
    evaluation,
    experiment,
    graphs,
    kernels,
    methods,
    splits,
    training,
)
from oodgat_jax.detectors import DETECTORS, FACTORIES
from oodgat_jax.graphs import reductions
from oodgat_jax.methods import recipes
from oodgat_jax.sharding import shards
from oodgat_jax.training import mesh as meshes
from oodgat_jax.training import scheduler
from oodgat_jax.training.checkpoints import Checkpoints
from oodgat_jax.types import InputError
from support import synthetic

DATASET = synthetic.generate(300, 2400, 8, num_classes=4, num_id=2, test_size=60)
HYPER = {
    "lr": 0.01,
    "weight_decay": 0.0,
    "input_dropout": 0.5,
    "dropout": 0.5,
    "attention_dropout": 0.6,
    "consistency": 2.0,
    "entropy": 0.05,
    "discrepancy": 0.005,
    "threshold": 0.5,
}


def with_sparse_features(dataset):
    kept = np.where(dataset.features > 1.2, dataset.features, 0)
    return dataset._replace(features=scipy.sparse.csr_array(kept))


def make_runs(count):
    drawn = splits.stack([splits.draw(DATASET, seed) for seed in range(count)])
    hyper = {name: np.full(count, v, np.float32) for name, v in HYPER.items()}
    return training.Run(jax.vmap(jax.random.key)(np.arange(count)), drawn, hyper)


def build(method):
    found = methods.METHODS[method]
    sizes = {"hidden": 4, "heads": 2}
    return methods.assemble(found, recipes.module(found, sizes, DATASET.num_classes))


def train_on(text, task, runs, schedule, checkpoints=None):
    """States of all runs, trained on a mesh; "one" for one device."""
    if text == "one":
        graph, devices = graphs.build(DATASET), jax.local_devices()[:1]
        return training.train(
            task, graph, runs, schedule, devices=devices, checkpoints=checkpoints
        )
    mesh = meshes.build(meshes.parse(text))
    if mesh.shape["graph"] == 1:
        graph = graphs.build(DATASET)
        return training.train(
            task, graph, runs, schedule, mesh=mesh, checkpoints=checkpoints
        )
    placed = shards.shard_dataset(DATASET, mesh)
    runs = runs._replace(split=placed.layout.split_to_shards(runs.split))
    return training.train(
        task, placed.graph, runs, schedule, mesh=mesh, checkpoints=checkpoints
    )


def steps(count, *texts):
    """Steps of OODGAT on meshes, in all processes, beside one device."""
    task = build("oodgat")
    runs = make_runs(2)
    schedule = training.Schedule(max_steps=int(count), check_every=1, patience=100)
    one = train_on("one", task, runs, schedule)
    for text in texts:
        states = train_on(text, task, runs, schedule)
        np.testing.assert_allclose(states.losses, one.losses, atol=1e-5, rtol=0)
        np.testing.assert_allclose(states.scores, one.scores, atol=1e-5, rtol=0)
        np.testing.assert_array_equal(states.best_step, one.best_step)


def native_cases():
    """With the native kernels, where they can be compiled."""
    if not kernels.status().available:
        return []
    few = with_sparse_features(DATASET)
    return [
        (DATASET, "native", ["oodgat"]),
        (few, "native", ["gat"]),
    ]


def gradients():
    """Loss, gradient and validation of layers of every kind, with all kernels.

    `oodgat_jax.testing` checks every backbone and detector on shards, on one device.
    """
    mesh = meshes.build(meshes.parse(f"graph:{len(jax.devices())}"))
    cases = [
        (DATASET, "segment", ["oodgat", "gatv2", "sage"]),
        (DATASET, "sparse", ["oodgat", "gatv2", "gcn"]),
        (with_sparse_features(DATASET), "sparse", ["oodgat"]),
        *native_cases(),
    ]
    run = jax.tree.map(lambda leaf: leaf[0], make_runs(1))
    expected = {}  # by the definitions, whatever the kernel of the shards
    for dataset, kernel, names in cases:
        whole = graphs.build(dataset, "segment")
        placed = shards.shard_dataset(dataset, mesh, kernel)
        for name in names:
            case = name, scipy.sparse.issparse(dataset.features)
            if case not in expected:
                expected[case] = on_one_device(name, run, whole)
            same_gradients(name, run, placed, *expected[case])


def on_one_device(name, run, whole):
    """Parameters, and what they give on the whole graph."""
    task = build(name)
    params = draw_params(task, run, whole)
    return params, jax.jit(measuring(task, run))(params, whole, run.split)


def draw_params(task, runs, graph):
    """Parameters of a run or, with axes of runs, of each: none of them is zero."""
    random = np.random.default_rng(0)
    init = jax.vmap(task.init, (0, None)) if runs.key.ndim else task.init
    return jax.tree.map(
        lambda leaf: jnp.asarray(random.normal(0, 0.3, leaf.shape), leaf.dtype),
        jax.eval_shape(init, runs, graph),
    )


def measuring(task, run):
    """(parameters, graph, split) -> loss, gradient and validation."""

    def measure(params, graph, split):
        changed = run._replace(split=jax.tree.map(jnp.asarray, split))
        key = jax.random.key(3)
        loss = jax.value_and_grad(task.loss)(params, (), graph, changed, 0, key)
        return *loss, task.validate(params, (), graph, changed)

    return measure


def same_gradients(name, run, placed, params, expected):
    measure = measuring(build(name), run)

    def body(params, graph, split):
        with graphs.on_device(graph) as here:
            loss, gradient, score = measure(params, here, split)
            return loss, reductions.average(gradient), score

    on_mesh = jax.jit(
        jax.shard_map(
            body,
            mesh=placed.mesh,
            in_specs=(P(), P("graph"), P("graph")),
            out_specs=P(),
            check_vma=False,
        )
    )
    split = placed.layout.split_to_shards(run.split)
    found = on_mesh(params, placed.graph, split)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6, err_msg=name)


def detectors():
    """Scores of detectors that need other nodes in every way, and their metrics."""
    DETECTORS["CaGCN"] = FACTORIES["CaGCN"](max_steps=5)
    DETECTORS["kNN"] = FACTORIES["kNN"](k=3)
    task = build("oodgat")
    runs = make_runs(3)
    whole = graphs.build(DATASET)
    trained = draw_params(task, runs, whole), ()
    names = ["ATT", "ODIN", "Mahalanobis", "CaGCN", "kNN", "GRASP", "GNNSafe"]
    logits, scores = evaluation.score_all(task, trained, whole, runs.split, names)
    mesh = meshes.build(meshes.parse(f"runs:2,graph:{len(jax.devices()) // 2}"))
    placed = shards.shard_dataset(DATASET, mesh)
    split = placed.layout.split_to_shards(runs.split)
    found = evaluation.score_sharded(task, trained, placed, split, names)
    np.testing.assert_array_equal(found.predictions, logits.argmax(-1))
    for name in names:
        np.testing.assert_allclose(
            found.scores[name], scores[name], rtol=1e-3, atol=1e-5, err_msg=name
        )
    expected = evaluation.evaluate(scores["ATT"], logits, runs.split)
    for name, values in expected.items():
        np.testing.assert_allclose(found.metrics["ATT"][name], values, atol=1e-6)


def second_graph():
    """A second graph, sharded too, is scored as it is in one place."""
    shift = splits.under_gnnsafe(DATASET, "structure")
    mesh = meshes.build(meshes.parse(f"graph:{len(jax.devices())}"))
    method = methods.METHODS["gcn"]._replace(detectors=("energy", "GRASP"))
    recipe = recipes.recipe(None, method) | {"max_steps": 2, "hidden": 4}
    options = {"definition": method, "draw": shift.draw}
    options["scored_on"] = experiment.Scored(shift.scored, shift.draw)
    runs = (shift.learned, "gcn", recipe, [1], [0])
    one = experiment.execute(*runs, **options)
    found = experiment.execute(*runs, mesh=mesh, **options)
    for name, scores in one.scores.items():
        np.testing.assert_allclose(found.scores[name], scores, rtol=1e-3, atol=1e-5)
    try:
        method = methods.METHODS["gcn-bn"]
        options |= {"definition": method, "mesh": mesh}
        experiment.execute(shift.exposed, *runs[1:], **options)
    except InputError as error:
        assert "cannot be sharded" in str(error)  # noqa: PT017
    else:
        raise AssertionError("batch statistics of joined graphs were mixed")


class StoppedError(Exception):
    """Raised in the middle of a training."""


def checkpoints(folder):
    """A training that stops on one mesh continues on another, to the same end."""
    task = build("gcn")
    runs = make_runs(3)
    schedule = training.Schedule(max_steps=21, check_every=2, patience=100)
    one = train_on("one", task, runs, schedule)

    class Stopping(Checkpoints):
        def save(self, states, total):
            super().save(states, total)
            if sum(int(state.step) for state in states.values()) > 20:
                raise StoppedError

    scheduler.PACE = -1.0  # a call to the devices is one check
    for text in ("one", "graph:2"):
        try:
            train_on(text, task, runs, schedule, Stopping(folder, 0.0))
        except StoppedError:
            continue
        raise AssertionError("nothing was saved")
    kept = Checkpoints(folder, 0.0)
    assert kept.exists()
    states = train_on("runs:2", task, runs, schedule, kept)
    np.testing.assert_allclose(states.losses, one.losses, atol=1e-5, rtol=0)
    np.testing.assert_array_equal(states.step, one.step)
    assert not kept.exists()


def join():
    port, number = os.environ["SHARD_CASES"].split(",")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", 2, int(number))


if __name__ == "__main__":
    if "SHARD_CASES" in os.environ:
        join()
    jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))
    globals()[sys.argv[2]](*sys.argv[3:])
    print("same")
