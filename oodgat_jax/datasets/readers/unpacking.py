"""Opens a user's file, compressed or not, within the limit of what it may unpack to."""

import bz2
import contextlib
import gzip
import importlib
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from oodgat_jax.datasets import limits
from oodgat_jax.types import InputError

PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
EXTRA = "pip install 'oodgat-jax[tables]'"
DAMAGED = (EOFError, ValueError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def optional(name: str, what: str) -> Any:
    """Returns a module of the extra `tables`, or says how to install it.

    Args:
      name: the module's.
      what: the subject of the sentence, which needs it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise InputError(
            f"{what} can be read only with {package}: install it with {EXTRA}."
        ) from error


def inner(path: Path) -> str:
    """Returns the suffix in lower case that tells the format: .csv of a.csv.gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _OPENERS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def is_packed(path: Path) -> bool:
    """Returns whether the file's name says that it is compressed."""
    return path.suffix.lower() in _OPENERS


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Opens a file for reading bytes, unpacked.

    Raises:
      InputError: it cannot be read, is damaged, or unpacks to too much; also where the
        body of the block finds so.
    """
    try:
        if not is_packed(path):
            with open(path, "rb") as file:
                yield file
            return
        with _OPENERS[path.suffix.lower()](path) as source:
            yield io.BufferedReader(_Limited(path, source), 1 << 20)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path} cannot be read ({reason}).") from error


class _Limited(io.RawIOBase):
    """A stream that ends in an InputError where it is damaged or grows too large."""

    def __init__(self, path: Path, source: Any):
        self._path, self._source = path, source
        self._count, self._most = 0, limits.allowed(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            found = self._source.read(len(buffer))
        except (*DAMAGED, OSError) as error:
            raise InputError(
                f"{self._path} cannot be unpacked ({error}): is it whole?"
            ) from error
        buffer[: len(found)] = found
        self._count += len(found)
        if self._count > self._most:
            limits.check(self._path, self._count)
        return len(found)


def _zstandard(path: Path) -> Any:
    arrow = optional("pyarrow", f"{path}, which is compressed with Zstandard,")
    return arrow.CompressedInputStream(arrow.OSFile(str(path), "rb"), "zstd")


_OPENERS: Mapping[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _zstandard,
}
