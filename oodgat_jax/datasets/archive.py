"""Unpack named members of a zip file that nobody vouches for."""

import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from oodgat_jax.datasets.readers import checks

MAX_MEMBER_BYTES = 1 << 28


def extract(path: Path, names: Sequence[str], folder: Path) -> None:
    """Writes the members called `names` to `folder`, and nothing else.

    The folder inside the archive does not matter (SNAP misspells one). Where a file
    goes is decided by `names`, never by the archive. Each file appears whole or not
    at all.
    """
    with checks.reading(path), zipfile.ZipFile(path) as archive:
        members = {name: _find(archive, name, path) for name in names}
        for name, member in members.items():
            with archive.open(member) as stream:
                _write(stream, folder / name, path)


def _find(archive: zipfile.ZipFile, name: str, path: Path) -> zipfile.ZipInfo:
    """Returns the one member with this file name."""
    found = [
        member
        for member in archive.infolist()
        if PurePosixPath(member.filename).name == name and not member.is_dir()
    ]
    if len(found) != 1:
        raise checks.bad(path, f"holds {len(found)} files {name} instead of one")
    parts = PurePosixPath(found[0].filename).parts
    if ".." in parts or found[0].filename.startswith("/"):
        raise checks.bad(path, f"holds {found[0].filename}, which leaves its folder")
    return found[0]


def _write(stream: IO[bytes], target: Path, path: Path) -> None:
    """Copies a member, counting real bytes: the sizes in the archive may lie."""
    descriptor, temporary = tempfile.mkstemp(dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as output:
            while block := stream.read(1 << 20):
                output.write(block)
                if output.tell() > MAX_MEMBER_BYTES:
                    limit = f"more than {MAX_MEMBER_BYTES} bytes"
                    raise checks.bad(path, f"unpacks {target.name} to {limit}")
        os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)
