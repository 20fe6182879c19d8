"""What an extension can get wrong: found before or while compiling, in one sentence."""

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
import pytest

import oodgat_jax as og
from oodgat_jax.methods import recipes
from oodgat_jax.types import InputError

TABLES = (og.REGULARIZERS, og.DETECTORS, og.BACKBONES, og.METHODS, og.DATASETS)
FEW = {"max_steps": 1, "hidden": 4}
RANDOM = np.random.default_rng(0)
LABELS = np.repeat(np.arange(4), 60)
DATASET = og.from_arrays(
    np.eye(4)[LABELS] + RANDOM.normal(size=(240, 4)),
    RANDOM.integers(0, 240, (500, 2)),
    LABELS,
    id_classes=(0, 1),
)


@pytest.fixture(autouse=True)
def restored():
    """The tables are as before after every test."""
    before = [dict(table) for table in TABLES]
    yield
    for table, entries in zip(TABLES, before, strict=True):
        table.clear()
        table.update(entries)


def run(dataset=DATASET, method="mlp", **options):
    chosen = {"splits": 1, "seeds": 1, "settings": FEW} | options
    return og.run(dataset, method, **chosen)


def refuses(sentence, call):
    with pytest.raises(InputError, match=sentence) as raised:
        call()
    assert "\n" not in str(raised.value)


class Wide(nn.Module):
    """Has a class too many."""

    num_classes: int

    @nn.compact
    def __call__(self, graph, rates=None):
        x = nn.Dense(self.num_classes + 1)(graph.nodes)
        return og.Outputs(x, x, ())


class Bare(nn.Module):
    """Returns logits alone."""

    num_classes: int

    @nn.compact
    def __call__(self, graph, rates=None):
        return nn.Dense(self.num_classes)(graph.nodes)


class Alike(nn.Module):
    """Has a field that is called as the learning rate is."""

    num_classes: int
    lr: float = 0.5

    @nn.compact
    def __call__(self, graph, rates=None):
        x = nn.Dense(self.num_classes)(graph.nodes)
        return og.Outputs(x, x, ())


class Closed(nn.Module):
    """Cannot be told how many classes there are."""

    @nn.compact
    def __call__(self, graph, rates=None):
        return graph.nodes


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (Wide, r"backbone 'new' gives logits of shape \(2, 3\) .* \[N, 2\]"),
        (Bare, "backbone 'new' must return Outputs"),
        (Alike, "'lr' of backbone 'new' is a setting of the training"),
    ],
)
def test_a_wrong_backbone_is_named_before_training(module, sentence):
    og.register_backbone("new", module)
    refuses(sentence, lambda: run(method=og.Method("new"), settings={"max_steps": 1}))


@pytest.mark.parametrize("module", [5, Closed, Wide(3), lambda graph: graph])
def test_what_is_no_backbone_is_not_registered(module):
    refuses("Backbone 'new' must be", lambda: og.register_backbone("new", module))


REGULARIZERS = {
    "vector": lambda outputs, split, hyper: outputs.logits.sum(1),
    "nothing": lambda outputs, split, hyper: None,
    "text": lambda outputs, split, hyper: "a",
}


@pytest.mark.parametrize("name", REGULARIZERS)
def test_a_regularizer_that_is_no_scalar_is_named(name):
    og.register_regularizer(name, REGULARIZERS[name])
    sentence = f"Regularizer '{name}' must return a scalar"
    refuses(sentence, lambda: run(regularizers=(name,)))


@pytest.mark.parametrize("name", ["lr", "hidden", "patience", "dropout"])
def test_a_regularizer_cannot_take_a_setting_of_others(name):
    og.register_regularizer("new", REGULARIZERS["vector"], hyper={name: 9.0})
    sentence = f"'{name}' of regularizer 'new' is a setting"
    refuses(sentence, lambda: run(regularizers=("new",)))


DETECTORS = {
    "scalar": lambda predict, graph, split: 0.5,
    "short": lambda predict, graph, split: jnp.zeros(3),
    "table": lambda predict, graph, split: predict(graph).logits,
    "column": lambda predict, graph, split: predict(graph).logits[:, :1],
    "nothing": lambda predict, graph, split: None,
    "truth": lambda predict, graph, split: split.train,
    "complex": lambda predict, graph, split: predict(graph).logits[:, 0] + 0j,
}


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_of_the_wrong_shape_is_named(name):
    og.register_detector(name, DETECTORS[name])
    sentence = f"Detector '{name}' must return one real number per node"
    refuses(sentence, lambda: run(detectors=(name,)))
    method = og.Method("mlp", validated_by=name)
    refuses(sentence, lambda: run(method=method))


@pytest.mark.parametrize(
    ("register", "kind"),
    [
        (og.register_regularizer, "regularizer"),
        (og.register_detector, "detector"),
        (og.register_dataset, "data set"),
    ],
)
def test_what_is_no_function_is_not_registered(register, kind):
    refuses(f"The {kind} 'new' must be a function", lambda: register("new", 5))


@pytest.mark.parametrize("needs", [("atention",), "attention", 5])
@pytest.mark.parametrize(
    ("register", "words"),
    [
        (og.register_regularizer, "attention, exposure, graph, step"),
        (og.register_detector, "attention, labels, validation"),
    ],
)
def test_needs_that_nothing_provides_are_refused(register, words, needs):
    sentence = f"needs of .* 'new' must be a tuple with any of {words}, not"
    refuses(sentence, lambda: register("new", max, needs=needs))
    assert "new" not in {*og.REGULARIZERS, *og.DETECTORS}


def test_hyper_parameters_of_a_regularizer_are_numbers():
    for hyper in ({"new": "x"}, {"new": float("nan")}, 5):
        refuses(
            "hyper of regularizer 'new' must",
            lambda h=hyper: og.register_regularizer("new", max, hyper=h),
        )


METHODS = {
    "no method": ("gcn", "must be a Method"),
    "optimizer": (og.Method("mlp", optimizer=None), "optimizer must be a function"),
    "customize": (og.Method("mlp", customize=5), "customize must be a function"),
    "hyper": (og.Method("mlp", hyper=None), "hyper must be a dict"),
    "text": (og.Method("mlp", hyper={"lr": "x"}), "lr must be a number, not 'x'"),
    "nan": (og.Method("mlp", hyper={"lr": float("nan")}), "lr must be .* finite"),
    "own nan": (og.Method("mlp", hyper={"own": float("nan")}), "own must be .* finite"),
    "negative": (og.Method("mlp", hyper={"hidden": -1}), "hidden must be"),
    "part": (og.Method("mlp", hyper={"max_steps": 5.5}), "max_steps must be a whole"),
    "names": (og.Method("mlp", "entropy"), "must be a list of names, not 'entropy'"),
    "detector": (og.Method("mlp", detectors="ENT"), "list of names, not 'ENT'"),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_method_is_not_registered(name):
    method, sentence = METHODS[name]
    refuses(sentence, lambda: og.register_method("new", method))


@pytest.mark.parametrize("value", [1, np.float32(1.0), 1.0])
def test_numbers_of_any_kind_are_settings(value):
    recipe = recipes.recipe(None, og.Method("mlp", hyper={"lr": value, "own": value}))
    assert (recipe["lr"], type(recipe["lr"])) == (1.0, float)
    assert (recipe["own"], type(recipe["own"])) in ((1.0, float), (1, int))


def test_a_method_decides_over_the_weights_of_its_regularizers():
    method = og.Method("oodgat", ("consistency",), hyper={"consistency": 7.0})
    assert recipes.recipe(None, method)["consistency"] == 7.0
    assert recipes.recipe("amazon-photo", method)["consistency"] == 7.0


RUNS = {
    "dataset": ({"dataset": None}, "dataset must be a name or a Dataset"),
    "method": ({"method": None}, "method must be a name or a Method"),
    "splits": ({"splits": None}, "splits must be a number of them or a list"),
    "seeds": ({"seeds": 1.0}, "seeds must be a number of them or a list"),
    "negative seed": ({"seeds": [-1]}, "The seed -1 must be an integer in 0"),
    "large seed": ({"seeds": [2**40]}, "The seed 1099511627776 must be an integer"),
    "half a seed": ({"seeds": [1.7]}, "The seed 1.7 must be an integer"),
    "settings": ({"settings": 5}, "settings must be a dict"),
    "setting": ({"settings": [5]}, "settings must be a dict"),
    "settings text": ({"settings": "lr=1"}, "settings must be a dict"),
    "detectors": ({"detectors": "ENT"}, "must be a list of names, not 'ENT'"),
    "regularizers": ({"regularizers": 5}, "must be a list of names, not 5"),
    "mesh": ({"mesh": "runs:1"}, r"mesh must be one of training\.mesh\.build"),
    "progress": ({"progress": 5}, "progress must be a function, not 5"),
    "checkpoints": ({"checkpoints": "x"}, r"must be training\.Checkpoints\(folder\)"),
}


@pytest.mark.parametrize("name", RUNS)
def test_wrong_arguments_of_run_are_named(name):
    options, sentence = RUNS[name]
    refuses(sentence, lambda: run(**options))


def test_seeds_of_numpy_and_sets_work():
    result = run(splits=np.int64(1), seeds={3, 5})
    assert sorted(result.model_seeds.tolist()) == [3, 5]


def test_a_data_set_that_is_none_is_named():
    og.register_dataset("new", lambda folder: 5)
    refuses("data set 'new' must load a Dataset, not int", lambda: run("new"))
