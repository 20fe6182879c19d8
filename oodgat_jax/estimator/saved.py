"""A saved model: a folder with what a person can read, and the parameters.

  model.json           arguments, recipe, classes, threshold, versions, report
  parameters.msgpack   the members' parameters, stacked

Nothing in it is run when it is read.
"""

import json
import os
import pathlib
import shutil
import tempfile
from importlib import metadata
from typing import Any, NamedTuple

import flax.serialization
import jax
import numpy as np

from oodgat_jax import graphs, recipes
from oodgat_jax.methods import METHODS
from oodgat_jax.types import InputError

FORMAT = 1
FACTS, PARAMETERS = "model.json", "parameters.msgpack"
PLAIN = (str, int, float, bool)


class Model(NamedTuple):
    """What is kept of a fitted classifier."""

    parameters: Any  # pytree, [M, ...] each
    arguments: dict[str, Any]  # of the classifier
    recipe: recipes.Recipe
    classes: list
    num_features: int
    threshold: float
    report: dict[str, Any]


def save(folder: pathlib.Path, model: Model) -> None:
    """Writes the folder beside its place and moves it there when it is complete."""
    odd = [name for name in model.classes if not isinstance(name, PLAIN)]
    if odd:
        raise InputError(
            f"The class {odd[0]!r} cannot be saved: use texts or numbers as labels."
        )
    _check_replaceable(folder)
    facts = {name: getattr(model, name) for name in Model._fields[1:]}
    facts |= {"format": FORMAT, "versions": _versions()}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    beside = pathlib.Path(beside)
    try:
        (beside / FACTS).write_text(json.dumps(facts, indent=2) + "\n")
        numbers = flax.serialization.msgpack_serialize(_plain(model.parameters))
        (beside / PARAMETERS).write_bytes(numbers)
        beside.chmod(0o755)
        _put_in_place(beside, folder)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def load(folder: pathlib.Path) -> Model:
    """Reads a saved model and checks that its parts fit together."""
    facts = _facts(folder)
    try:
        model = Model(None, *(facts[name] for name in Model._fields[1:]))
    except KeyError as error:
        raise InputError(f"{folder / FACTS} has no entry {error}.") from error
    try:
        method = METHODS[model.arguments["method"]]
        module = recipes.module(method, model.recipe, len(model.classes))
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{folder / FACTS} names a method or a recipe that there is none of: "
            f"{error}."
        ) from error
    return model._replace(parameters=_parameters(folder, module, model.num_features))


def _facts(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / FACTS
    try:
        facts = json.loads(path.read_text())
    except OSError as error:
        raise InputError(
            f"{folder} is no saved model: {FACTS} cannot be read ({error.strerror})."
        ) from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}.") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        found = facts.get("format") if isinstance(facts, dict) else None
        raise InputError(
            f"{path} is of format {found}, but this version reads format {FORMAT}: "
            "fit and save the model again."
        )
    return facts


def _parameters(folder: pathlib.Path, module, num_features: int) -> Any:
    path = folder / PARAMETERS
    try:
        found = flax.serialization.msgpack_restore(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    except Exception as error:  # msgpack has a dozen kinds for damaged bytes
        raise InputError(f"{path} is damaged: {error}.") from error
    nothing = np.zeros(0, np.int32)
    graph = graphs.from_edges(np.zeros((1, num_features), np.float32), nothing, nothing)
    wanted = jax.eval_shape(lambda: module.init({"params": jax.random.key(0)}, graph))
    if not _fits(found, wanted):
        raise InputError(f"{path} does not fit {folder / FACTS}: save the model again.")
    return found


def _fits(found: Any, wanted: Any) -> bool:
    """Whether all leaves are there, with one and the same axis of members before."""
    if jax.tree.structure(found) != jax.tree.structure(_plain(wanted)):
        return False
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    return len({np.shape(leaf)[:1] for leaf in jax.tree.leaves(found)}) == 1 and all(
        np.shape(leaf)[1:] == like.shape for leaf, like in pairs
    )


def _plain(tree: Any) -> Any:
    return flax.serialization.to_state_dict(tree)


def _check_replaceable(folder: pathlib.Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: choose a folder for the model.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / FACTS).is_file():
        raise InputError(
            f"{folder} holds other files: choose an empty or a new folder, or one with "
            "a saved model."
        )


def _put_in_place(beside: pathlib.Path, folder: pathlib.Path) -> None:
    if folder.is_dir():
        old = pathlib.Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
        os.replace(folder, old)
        os.replace(beside, folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(beside, folder)


def _versions() -> dict[str, str]:
    names = ("oodgat-jax", "jax", "flax", "numpy")
    return {name: metadata.version(name) for name in names}


def _cannot_write(folder: pathlib.Path, error: OSError) -> InputError:
    return InputError(
        f"The model cannot be written to {folder} ({error.strerror}): choose another "
        "folder."
    )
