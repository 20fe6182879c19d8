"""Hyper-parameters: the paper's numbers, what each method uses, and settings."""

import pytest

from oodgat_jax.datasets import DATASETS
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.models import BACKBONES
from oodgat_jax.types import InputError

# (consistency, entropy, threshold, heads) as the paper prints them.
PAPER = {
    "cora": (2, 0.05, 0.6, 4),
    "amazon-computers": (2, 0.05, 0.4, 4),
    "amazon-photo": (3, 0.1, 0.4, 4),
    "coauthor-cs": (4, 0.05, 0.6, 4),
    "lastfm-asia": (3, 0.3, 0.5, 1),
    "wiki-cs": (3, 0.2, 0.5, 4),
}
CITATION = {
    "cora": (1, 0.01, 0.5, 4),
    "citeseer": (2, 0.01, 0.5, 4),
    "pubmed": (1, 0.1, 0.4, 4),
}


def printed(recipe):
    names = ("consistency", "entropy", "threshold", "heads")
    return tuple(recipe[name] for name in names)


@pytest.mark.parametrize("method", ["oodgat", "oodgat-printed"])
@pytest.mark.parametrize("dataset", PAPER)
def test_the_papers_settings(dataset, method):
    recipe = recipes.recipe(dataset, method)
    assert printed(recipe) == PAPER[dataset]
    assert (recipe["lr"], recipe["dropout"], recipe["discrepancy"]) == (0.01, 0.5, 5e-3)
    assert recipe["weight_decay"] == 0


@pytest.mark.parametrize("dataset", CITATION)
def test_the_papers_settings_for_citation(dataset):
    assert (
        printed(recipes.recipe(dataset, "oodgat", citation=True)) == (CITATION[dataset])
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_every_pair_has_a_recipe(dataset, method):
    recipe = recipes.recipe(dataset, method)
    kinds = {type(value) for value in recipe.values()}
    assert {float, int} <= kinds <= {float, int, bool}
    options = BACKBONES[METHODS[method].backbone].options()
    fixed = {"max_steps", "check_every", "patience", "early_stop", *options}
    assert set(recipe) - set(recipes.floats(recipe, METHODS[method])) <= fixed
    narrow, wide = {"gkde": 16}, ("gcn-bn", "gcn-unknown", "gpn")
    usual = 64 if METHODS[method].backbone in wide else 32
    assert recipe["hidden"] == narrow.get(method, usual)
    settings = [f"{name}={value}" for name, value in recipe.items()]
    assert recipes.override(recipe, settings) == recipe


def test_a_recipe_holds_what_its_method_uses():
    assert "consistency" not in recipes.recipe("cora", "gat")
    assert recipes.recipe("cora", "gat")["weight_decay"] == 5e-4
    assert "heads" not in recipes.recipe("lastfm-asia", "gcn")
    assert recipes.recipe("cora", "mlp")["input_dropout"] == 0.5


def test_other_regularizers_have_weights():
    chosen = ["entropy_printed", "discrepancy"]
    recipe = recipes.recipe("wiki-cs", "oodgat", regularizers=chosen)
    assert (recipe["entropy"], recipe["threshold"]) == (0.2, 0.5)
    assert recipe["discrepancy"] == 0.005
    assert "consistency" not in recipe
    assert "threshold" not in recipes.recipe("wiki-cs", "oodgat", regularizers=[])


def test_recipes_are_not_shared():
    recipes.recipe("cora", "oodgat")["lr"] = 1.0
    assert recipes.recipe("cora", "oodgat")["lr"] == 0.01


def test_override():
    recipe = recipes.recipe("cora", "oodgat")
    changed = recipes.override(recipe, ["lr=1", "heads=8", "lr=2e-1", "patience=0"])
    assert (changed["lr"], changed["heads"], changed["patience"]) == (0.2, 8, 0)
    assert recipe["lr"] == 0.01
    assert isinstance(recipes.override(recipe, ["lr=1"])["lr"], float)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("lr", "write --set name=value"),
        ("unheard=1", "'unheard': choose from lr, weight_decay"),
        ("consistency=1", "no hyper-parameter 'consistency'"),
        ("lr=fast", "lr must be a number, not 'fast'"),
        ("lr=", "lr must be a number"),
        ("lr=nan", "finite, not nan"),
        ("lr=-1", "at least 0, not -1"),
        ("heads=1.5", "heads must be a whole number, not '1.5'"),
        ("heads=0", "at least 1, not 0"),
        ("dropout=1", "below 1, not 1"),
    ],
)
def test_wrong_settings_are_named(setting, message):
    with pytest.raises(InputError, match=message):
        recipes.override(recipes.recipe("cora", "gat"), [setting])


def test_unknown_methods_are_refused():
    with pytest.raises(InputError, match=r"choose from .*Did you mean 'gcn'"):
        recipes.recipe("cora", "gcm")


def test_other_data_sets_get_the_defaults():
    assert recipes.recipe("mine", "oodgat") == recipes.recipe(None, "oodgat")
