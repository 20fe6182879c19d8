"""Reads plain arrays from an npz, each no larger than what the file holds of it.

numpy makes an array as large as its header says before it reads a byte of it, and
unpacks whatever there is. Here the sizes are looked at first.
"""

import io
import math
import zipfile
from collections.abc import Collection
from pathlib import Path

import numpy as np

from oodgat_jax.datasets import limits

SUFFIX = ".npy"
MOST_HEADER = 1 << 14
KINDS = "fiubUSc"  # numbers and text; others would be objects or records


def read(path: Path, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Returns the arrays of these names that are there; all of them by default.

    Raises:
      ValueError, EOFError, OSError, zipfile.BadZipFile: it is damaged, or no npz.
      InputError: it unpacks to more than it may.
    """
    with zipfile.ZipFile(path) as archive:
        members = {
            member.filename.removesuffix(SUFFIX): member
            for member in archive.infolist()
            if names is None or member.filename.removesuffix(SUFFIX) in names
        }
        limits.check(path, sum(member.file_size for member in members.values()))
        try:
            return {
                name: _array(archive.read(member)) for name, member in members.items()
            }
        except (NotImplementedError, RuntimeError) as error:  # zip's rarer kinds
            raise ValueError(str(error)) from error


def _array(content: bytes) -> np.ndarray:
    """Returns the array of an npy file."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"it has an array of version {version}")
    shape, fortran, dtype = readers[version](stream, max_header_size=MOST_HEADER)
    if dtype.hasobject or dtype.kind not in KINDS:
        raise ValueError(f"it has an array of type {dtype}")
    rest = len(content) - stream.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != rest:
        raise ValueError(f"an array of shape {shape} is not of its {rest} bytes")
    flat = np.frombuffer(content, dtype, offset=stream.tell(), count=math.prod(shape))
    if dtype.kind == "U" and not _is_text(flat):
        raise ValueError("it has text with characters that do not exist")
    return flat.reshape(shape, order="F" if fortran else "C")


def _is_text(array: np.ndarray) -> bool:
    """Returns whether every character is one of Unicode and can be written."""
    codes = np.frombuffer(
        array.tobytes(), array.dtype.byteorder.replace("|", "=") + "u4"
    )
    return not ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any()
