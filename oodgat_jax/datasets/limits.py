"""How much a file may unpack to: small files that claim to hold gigabytes are refused.

A file may always unpack to RATIO times its size, and every file to the limit, which is
the environment variable OODGAT_MAX_UNPACKED_MB, or what `set_unpacked_mb` was told.
"""

import os
from pathlib import Path

from oodgat_jax.types import InputError

VARIABLE = "OODGAT_MAX_UNPACKED_MB"
FLAG = "max_unpacked_mb"
DEFAULT_MB = 1024
RATIO = 16
_chosen: list[int] = []


def set_unpacked_mb(megabytes: int) -> None:
    """Replaces the limit for this process."""
    _chosen[:] = [megabytes]


def unpacked_mb() -> int:
    """Returns the limit in megabytes."""
    if _chosen:
        return _chosen[0]
    text = os.environ.get(VARIABLE) or str(DEFAULT_MB)
    if not text.isdecimal() or not 0 < int(text) < 10**9:
        raise InputError(
            f"{VARIABLE} must be a whole number of megabytes, not '{text}'."
        )
    return int(text)


def allowed(path: Path) -> int:
    """Returns how many bytes a file may unpack to."""
    return max(unpacked_mb() << 20, RATIO * path.stat().st_size)


def check(path: Path, size: int) -> None:
    """Raises InputError if a file unpacks to more than it may."""
    if size > allowed(path):
        raise InputError(
            f"{path} unpacks to more than {allowed(path) >> 20} MB: if you trust it, "
            f"allow more with --{FLAG} or {VARIABLE}."
        )
