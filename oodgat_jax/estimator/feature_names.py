"""Matches the columns of another graph's features to those of the fit, by name."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from oodgat_jax.datasets import arrays
from oodgat_jax.types import InputError

SHOWN = 5  # names in a message


class Match(NamedTuple):
    """Where the fit's features are among those given."""

    columns: np.ndarray  # [F] places among the given features
    extra: list[str]  # names of those that the fit did not have


def of(features: Any, names: Sequence[str] | None = None) -> list[str] | None:
    """Returns the names given, or else the columns of a table like pandas'; or None.

    Raises:
      InputError: the names given are not one string per feature, each once.
    """
    if names is not None and not hasattr(names, "__iter__"):
        raise InputError(f"names must be a list of strings, not {names!r}.")
    given = list(names) if names is not None else arrays.column_names(features)
    if given is None:
        return None
    width = np.shape(features)[1] if len(np.shape(features)) == 2 else len(given)
    if len(given) != width or not all(isinstance(name, str) for name in given):
        raise InputError(
            f"There must be one name for each of the {width} features, a string, but "
            f"there are {len(given)} names."
        )
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise InputError(f"Two features are called '{twice}': rename one of them.")
    return given


def match(fitted: Sequence[str], given: Sequence[str]) -> Match:
    """Returns where the fit's features are.

    Raises:
      InputError: some are missing.
    """
    place = {name: at for at, name in enumerate(given)}
    missing = [name for name in fitted if name not in place]
    if missing:
        raise InputError(
            f"The model needs the features {shown(missing)}, which are not among those "
            "given: add or rename the columns."
        )
    known = set(fitted)
    extra = [name for name in given if name not in known]
    return Match(np.array([place[name] for name in fitted]), extra)


def shown(names: Sequence[str]) -> str:
    """Returns some names for a message."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(f"'{name}'" for name in names[:SHOWN]) + more
