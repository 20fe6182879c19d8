"""Files that are written whole or not at all."""

import contextlib
import errno
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import IO

from oodgat_jax.types import InputError

DRAFT = ".oodgat-file-"


@contextlib.contextmanager
def file(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """Opens a file that takes its place at `path` at the end of the block.

    Raises:
      InputError: it cannot be written; whatever was at `path` is still there.
    """
    try:
        place = pathlib.Path(os.path.realpath(path))  # a link is followed and stays
        handle, draft = tempfile.mkstemp(prefix=DRAFT, dir=place.parent)
        try:
            with os.fdopen(handle, "wb") as output:
                yield output
            os.chmod(draft, mode(place))
            os.replace(draft, place)
        finally:
            pathlib.Path(draft).unlink(missing_ok=True)
    except OSError as error:
        raise _cannot_write(path, error) from error


def check(path: pathlib.Path) -> None:
    """Raises InputError unless a file could be written there."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=pathlib.Path(os.path.realpath(path)).parent):
            pass
    except OSError as error:
        raise _cannot_write(path, error) from error


def mode(path: pathlib.Path) -> int:
    """Returns who may read and write: as before, else as the user's mask says."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _cannot_write(path: pathlib.Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be written ({error.strerror}).")


def text(path: pathlib.Path, content: str) -> None:
    """Writes a text file."""
    with file(path) as output:
        output.write(content.encode())
