"""Checks what a classifier is made with."""

import copy
import math
import numbers
import os
from collections.abc import Mapping
from typing import Any

from oodgat_jax import experiment
from oodgat_jax.detectors import DETECTORS
from oodgat_jax.estimator import known_nodes, members, preparation, scaling
from oodgat_jax.estimator.thresholds import THRESHOLDS
from oodgat_jax.methods import recipes
from oodgat_jax.registry import check_name
from oodgat_jax.types import InputError

BINDING = ("method", "detector", "settings", "directed", "missing", "categorical")
MOST_MEMBERS = 10_000
SEEDS = 2**32  # seeds are below this number


def check(arguments: dict[str, Any]) -> recipes.Recipe:
    """Raises InputError for a wrong argument by its name; returns the recipe."""
    count = arguments["members"]
    if not is_whole(count) or not 1 <= count <= MOST_MEMBERS:
        raise InputError(
            f"members must be a whole number from 1 to {MOST_MEMBERS}, not {count!r}."
        )
    for name in ("keep", "held_out"):
        check_share(name, arguments[name])
    check_threshold(arguments["threshold"])
    scaling.check_scale(arguments["scale"])
    preparation.check_arguments(arguments["missing"], arguments["categorical"])
    if not isinstance(arguments["directed"], bool):
        raise InputError(
            f"directed must be True or False, not {arguments['directed']!r}."
        )
    detector = arguments["detector"]
    if detector is not None:
        check_name("detector", detector, DETECTORS)
    check_seed(arguments["random_state"])
    if not isinstance(arguments["method"], str):
        kind = type(arguments["method"]).__name__
        raise InputError(f"method must be a name, such as 'oodgat', not a {kind}.")
    if not isinstance(arguments["settings"], Mapping | None):
        raise InputError(
            f"settings must be a dict, such as {{'lr': 0.02}}, not "
            f"{arguments['settings']!r:.50}."
        )
    settings = experiment.as_settings(arguments["settings"] or {})
    recipe = recipes.override(recipes.recipe(None, arguments["method"]), settings)
    known_nodes.needs(members.validated_by(arguments["method"], detector))
    return recipe


def binding(classifier: Any) -> dict[str, Any]:
    """Returns the arguments without which a classifier's parameters mean nothing."""
    return copy.deepcopy({name: getattr(classifier, name) for name in BINDING})


def check_unchanged(classifier: Any, fitted_with: Mapping[str, Any]) -> None:
    """Raises InputError if one of them was changed after the fit."""
    for name, value in binding(classifier).items():
        if value != fitted_with[name]:
            raise InputError(
                f"{name} was changed after the fit, from {fitted_with[name]!r} to "
                f"{value!r}: call fit again."
            )


def check_share(name: str, value: Any) -> None:
    """Raises InputError unless it is a number between 0 and 1."""
    if not _is_number(value) or not 0.0 < value < 1.0:
        raise InputError(f"{name} must be a number between 0 and 1, not {value!r}.")


def check_threshold(value: Any) -> None:
    """Raises InputError unless it is a key of THRESHOLDS or a finite number."""
    if isinstance(value, str) and value in THRESHOLDS:
        return
    if not _is_number(value) or not math.isfinite(value):
        raise InputError(
            f"There is no threshold {value!r}: choose from {', '.join(THRESHOLDS)}, or "
            "give a finite number."
        )


def check_number(name: str, value: Any) -> None:
    """Raises InputError unless it is a finite number."""
    if not _is_number(value) or not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, not {value!r}.")


def check_count(name: str, value: Any) -> None:
    """Raises InputError unless it is a whole number of at least 1."""
    if not is_whole(value) or value < 1:
        raise InputError(f"{name} must be a whole number, at least 1, not {value!r}.")


def check_seed(value: Any) -> None:
    """Raises InputError unless it is None or a whole number that can be a seed."""
    if value is not None and (not is_whole(value) or not 0 <= value < SEEDS):
        raise InputError(
            f"random_state must be None or a whole number from 0 to {SEEDS - 1}, not "
            f"{value!r}."
        )


def seed(value: int | None) -> int:
    """Returns the seed; a new one every time for None."""
    return int.from_bytes(os.urandom(4)) if value is None else int(value)


def plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns arguments with numpy's numbers as Python's, for JSON."""
    return {
        name: plain(value) if isinstance(value, dict) else _as_python(value)
        for name, value in arguments.items()
    }


def is_whole(value: Any) -> bool:
    """Returns whether it is a whole number of any library, and not a truth value."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _as_python(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
