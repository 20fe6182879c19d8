"""Files that are written whole or not at all."""

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import IO

from oodgat_jax.types import InputError


@contextlib.contextmanager
def file(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """Opens a file that takes its place at `path` at the end of the block.

    Raises:
      InputError: it cannot be written; whatever was at `path` is still there.
    """
    try:
        handle, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as output:
                yield output
            os.chmod(draft, 0o644)
            os.replace(draft, path)
        finally:
            pathlib.Path(draft).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}).") from error


def text(path: pathlib.Path, content: str) -> None:
    """Writes a text file."""
    with file(path) as output:
        output.write(content.encode())
