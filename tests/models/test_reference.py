"""The authors' values on a toy graph: outputs, scores, losses, gradients, layers."""

import json
import pathlib
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import compiling

from oodgat_jax import graphs, losses, models
from oodgat_jax.detectors import DETECTORS
from oodgat_jax.types import Split

TOY = json.loads(
    (pathlib.Path(__file__).parent.parent / "reference" / "oodgat_toy.json").read_text()
)
TERMS = ("consistency", "entropy", "discrepancy")
HYPER = {**TOY["loss"]["weights"], "threshold": TOY["loss"]["margin"]}
HYPERS = (HYPER, {**HYPER, "consistency": 0.0})
MODEL = models.OODGAT(TOY["classes"], TOY["hidden"], TOY["heads"])
# The gradient of the total is badly conditioned here: the entropies of the toy's nodes
# have a standard deviation of 6.7e-4, and the consistency term divides by it, so one
# float32 ulp of an entropy (1.2e-7) moves the gradient by about 1e-4. The exact
# (float64) gradient itself is 1.7e-4 away from the authors' float32 one.
GRADIENT_ATOL = 3e-4


def close(got, expected, atol=1e-5):
    np.testing.assert_allclose(got, np.asarray(expected), rtol=0, atol=atol)


def toy_graph(path):
    features = np.array(TOY["features"], np.float32)
    return graphs.from_edges(features, *np.array(TOY["edge_index"]), path)


def toy_split():
    labels, train = np.array(TOY["labels"]), np.array(TOY["train"])
    nobody = np.zeros_like(train)
    return Split(labels, nobody, train, nobody, nobody)


def as_tree(flat):
    """The authors' names as a tree of ours."""
    flat = {name: np.asarray(value, np.float32) for name, value in flat.items()}

    def layer(name):
        kernel, query = flat[f"{name}.lin"], flat[f"{name}.att_q"][0]
        return {"Linear_0": {"kernel": kernel}, "query": query}

    return {
        "params": {
            "OODGATLayer_0": layer("conv1"),
            "Bias_0": {"bias": flat["conv1.bias"]},
            "OODGATLayer_1": layer("conv2"),
            "Bias_1": {"bias": flat["conv2.bias"]},
        }
    }


@jax.jit
@jax.grad
def gradient(params, graph, hyper):
    """Of the total loss, for every parameter."""
    outputs, step = MODEL.apply(params, graph), TOY["loss"]["step"]
    return losses.compose({name: losses.REGULARIZERS[name] for name in TERMS})(
        outputs, toy_split(), hyper, step
    )


def to_double(tree):
    def convert(leaf):
        floating = jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(jnp.float64) if floating else leaf

    return jax.tree.map(convert, tree)


@pytest.fixture(scope="module", params=["sparse", "segment"])
def toy(request):
    graph, params = toy_graph(request.param), as_tree(TOY["params"])
    outputs = jax.jit(MODEL.apply)(params, graph)
    return SimpleNamespace(
        path=request.param, graph=graph, params=params, outputs=outputs
    )


def test_parameters_have_the_shapes_of_a_fresh_model(toy):
    fresh = jax.eval_shape(MODEL.init, jax.random.key(0), toy.graph)
    assert jax.tree.map(jnp.shape, toy.params) == jax.tree.map(jnp.shape, fresh)


def test_logits(toy):
    close(toy.outputs.logits, TOY["logits"])


def test_attention_logits(toy):
    for got, expected in zip(
        toy.outputs.attention, TOY["attention_logits"], strict=True
    ):
        close(got, expected)


@pytest.mark.parametrize(("name", "key"), [("ENT", "score_ent"), ("ATT", "score_att")])
def test_scores(toy, name, key):
    score = jax.jit(lambda o: DETECTORS[name](lambda _: o, toy.graph, toy_split()))
    close(score(toy.outputs), TOY[key])


def test_cross_entropy(toy):
    expected = TOY["loss"]["cross_entropy"]
    close(jax.jit(losses.cross_entropy)(toy.outputs, toy_split()), expected)


@pytest.mark.parametrize("name", TERMS)
def test_term(toy, name):
    term = jax.jit(losses.REGULARIZERS[name].function)
    close(term(toy.outputs, toy_split(), HYPER), TOY["loss"][name])


def test_total(toy):
    objective = losses.compose({name: losses.REGULARIZERS[name] for name in TERMS})
    step = TOY["loss"]["step"]
    total = jax.jit(objective)(toy.outputs, toy_split(), HYPER, step)
    # Twice the consistency term, so twice its tolerance.
    close(total, TOY["loss"]["total"], 2e-5)


def test_gradient_of_every_parameter(toy):
    got, expected = gradient(toy.params, toy.graph, HYPER), as_tree(TOY["grads"])
    jax.tree.map(lambda a, b: close(a, b, GRADIENT_ATOL), got, expected)


@pytest.fixture(scope="module")
def exact():
    """Gradients in float64 by path: of the total, and without the consistency term.

    Users have no float64, so this is not their program, and is compiled quickly.
    """
    compiling.use(quick=True)
    with jax.enable_x64(True):
        params = to_double(as_tree(TOY["params"]))
        tables = {
            path: [gradient(params, to_double(toy_graph(path)), h) for h in HYPERS]
            for path in ("sparse", "segment")
        }
        assert all(leaf.dtype == jnp.float64 for leaf in jax.tree.leaves(tables))
    compiling.use(quick=False)
    return jax.tree.map(np.asarray, tables)


def test_float32_is_as_good_as_conditioning_allows(toy, exact):
    total, rest = (gradient(toy.params, toy.graph, hyper) for hyper in HYPERS)
    exact_total, exact_rest = exact[toy.path]
    jax.tree.map(lambda a, b: close(a, b, GRADIENT_ATOL), total, exact_total)
    jax.tree.map(lambda a, b: close(a, b, 1e-6), rest, exact_rest)


def test_both_paths_have_the_same_gradient_in_float64(exact):
    same = partial(close, atol=1e-10)
    jax.tree.map(same, exact["sparse"], exact["segment"])


def layer_output(name, graph):
    """One layer with the reference's weights, [N, heads * out]."""
    flat = TOY["baseline_layers"][name]["params"]
    flat = {key: np.asarray(value, np.float32) for key, value in flat.items()}

    def linear(key):
        return {"kernel": flat[f"{key}.weight"].T}

    if name == "gcn":
        x = models.Linear(5).apply({"params": linear("lin")}, graph.nodes)
        weights = graphs.symmetric_weights(graph)
        return graphs.aggregate(graph, weights, x) + flat["bias"]
    if name == "sage":
        bias = {"bias": flat["lin_l.bias"]}
        parts = {"neighbors": linear("lin_l"), "itself": linear("lin_r")}
        params = {"params": {**parts, "Bias_0": bias}}
        return models.SAGELayer(5).apply(params, graph, graph.nodes)
    if name == "gat":
        ends = {"receiver": flat["att_dst"][0], "sender": flat["att_src"][0]}
        layer, params = models.GATLayer, {"Linear_0": linear("lin"), **ends}
    else:
        bias = {"Bias_0": {"bias": flat["lin_l.bias"]}}
        params = {"Linear_0": linear("lin_l"), "query": flat["att"][0], **bias}
        layer = models.GATv2Layer
    out, _ = layer(2, 5).apply({"params": params}, graph, graph.nodes, None)
    return models.join_heads(out) + flat["bias"]


@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "gatv2"])
def test_single_layer(toy, name):
    out = jax.jit(layer_output, static_argnums=0)(name, toy.graph)
    close(out, TOY["baseline_layers"][name]["out"])
