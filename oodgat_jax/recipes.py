"""Hyper-parameters per (data set, method), as data.

A recipe maps names to numbers. Floats become array leaves of the compiled program, so
that a grid over them compiles once; whole numbers are part of the program:

  lr, weight_decay                             Adam; L2 is added to the gradient
  input_dropout, dropout, attention_dropout    features, hidden layer, attention
  hidden, heads                                width per head, attention heads
  max_steps, check_every, patience             see `train.Schedule`
  consistency, entropy, discrepancy            weights of the regularisers
  threshold                                    of the entropy regulariser
  first_decay, kernel, distillation            GKDE: see `gkde.loss`

A recipe holds only what its method uses, so that setting anything else is an error.
OODGAT's numbers are the paper's; the baselines' are those of its authors' code.
"""

import math
from collections.abc import Mapping, Sequence

import flax.linen as nn

from oodgat_jax import methods
from oodgat_jax.datasets import DATASETS
from oodgat_jax.methods import METHODS, Method
from oodgat_jax.train import Schedule
from oodgat_jax.types import InputError

Recipe = dict[str, float | int]

_DEFAULTS: Recipe = {
    "lr": 0.01,
    "weight_decay": 5e-4,
    "input_dropout": 0.5,
    "dropout": 0.5,
    "attention_dropout": 0.6,
    "hidden": 32,
    "heads": 4,
    "max_steps": 1000,
    "check_every": 10,
    "patience": 20,
}
_RATES = ("input_dropout", "dropout", "attention_dropout")
# By backbone.
_UNUSED: Mapping[str, tuple[str, ...]] = {
    "evidential-gcn": (*_RATES, "heads", "patience"),
    "gcn": ("input_dropout", "attention_dropout", "heads"),
    "mlp": ("attention_dropout", "heads"),
    "sage": ("input_dropout", "attention_dropout", "heads"),
}

# Weights of the regularisers where neither the paper nor experience says better.
_WEIGHTS: Recipe = {
    "consistency": 2.0,
    "entropy": 0.05,
    "discrepancy": 0.005,
    "threshold": 0.5,
}
_NEW_TERM = 1.0  # weight of a regulariser that has no entry anywhere

# The paper's settings of OODGAT, where they are not the ones above.
_OODGAT: Mapping[str, Recipe] = {
    "cora": {"threshold": 0.6},
    "amazon-computers": {"threshold": 0.4},
    "amazon-photo": {"consistency": 3.0, "entropy": 0.1, "threshold": 0.4},
    "coauthor-cs": {"consistency": 4.0, "threshold": 0.6},
    "lastfm-asia": {"consistency": 3.0, "entropy": 0.3},
    "wiki-cs": {"consistency": 3.0, "entropy": 0.2},
    "citeseer": {"entropy": 0.01},
    "pubmed": {"consistency": 1.0, "entropy": 0.1, "threshold": 0.4},
}
# Its settings under the citation protocol, where they differ again. Patience is there
# for all steps: on 500 validation nodes the first peak, near step 100, is not the best
# (Cora, ATT: AUROC 89.8 with a patience of 20 checks, 90.6 with all steps).
_OODGAT_CITATION: Mapping[str, Recipe] = {
    "cora": {"consistency": 1.0, "entropy": 0.01, "threshold": 0.5},
}
# What a data set asks of every method.
_DATASETS: Mapping[str, Recipe] = {
    "digits": {"input_dropout": 0.2},
    "lastfm-asia": {"heads": 1},
}

# What a method asks on every data set.
_METHODS: Mapping[str, Recipe] = {
    # GKDE has dropout in its model and takes all steps; its checks are so placed that
    # the last one is at the thousandth.
    "gkde": {
        "weight_decay": 0.0,
        "check_every": 9,
        "hidden": 16,
        "first_decay": 5e-4,
        "kernel": 0.1,
        "distillation": 1.0,
    },
    "oodgat": {"weight_decay": 0.0},
    "oodgat-printed": {"weight_decay": 0.0},
}


def recipe(
    dataset: str | None,
    method: str,
    *,
    terms: Sequence[str] | None = None,
    citation: bool = False,
) -> Recipe:
    """The hyper-parameters of a method on a data set.

    Args:
      dataset: a key of DATASETS, or None for a graph of one's own.
      method: a key of METHODS.
      terms: regularisers, if they are not the method's own.
      citation: for the citation protocol.
    """
    if dataset is not None:
        _known("data set", dataset, DATASETS)
    _known("method", method, METHODS)
    backbone = METHODS[method].backbone
    terms = METHODS[method].terms if terms is None else terms
    chosen = _DEFAULTS | _DATASETS.get(dataset, {})
    chosen = {k: v for k, v in chosen.items() if k not in _UNUSED.get(backbone, ())}
    chosen |= _METHODS.get(method, {})
    if citation and "patience" in chosen:
        chosen["patience"] = chosen["max_steps"]
    return chosen | _weights(dataset, terms, citation)


def override(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with settings `name=value` put in, each checked."""
    changed = dict(recipe)
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"'{setting}' is no setting: write --set name=value.")
        _known("hyper-parameter", name, recipe)
        changed[name] = _parse(name, text, type(recipe[name]))
    return changed


def override_known(chosen: Sequence[Recipe], settings: Sequence[str]) -> list[Recipe]:
    """Recipes of several methods, each with those settings whose name it has.

    Raises:
      InputError: a setting is wrong, or none of the recipes has its name.
    """
    every = sorted(set().union(*chosen))
    for setting in settings:
        if setting.partition("=")[0] not in every:
            raise InputError(
                f"No method has '{setting}': choose from {', '.join(every)}."
            )
    return [
        override(recipe, [s for s in settings if s.partition("=")[0] in recipe])
        for recipe in chosen
    ]


def floats(recipe: Mapping[str, float | int]) -> dict[str, float]:
    """The part of a recipe that becomes array leaves."""
    return {name: value for name, value in recipe.items() if isinstance(value, float)}


def leaves(recipe: Recipe) -> dict[str, float]:
    """Its floats, and a rate of zero for every dropout that the method lacks."""
    return dict.fromkeys(_RATES, 0.0) | floats(recipe)


def module(method: Method, recipe: Recipe, num_classes: int) -> nn.Module:
    """The method's network in the recipe's size."""
    heads = recipe.get("heads", 1)
    return methods.model(method, num_classes, recipe["hidden"], heads)


def schedule(method: Method, recipe: Recipe) -> Schedule:
    """When to validate and to stop."""
    names = [name for name in Schedule._fields if name in recipe]
    chosen = {name: recipe[name] for name in names}
    return Schedule(**chosen, early_stop=method.early_stop)


def _weights(dataset: str | None, terms: Sequence[str], citation: bool) -> Recipe:
    """Weights of the given regularisers, and the threshold if there are any."""
    known = _WEIGHTS | _OODGAT.get(dataset, {})
    if citation:
        known |= _OODGAT_CITATION.get(dataset, {})
    names = [term.removesuffix("_printed") for term in terms]
    names += ["threshold"] if terms else []
    return {name: known.get(name, _NEW_TERM) for name in names}


def _known(kind: str, name: str, known: Mapping) -> None:
    if name not in known:
        raise InputError(
            f"There is no {kind} '{name}' here: choose one of {', '.join(known)}."
        )


def _parse(name: str, text: str, kind: type) -> float | int:
    wanted = "a whole number" if kind is int else "a number"
    try:
        value = kind(text)
    except ValueError as error:
        raise InputError(f"{name} must be {wanted}, not '{text}'.") from error
    lowest = 1 if kind is int and name != "patience" else 0
    if not math.isfinite(value) or value < lowest:
        raise InputError(f"{name} must be {wanted} of at least {lowest}, not {text}.")
    if name in _RATES and value >= 1:
        raise InputError(f"{name} is a rate and must be below 1, not {text}.")
    return value
