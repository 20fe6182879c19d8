"""A saved model: a folder with what a person can read, and the parameters.

  model.json                   arguments, recipe, classes, threshold, versions, report
  parameters-DIGEST.msgpack    the members' parameters, stacked

`model.json` names its parameters, so that replacing this one file is what replaces the
model: whoever reads finds the old model or the new one, at every moment and after every
crash. Other files in the folder are never touched. Nothing in it is run when read.
"""

import contextlib
import fcntl
import hashlib
import inspect
import json
import os
import pathlib
import re
import tempfile
from collections.abc import Iterator
from importlib import metadata
from typing import Any, NamedTuple

import flax.serialization
import jax
import numpy as np

from oodgat_jax import atomic_files, graphs, methods, training
from oodgat_jax.estimator import model_facts
from oodgat_jax.estimator.model_facts import PLAIN
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.types import InputError, Split

FORMAT, VERSION = "oodgat-jax model", 6
FACTS = "model.json"
# Names that `save` gives: nothing else in a folder is ever removed.
PARAMETERS = re.compile(r"parameters-[0-9a-f]{16}\.msgpack")
DRAFT = ".oodgat-draft-"
TRIES = 100  # a reader's, while others replace the model


class Model(NamedTuple):
    """What is kept of a fitted classifier."""

    parameters: Any  # pytree, [M, ...] each
    aux: Any  # the method's auxiliary state, a pytree like that
    arguments: dict[str, Any]  # of the classifier
    recipe: recipes.Recipe
    classes: list
    num_features: int
    threshold: float
    report: dict[str, Any]
    labeled: dict[str, Any]  # nodes, codes and digest of what the members learned from
    feature_names: list[str] | None
    scaling: dict[str, list[float]] | None  # see `estimator.scaling`
    preparation: dict[str, Any]  # see `estimator.preparation`
    calibration_scores: list[float]  # sorted, of the nodes that the threshold is from


class _Numbers(NamedTuple):
    """What the file of parameters holds."""

    parameters: Any
    aux: Any


def save(folder: pathlib.Path, model: Model) -> None:
    """Replaces the model of a folder, or makes one, whole or not at all."""
    odd = [name for name in model.classes if not isinstance(name, PLAIN)]
    if odd:
        raise InputError(
            f"The class {odd[0]!r} cannot be saved: use strings or numbers as labels."
        )
    check_folder(folder)
    numbers = flax.serialization.msgpack_serialize(
        _plain(_Numbers(model.parameters, model.aux)._asdict())
    )
    digest = hashlib.sha256(numbers).hexdigest()
    name = f"parameters-{digest[:16]}.msgpack"
    facts = {name: getattr(model, name) for name in Model._fields[2:]}
    facts |= {"format": FORMAT, "version": VERSION, "versions": _versions()}
    facts |= {"parameters": {"file": name, "sha256": digest}}
    text = json.dumps(facts, indent=2) + "\n"
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            check_folder(folder)
            _replace(folder / name, numbers)
            _replace(folder / FACTS, text.encode())
            _remove_others(folder, name)
    except OSError as error:
        _remove_empty(new)
        raise _cannot_write(folder, error) from error


def check_folder(folder: pathlib.Path) -> None:
    """Raises InputError unless a model can be saved there: no folder, or an empty
    one, or one that holds a model."""
    try:
        if folder.is_symlink() and not folder.exists():
            raise InputError(f"{folder} is a link to nowhere: choose another folder.")
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file: choose a folder for the model.")
        found = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    except OSError as error:
        raise _cannot_write(folder, error) from error
    foreign = [name for name in found if not _is_ours(name)]
    if foreign and not _holds_model(folder):
        raise InputError(
            f"{folder} holds other files and no model of this program: choose an empty "
            "or a new folder, or one with a saved model."
        )


def check_can_save(folder: pathlib.Path) -> None:
    """Raises InputError unless a model could be saved there, before it is trained."""
    check_folder(folder)
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise _cannot_write(folder, error) from error


def load(folder: pathlib.Path) -> Model:
    """Reads a saved model and checks that its parts fit together."""
    for _ in range(TRIES):
        facts = _facts(folder)
        path = folder / _parameters_name(folder, facts)
        try:
            numbers = path.read_bytes()
            break
        except FileNotFoundError as error:
            missing = error  # unless another process has just replaced the model
            if facts == _facts(folder):
                raise InputError(f"{path} is missing: save the model again.") from error
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    else:
        raise InputError(
            f"{folder} is being replaced all the time: try again."
        ) from missing
    return _assembled(folder, facts, path, numbers)


def _assembled(
    folder: pathlib.Path, facts: dict[str, Any], path: pathlib.Path, numbers: bytes
) -> Model:
    if hashlib.sha256(numbers).hexdigest() != facts["parameters"].get("sha256"):
        raise InputError(f"{path} is damaged: its digest is not the one in {FACTS}.")
    try:
        entries = model_facts.check(facts, _defaults())
        model = Model(None, None, *(entries[name] for name in Model._fields[2:]))
        wanted = _shapes(model)
    except InputError as error:
        raise InputError(
            f"{folder / FACTS} is damaged ({str(error).rstrip('.')}): save the model "
            "again."
        ) from error
    found = _restore(path, numbers, wanted)
    return model._replace(parameters=found.parameters, aux=found.aux)


def _defaults() -> dict[str, Any]:
    """Returns the arguments of a classifier with their defaults."""
    from oodgat_jax.estimator import OODGATClassifier  # which imports this module

    signature = inspect.signature(OODGATClassifier)
    return {name: entry.default for name, entry in signature.parameters.items()}


def _parameters_name(folder: pathlib.Path, facts: dict[str, Any]) -> str:
    """Returns the file of the parameters, one that `save` could have written."""
    entry = facts.get("parameters")
    name = entry.get("file") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not PARAMETERS.fullmatch(name):
        raise InputError(f"{folder / FACTS} does not name its parameters.")
    return name


def _facts(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / FACTS
    try:
        facts = model_facts.parse(path.read_text())
    except OSError as error:
        raise InputError(
            f"{folder} is not a saved model: {FACTS} cannot be read ({error.strerror})."
        ) from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}.") from error
    if not isinstance(facts, dict) or not _is_model(facts):
        raise InputError(f"{path} was not written by this program.")
    if facts.get("version") != VERSION or isinstance(facts["version"], bool):
        raise InputError(
            f"{path} is of version {facts.get('version', 1)}, but this program reads "
            f"version {VERSION}: fit and save the model again."
        )
    return facts


def _restore(path: pathlib.Path, numbers: bytes, wanted: "_Numbers") -> "_Numbers":
    try:
        found = flax.serialization.msgpack_restore(numbers)
        fits = _fits(found, wanted)
    except Exception as error:  # msgpack has a dozen kinds for damaged bytes
        raise InputError(f"{path} is damaged: {error}.") from error
    if not fits:
        raise InputError(f"{path} does not fit its {FACTS}: save the model again.")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found)):
        raise InputError(f"{path} holds numbers that are not finite: fit again.")
    return _Numbers(**flax.serialization.from_state_dict(wanted._asdict(), found))


def _shapes(model: Model) -> "_Numbers":
    """Returns the shapes of one member's parameters and auxiliary state."""
    method = METHODS[model.arguments["method"]]
    module = recipes.module(method, model.recipe, len(model.classes))
    nothing, nobody = np.zeros(0, np.int32), np.zeros(1, bool)
    features = np.zeros((1, model.num_features), np.float32)
    graph = graphs.from_edges(features, nothing, nothing)
    split = Split(np.zeros(1, np.int32), nobody, nobody, nobody, nobody)
    hyper = recipes.leaves(model.recipe, method)

    def start() -> _Numbers:
        run = training.Run(jax.random.key(0), split, hyper)
        params = module.init({"params": run.key}, graph)
        aux = methods.assemble(method, module).init_aux(params, run, graph)
        return _Numbers(params, aux)

    try:
        return jax.eval_shape(start)
    except Exception as error:  # whatever a network raises that cannot be built
        raise InputError(f"its network cannot be built: {error}") from error


def _fits(found: Any, wanted: "_Numbers") -> bool:
    """Returns whether all leaves are there, each with the same axis of members."""
    shapes = _plain(wanted._asdict())  # the order of its leaves is that of the file
    if len({jax.tree.structure(tree) for tree in (found, shapes)}) > 1:
        return False
    leaves = jax.tree.leaves(found)
    if not all(isinstance(leaf, np.ndarray) and leaf.ndim for leaf in leaves):
        return False
    pairs = zip(leaves, jax.tree.leaves(shapes), strict=True)
    members = {len(leaf) for leaf in leaves}
    return (
        len(members) == 1
        and 0 not in members
        and all(
            leaf.shape[1:] == like.shape and leaf.dtype == like.dtype
            for leaf, like in pairs
        )
    )


def _plain(tree: Any) -> Any:
    return flax.serialization.to_state_dict(tree)


def _is_model(facts: Any) -> bool:
    """Returns whether `save` wrote this, in this version or in the first."""
    if not isinstance(facts, dict):
        return False
    versions = facts.get("versions")
    named = isinstance(versions, dict) and "oodgat-jax" in versions
    first = facts.get("format") == 1 and named
    return facts.get("format") == FORMAT or first


def _holds_model(folder: pathlib.Path) -> bool:
    try:
        return _is_model(model_facts.parse((folder / FACTS).read_text()))
    except (OSError, ValueError):
        return False


def _is_ours(name: str) -> bool:
    """Returns whether only `save` gives such a name, so that it may be removed."""
    return bool(PARAMETERS.fullmatch(name)) or name.startswith(DRAFT)


@contextlib.contextmanager
def _locked(folder: pathlib.Path) -> Iterator[None]:
    """Lets one writer in at a time; a lock on a folder leaves no file behind."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(path: pathlib.Path, content: bytes) -> None:
    """Writes a file beside its place, to the disk, and moves it there."""
    handle, draft = tempfile.mkstemp(prefix=DRAFT, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as output:
            output.write(content)
            output.flush()
            os.fsync(output.fileno())
        os.chmod(draft, atomic_files.mode(path))
        os.replace(draft, path)
    finally:
        pathlib.Path(draft).unlink(missing_ok=True)


def _remove_empty(folders: list[pathlib.Path]) -> None:
    """Removes folders that a save has made in vain, the innermost first."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _remove_others(folder: pathlib.Path, name: str) -> None:
    """Removes parameters and drafts of earlier saves; the folder is locked."""
    for path in folder.iterdir():
        if _is_ours(path.name) and path.name != name:
            path.unlink(missing_ok=True)


def _versions() -> dict[str, str]:
    names = ("oodgat-jax", "jax", "flax", "numpy")
    return {name: metadata.version(name) for name in names}


def _cannot_write(folder: pathlib.Path, error: OSError) -> InputError:
    return InputError(
        f"The model cannot be written to {folder} ({error.strerror}): choose another "
        "folder."
    )
