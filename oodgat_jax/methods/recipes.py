"""Hyper-parameters per (data set, method), as data.

A recipe maps names to values. Floats become array leaves of the compiled program, so
that a grid over them compiles once; whole numbers, and all fields of the backbone, are
part of the program:

  lr, weight_decay                             Adam; L2 is added to the gradient
  input_dropout, dropout, attention_dropout    features, hidden layer, attention
  hidden, heads, ...                           fields of the backbone
  max_steps, check_every, patience, early_stop see `training.Schedule`
  consistency, entropy, discrepancy            weights of the regularizers
  threshold                                    of the entropy regularizer
  first_decay, kernel, distillation            GKDE: see `gkde.training`
  latent, layers, rounds, teleport             GPN: see `gpn.network`
  energy_margin, m_in, m_out, ...              see `losses.table` and `published`

A recipe holds only what its method uses, so that setting anything else is an error.
OODGAT's numbers are the paper's; the baselines' are those of its authors' code.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import flax.linen as nn

from oodgat_jax.losses import REGULARIZERS
from oodgat_jax.methods import METHODS, Method
from oodgat_jax.models import BACKBONES, RATES
from oodgat_jax.registry import no_such
from oodgat_jax.training import Schedule
from oodgat_jax.types import InputError

Value = float | int | str
Recipe = dict[str, Value]

_OPTIMIZER: Recipe = {"lr": 0.01, "weight_decay": 5e-4}
_RATES: Recipe = {"input_dropout": 0.5, "dropout": 0.5, "attention_dropout": 0.6}
_STEPS: Recipe = {"max_steps": 1000, "check_every": 10, "patience": 20}

_OF_TRAINING = (*_OPTIMIZER, *_RATES, *_STEPS)  # no other part may have these

# The paper's weights of OODGAT's regularizers, where they are not the table's.
_WEIGHTS: Mapping[str, Recipe] = {
    "cora": {"threshold": 0.6},
    "amazon-computers": {"threshold": 0.4},
    "amazon-photo": {"consistency": 3.0, "entropy": 0.1, "threshold": 0.4},
    "coauthor-cs": {"consistency": 4.0, "threshold": 0.6},
    "lastfm-asia": {"consistency": 3.0, "entropy": 0.3},
    "wiki-cs": {"consistency": 3.0, "entropy": 0.2},
    "citeseer": {"entropy": 0.01},
    "pubmed": {"consistency": 1.0, "entropy": 0.1, "threshold": 0.4},
}
# Those under the citation protocol, where they differ again. Patience is there for all
# steps: on 500 validation nodes the first peak, near step 100, is not the best (Cora,
# ATT: AUROC 89.8 with a patience of 20 checks, 90.6 with all steps).
_CITATION_WEIGHTS: Mapping[str, Recipe] = {
    "cora": {"consistency": 1.0, "entropy": 0.01, "threshold": 0.5},
}
# What a data set asks of every method that has the setting.
_DATASETS: Mapping[str, Recipe] = {
    "digits": {"input_dropout": 0.2},
    "lastfm-asia": {"heads": 1},
}
# Lowest values of names that are known here; others may be any finite number.
_COUNTS = ("hidden", "heads", "latent", "layers", "max_steps", "check_every")
_WEIGHT_NAMES = ("consistency", "entropy", "discrepancy", "threshold")
_GKDE_NAMES = ("first_decay", "kernel", "distillation")
_MOST = 2**31 - 1  # what the compiled program counts with
_LOWEST: Mapping[str, int] = {
    **dict.fromkeys(_COUNTS, 1),
    **dict.fromkeys(("patience", "lr", "weight_decay", *RATES), 0),
    **dict.fromkeys((*_WEIGHT_NAMES, *_GKDE_NAMES), 0),
}


def recipe(
    dataset: str | None,
    method: str | Method,
    *,
    regularizers: Sequence[str] | None = None,
    citation: bool = False,
) -> Recipe:
    """Returns the hyper-parameters of a method on a data set.

    Args:
      dataset: its name; None, or one that the paper does not have, for the defaults.
      method: a key of METHODS, or a Method.
      regularizers: if they are not the method's own.
      citation: for the citation protocol.
    """
    method = METHODS[method] if isinstance(method, str) else method
    backbone = BACKBONES[method.backbone]
    names = method.regularizers if regularizers is None else regularizers
    chosen = _OPTIMIZER | {k: v for k, v in _RATES.items() if k in backbone.rates}
    _check_free(f"backbone '{method.backbone}'", backbone.options(), _OF_TRAINING)
    chosen |= backbone.options() | _STEPS
    if not method.early_stop:
        del chosen["patience"]
    taken = {*chosen, *_OF_TRAINING}
    _replace(chosen, _DATASETS.get(dataset or "", {}))
    for name in names:
        _check_free(f"regularizer '{name}'", REGULARIZERS[name].hyper, taken)
        chosen |= REGULARIZERS[name].hyper
    if names:
        _replace(chosen, _WEIGHTS.get(dataset or "", {}))
        _replace(chosen, _CITATION_WEIGHTS.get(dataset or "", {}) if citation else {})
    own = {key for name in method.regularizers for key in REGULARIZERS[name].hyper}
    for name, value in method.hyper.items():
        if name in chosen or name not in own:  # not of a regularizer that is left out
            chosen[name] = _default(name, value, chosen.get(name))
    if citation and "patience" in chosen:
        chosen["patience"] = chosen["max_steps"]
    return chosen


def _check_free(owner: str, names: Iterable[str], taken: Collection[str]) -> None:
    """Raises InputError for a setting that would change another one of its name."""
    for name in names:
        if name in taken:
            raise InputError(
                f"'{name}' of {owner} is a setting of the training or of the network "
                "already: choose another name."
            )


def _default(name: str, value: Any, replaced: Value | None) -> Value:
    """Returns a method's own value of a setting, of the kind that it replaces."""
    value = value.item() if hasattr(value, "item") else value
    if replaced is not None:
        return _parse(name, str(value), type(replaced))
    if not isinstance(value, str | int | float):
        raise InputError(f"{name} must be a number or a string, not {value!r:.50}.")
    if not isinstance(value, str) and not math.isfinite(value):
        raise InputError(f"{name} must be a number that is finite, not {value}.")
    return value


def override(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """Returns the recipe with settings `name=value` put in, each checked."""
    changed = dict(recipe)
    for setting in settings:
        name, text = split_setting(setting)
        if name not in recipe:
            raise no_such("hyper-parameter", name, recipe)
        changed[name] = _parse(name, text, type(recipe[name]))
    return changed


def override_known(chosen: Sequence[Recipe], settings: Sequence[str]) -> list[Recipe]:
    """Returns recipes of several methods, each with those settings that it has.

    Raises:
      InputError: a setting is wrong, or none of the recipes has its name.
    """
    every = sorted(set().union(*chosen))
    for setting in settings:
        name, _ = split_setting(setting)
        if name not in every:
            raise no_such("hyper-parameter", name, every)
    return [
        override(recipe, [s for s in settings if split_setting(s)[0] in recipe])
        for recipe in chosen
    ]


def split_setting(setting: str) -> tuple[str, str]:
    """Returns name and text of `name=value`."""
    name, equals, text = setting.partition("=")
    if not equals:
        raise InputError(f"'{setting}' is not a setting: write --set name=value.")
    return name, text


def floats(recipe: Recipe, method: Method) -> dict[str, float]:
    """Returns the part of a recipe that becomes array leaves, so that runs of one
    program can differ in it."""
    options = BACKBONES[method.backbone].options()
    return {
        name: value
        for name, value in recipe.items()
        if isinstance(value, float) and name not in options
    }


def leaves(recipe: Recipe, method: Method) -> dict[str, float]:
    """Returns its floats, and a rate of zero for every dropout that it lacks."""
    return dict.fromkeys(RATES, 0.0) | floats(recipe, method)


def module(method: Method, recipe: Recipe, num_classes: int) -> nn.Module:
    """Builds the method's network as the recipe says."""
    return BACKBONES[method.backbone].build(num_classes, recipe)


def schedule(method: Method, recipe: Recipe) -> Schedule:
    """Returns when to validate and to stop."""
    names = [name for name in Schedule._fields[:-1] if name in recipe]
    chosen = {name: int(recipe[name]) for name in names}
    early_stop = bool(recipe.get("early_stop", method.early_stop))
    return Schedule(**chosen, early_stop=early_stop)


def _replace(chosen: Recipe, values: Recipe) -> None:
    """Puts in those values whose names are there."""
    chosen.update({name: value for name, value in values.items() if name in chosen})


def _parse(name: str, text: str, kind: type) -> Value:
    if kind is str:
        return text
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise InputError(f"{name} must be true or false, not '{text}'.")
        return text.lower() == "true"
    wanted = "a whole number" if kind is int else "a number"
    try:
        value = kind(text)
    except ValueError as error:
        raise InputError(f"{name} must be {wanted}, not '{text}'.") from error
    lowest = _LOWEST.get(name, -math.inf)
    if not math.isfinite(value):
        raise InputError(f"{name} must be {wanted} that is finite, not {text}.")
    if kind is int and value > _MOST:
        raise InputError(f"{name} must be {wanted} of at most {_MOST}, not {text:.30}.")
    if value < lowest:
        raise InputError(f"{name} must be {wanted} of at least {lowest}, not {text}.")
    if name in RATES and value >= 1:
        raise InputError(f"{name} is a rate and must be below 1, not {text}.")
    return value
