"""Checks what a saved model says of itself, whoever has written or changed it."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oodgat_jax import experiment
from oodgat_jax.estimator import arguments, inputs, preparation
from oodgat_jax.estimator.answers import Report
from oodgat_jax.methods import recipes
from oodgat_jax.types import InputError

PLAIN = (str, int, float, bool)
MOST_FEATURES = 2**31 - 1
_WHOLE = ("held_out", "calibration", "unlabeled", "failed_members")
_MAY_LACK = ("lost_low", "lost_high", "least_unknown")


def parse(text: str) -> Any:
    """Returns the content of a JSON text without NaN, infinity or endless nesting.

    Raises:
      ValueError: it is not that.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def check(facts: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entries of `persistence.Model` but its arrays, each checked.

    Args:
      facts: content of model.json.
      defaults: the arguments of a classifier.

    Raises:
      InputError: an entry is missing or wrong; it is named.
    """
    missing = [name for name in _CHECKS if name not in facts]
    if missing:
        raise InputError(f"there is no entry '{missing[0]}'")
    found = {name: facts[name] for name in _CHECKS}
    found["arguments"] = _arguments(found["arguments"], defaults)
    for name, fits in _CHECKS.items():
        if not fits(found[name], found):
            raise InputError(f"the entry '{name}' is wrong")
    found["recipe"] = _recipe(found["recipe"], found["arguments"])
    return found


def _arguments(given: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(given, dict) or not isinstance(given.get("method"), str):
        raise InputError("the entry 'arguments' is wrong")
    odd = sorted(set(given) - set(defaults))
    if odd:
        raise InputError(f"there is no argument '{odd[0]}'")
    settings = given.get("settings")
    if settings is not None and not _is_plain_dict(settings):
        raise InputError("the settings are wrong")
    complete = {**defaults, **given}
    arguments.check(complete)
    return complete


def _recipe(given: Mapping[str, Any], chosen: Mapping[str, Any]) -> recipes.Recipe:
    known = recipes.recipe(None, chosen["method"])
    missing = sorted(set(known) - set(given))
    if missing:
        raise InputError(f"the recipe has no '{missing[0]}'")
    return recipes.override(known, experiment.as_settings(given))


def _classes(value: Any, facts: Mapping[str, Any]) -> bool:
    if not isinstance(value, list) or len(value) < 2:
        return False
    if not all(isinstance(name, PLAIN) and _is_finite(name) for name in value):
        return False
    texts = sum(isinstance(name, str) for name in value)
    distinct = len(set(value)) == len(value) and texts in (0, len(value))
    return distinct and not any(inputs.is_missing(name) for name in value)


def _report(value: Any, facts: Mapping[str, Any]) -> bool:
    if not isinstance(value, dict) or set(value) != set(Report._fields):
        return False
    for name, number in value.items():
        if number is None and name in _MAY_LACK:
            continue
        if not _is_number(number) or number < 0:
            return False
        if name in _WHOLE and not arguments.is_whole(number):
            return False
        if name not in _WHOLE and number > 1:
            return False
    return True


def _labeled(value: Any, facts: Mapping[str, Any]) -> bool:
    if not isinstance(value, dict) or set(value) != {"nodes", "codes", "digest"}:
        return False
    nodes, codes = value["nodes"], value["codes"]
    return (
        isinstance(value["digest"], str)
        and _are_whole(nodes, MOST_FEATURES)
        and _are_whole(codes, len(facts["classes"]))
        and len(nodes) == len(codes) > 0
    )


def _scaling(value: Any, facts: Mapping[str, Any]) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict) or set(value) != {"mean", "deviation"}:
        return False
    right = all(
        _are_numbers(column, facts["num_features"]) for column in value.values()
    )
    return right and min(value["deviation"]) > 0


def _names(value: Any, facts: Mapping[str, Any]) -> bool:
    if value is None:
        return True
    right = isinstance(value, list) and len(value) == facts["num_features"]
    return right and all(isinstance(name, str) for name in value)


def _preparation(value: Any, facts: Mapping[str, Any]) -> bool:
    if not isinstance(value, dict) or set(value) != {"categories", "means"}:
        return False
    categories, means = value["categories"], value["means"]
    given = facts["arguments"]
    if not isinstance(categories, dict) or set(categories) != set(given["categorical"]):
        return False
    if not all(_are_values(values) for values in categories.values()):
        return False
    width = facts["num_features"] - sum(map(len, categories.values()))
    if given["missing"] != "mean":
        return means is None and width >= 0
    return _are_numbers(means, width)


def _are_values(values: Any) -> bool:
    return (
        isinstance(values, list)
        and 0 < len(values) <= preparation.MOST_VALUES
        and all(isinstance(value, str) for value in values)
        and len(set(values)) == len(values)
    )


# In this order: later ones rely on the earlier.
_CHECKS: Mapping[str, Callable[[Any, Mapping[str, Any]], bool]] = {
    "arguments": lambda value, facts: True,  # checked before
    "recipe": lambda value, facts: _is_plain_dict(value),
    "classes": _classes,
    "num_features": lambda value, facts: _are_whole([value], MOST_FEATURES) and value,
    "threshold": lambda value, facts: _is_number(value),
    "report": _report,
    "labeled": _labeled,
    "feature_names": _names,
    "scaling": _scaling,
    "preparation": _preparation,
    "calibration_scores": lambda value, facts: _are_numbers(value) and len(value) > 0,
}


def _is_plain_dict(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(entry, PLAIN) for entry in value.values()
    )


def _are_whole(values: Any, below: int) -> bool:
    return isinstance(values, list) and all(
        arguments.is_whole(value) and 0 <= value < below for value in values
    )


def _are_numbers(values: Any, count: int | None = None) -> bool:
    right = isinstance(values, list) and all(_is_number(value) for value in values)
    return right and count in (None, len(values))


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and _is_finite(value)
    )


def _is_finite(value: Any) -> bool:
    if not isinstance(value, int | float):
        return True
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _no_constant(name: str) -> Sequence:
    raise ValueError(f"it holds {name}")
