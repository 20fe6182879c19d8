"""Methods of the field beside their authors' values: see tests/reference/README.md."""

import json
import pathlib
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oodgat_jax import detectors, gpn, graphs, losses, models
from oodgat_jax.gpn import training as gpn_training
from oodgat_jax.types import Outputs, Rates, Split

FOLDER = pathlib.Path(__file__).parent.parent / "reference"
FIELD = json.loads((FOLDER / "field_toy.json").read_text())
TOY = FIELD["gnnsafe"]
NODES = len(TOY["labels"])
MARGIN = {"energy_margin": 0.3, "m_in": -1.5, "m_out": -1.0}
BOUNDED = {"bounded_energy": 2.0, "bounded_share": 0.9}
BOUNDED |= {"bounded_after": 20.0, "uniform_after": 120.0}
close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4)


def mask(nodes, size=NODES):
    found = np.zeros(size, bool)
    found[nodes] = True
    return found


def split(train, exposed=(), labels=TOY["labels"]):
    """A split of the graph and its exposed twin, one after the other."""
    twice = np.array([*labels, *[3] * NODES])
    train = np.append(mask(train), np.zeros(NODES, bool))
    exposure = np.append(np.zeros(NODES, bool), mask(list(exposed)))
    none = np.zeros(2 * NODES, bool)
    return Split(twice, twice == 3, train, none, none, exposure)


def one_graph(kernel="segment"):
    return graphs.from_edges(
        np.array(TOY["features"], np.float32), *np.array(TOY["edges"]), kernel
    )


def both_graphs():
    features = np.array(TOY["features"] + TOY["exposure_features"], np.float32)
    second = np.array(TOY["exposure_edges"]) + NODES
    edges = np.concatenate([TOY["edges"], second], axis=1)
    return graphs.from_edges(features, *edges, "segment", (NODES, NODES))


def array(values):
    return np.asarray(values, np.float32)


def gcn_params(batch_norm=True):
    p = {name: array(value) for name, value in TOY["params"].items()}
    norm = {"BatchNorm_0": {"scale": p["scale"], "bias": p["shift"]}}
    return {
        "params": {
            "Linear_0": {"kernel": p["first"]},
            "Bias_0": {"bias": p["first_bias"]},
            "Linear_1": {"kernel": p["second"]},
            "Bias_1": {"bias": p["second_bias"]},
            **(norm if batch_norm else {}),
        }
    }


MODULE = models.GCNBatchNorm(3, len(TOY["params"]["scale"]))
RUNNING = {"BatchNorm_0": {k: array(v) for k, v in TOY["running"].items()}}


@jax.jit
def trained(chosen):
    """Outputs in training mode, and the running statistics after it."""
    return models.apply_observed(
        MODULE, gcn_params(), RUNNING, both_graphs(), chosen,
        Rates(0.0, 0.0, 0.0), jax.random.key(0),
    )  # fmt: skip


def loss(names, chosen, step=0, hyper=MARGIN | BOUNDED):
    outputs, _ = trained(chosen)
    terms = {name: losses.REGULARIZERS[name] for name in names}
    objective = jax.jit(losses.compose(terms, losses.constant))
    return objective(outputs, chosen, hyper, step, both_graphs())


def test_gnnsafe_scores_of_a_network_with_running_statistics():
    predict = jax.jit(partial(models.apply_running, MODULE, gcn_params(), RUNNING))
    graph = one_graph()
    close(predict(graph).logits, TOY["logits"])
    score = jax.jit(partial(detectors.DETECTORS["GNNSafe_coded"], predict))
    close(score(graph, None), TOY["gnnsafe_scores"])


def test_gnnsafe_losses():
    chosen = split(TOY["train"], TOY["exposed"])
    close(loss([], chosen), TOY["loss_plain"])
    close(loss(["energy_margin_propagated"], chosen), TOY["loss_propagated"])
    close(loss(["energy_margin"], chosen), TOY["loss_unpropagated"])
    hyper = {"outlier_exposure": 0.5}
    close(loss(["outlier_exposure"], chosen, hyper=hyper), TOY["loss_oe"])


def test_running_statistics_see_one_graph_after_the_other():
    _, after = trained(split(TOY["train"], TOY["exposed"]))
    for name, expected in TOY["running_after"].items():
        close(after["BatchNorm_0"][name], expected)


def test_running_statistics_see_no_graph_that_is_not_trained_on():
    _, alone = trained(split(TOY["train"]))
    observe = jax.jit(partial(MODULE.apply, mutable=["observed"]))
    _, observed = observe(gcn_params(), one_graph())
    seen = observed["observed"]["BatchNorm_0"]["mean"][0]
    expected = 0.9 * RUNNING["BatchNorm_0"]["mean"] + 0.1 * seen
    close(alone["BatchNorm_0"]["mean"], expected)


@pytest.mark.parametrize("name", TOY["nodesafe"])
def test_nodesafe_losses(name):
    exposed = name.startswith("exposed")
    step = {"before": 20, "after": 21, "exposed_before": 120, "exposed_after": 121}
    everyone = range(NODES)
    chosen = split(everyone, everyone) if exposed else split(TOY["train"])
    term = "bounded_energy_exposed" if exposed else "bounded_energy"
    terms = ["energy_margin_propagated", term] if exposed else [term]
    close(loss(terms, chosen, step[name]), TOY["nodesafe"][name])


@jax.jit
def gpn_predict(graph):
    values = {name: array(value) for name, value in FIELD["gpn"]["params"].items()}
    params = {
        "first": {"kernel": values["first"]},
        "Bias_0": {"bias": values["first_bias"]},
        "second": {"kernel": values["second"]},
        "Bias_1": {"bias": values["second_bias"]},
        "flow": {name: values[name] for name in ("center", "a", "b")},
    }
    module = gpn.GPN(3, hidden=4, latent=3, layers=4)
    prior = {"shares": gpn_training.shares(gpn_split(), 3)}
    return module.apply({"params": params, "prior": prior}, graph)


def gpn_split():
    none = np.zeros(NODES, bool)
    labels = np.array(FIELD["gpn"]["labels"])
    return Split(labels, none, mask(TOY["train"]), none, none)


def test_gpn_evidence_and_loss():
    outputs = gpn_predict(one_graph())
    close(jnp.exp(outputs.logits), FIELD["gpn"]["alpha"])
    evidence = jax.jit(partial(gpn.evidence_of_features, gpn_predict))
    alone = evidence(one_graph(), gpn_split())
    close(jnp.exp(-alone), FIELD["gpn"]["evidence_features"])
    objective = jax.jit(gpn.objective)
    found = objective(outputs, gpn_split(), {"entropy_weight": 1e-4})
    close(found, sum(FIELD["gpn"]["loss"].values()))


@pytest.mark.parametrize("edges", [False, True])
def test_gebm_scores(edges):
    module = models.GCN(3, len(TOY["params"]["scale"]))
    predict = partial(models.apply, module, gcn_params(batch_norm=False))
    none = np.zeros(NODES, bool)
    chosen = Split(np.array(TOY["labels"]), none, np.arange(NODES) < 9, none, none)
    detector = jax.jit(partial(detectors.gebm(edges=edges), predict))
    scores = detector(one_graph("sparse"), chosen)
    close(scores, FIELD["gebm"]["scores_with_edges" if edges else "scores"])


@pytest.mark.parametrize("reselect", [False, True])
def test_grasp_scores(reselect):
    toy = FIELD["grasp"]
    logits = array(toy["logits"])
    nodes = np.arange(len(logits))
    labeled = nodes < toy["labeled"]
    train = nodes < toy["train"]
    chosen = Split(np.zeros_like(nodes), nodes >= 40, train, labeled & ~train, ~labeled)
    graph = graphs.from_edges(np.zeros((len(logits), 1)), *np.array(toy["edges"]))
    detector = detectors.grasp_coded(
        toy["rounds"], toy["alpha"], toy["delta"],
        share=toy["share"], top=toy["top"], reselect=reselect,
    )  # fmt: skip
    score = jax.jit(partial(detector, lambda _: Outputs(logits, logits, ())))
    found = score(graph, chosen)
    close(found, toy["scores_reselected" if reselect else "scores"])
