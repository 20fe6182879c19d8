"""Where the command `oodgat` writes: every place is checked before anything starts."""

import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from oodgat_jax import atomic_files
from oodgat_jax.cli import app, predict_output
from oodgat_jax.cli.predict_flags import Given
from oodgat_jax.estimator import persistence
from oodgat_jax.types import InputError

READ = ("nodes", "edges", "features", "labels")
SUFFIXES = {
    "out": (".csv", ".npz"),
    "picture": predict_output.PICTURES,
    "report": (".html",),
    "review": (".csv",),
}


class Places(NamedTuple):
    """The files that are written, and the folder of the model."""

    out: pathlib.Path | None
    picture: pathlib.Path | None
    report: pathlib.Path | None
    review: pathlib.Path | None
    save: pathlib.Path | None

    @property
    def files(self) -> dict[str, pathlib.Path]:
        """Returns the files by their flags."""
        return {
            name: path
            for name, path in self._asdict().items()
            if path is not None and name != "save"
        }


def places(given: Given) -> Places:
    """Returns where everything goes, after checking all of it."""
    out = given.path("out")
    for flag in ("out", "report", "review"):
        value = getattr(given, flag)
        if value is not None and not pathlib.Path(value).name:
            suffixes = " or ".join(SUFFIXES[flag])
            raise InputError(f"--{flag} must name a file that ends in {suffixes}.")
    picture = None if out is None else given.path("picture") or out.with_suffix(".png")
    found = Places(
        out, picture, given.path("report"), given.path("review"), given.path("save")
    )
    for flag, path in found.files.items():
        _check_file(given, flag, path)
    _check_distinct(found.files)
    if found.save:
        _check_save(found.save, list(found.files.values()))
    for path in found.files.values():
        app.out_folder(str(path.parent))
        atomic_files.check(path)
    return found


def _check_file(given: Given, flag: str, path: pathlib.Path) -> None:
    suffixes = SUFFIXES[flag]
    if path.suffix not in suffixes:
        raise InputError(f"--{flag} must end in {' or '.join(suffixes)}, not '{path}'.")
    if os.path.isdir(path):
        raise InputError(f"--{flag} names the folder {path}: name a file.")
    for name in READ:  # nothing is written where something is read
        other = given.path(name)
        if other and _same_file(path, other):
            raise InputError(
                f"--{flag} would overwrite --{name}, {other}: choose another file."
            )


def _check_distinct(files: dict[str, pathlib.Path]) -> None:
    named = list(files.items())
    for at, (flag, path) in enumerate(named):
        for other, place in named[:at]:
            if _same_file(path, place):
                raise InputError(
                    f"--{flag} would overwrite --{other}: choose another file."
                )


def _check_save(folder: pathlib.Path, files: Sequence[pathlib.Path]) -> None:
    persistence.check_can_save(folder)
    inside = [path for path in files if folder.resolve() in path.resolve().parents]
    if inside and not (folder / persistence.FACTS).exists():
        raise InputError(
            f"--save={folder} is to hold a model alone, but {inside[0]} would be in "
            "it: choose another folder."
        )


def _same_file(one: pathlib.Path, other: pathlib.Path) -> bool:
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)
