"""The compiled kernels as targets of JAX's FFI: loaded once, or a reason why not."""

import ctypes
import functools
import sys
from pathlib import Path
from typing import NamedTuple

import jax

from oodgat_jax.kernels import compiling

SYMBOLS = (
    "oodgat_attend_forward",
    "oodgat_attend_backward",
    "oodgat_feature_product",
    "oodgat_feature_product_transposed",
    "oodgat_sum_rows",
)


class Status(NamedTuple):
    """Whether the native kernels can be used."""

    available: bool
    reason: str  # one sentence
    path: Path | None = None  # of the compiled library
    version: str = ""  # part of the names of FFI targets


@functools.cache
def status() -> Status:
    """Returns whether the native kernels can be used and why.

    The first call compiles them, unless that has been done before on this machine.
    One line on stderr says, once, what is in use.
    """
    try:
        path = compiling.library()
        version = _register(path)
    except (compiling.CompileError, OSError, AttributeError) as error:
        reason = f"Without native CPU kernels, --kernel=auto is pure JAX: {error}."
        found = Status(False, reason)
    else:
        found = Status(True, "Native CPU kernels are in use.", path, version)
    print(found.reason, file=sys.stderr, flush=True)
    return found


def target(symbol: str) -> str:
    """Returns the name under which a kernel is registered.

    It holds the library's digest: JAX's persistent compilation cache keeps programs
    by the names that they call.
    """
    return f"{symbol}_{status().version}"


def serves(*arrays: jax.Array) -> bool:
    """Returns whether the kernels can work on these arrays: float32, on the CPU."""
    return all(x.dtype == "float32" for x in arrays) and status().available


def _register(path: Path) -> str:
    version = path.stem.split("-")[-1][:12]
    library = ctypes.CDLL(str(path))
    for symbol in SYMBOLS:
        jax.ffi.register_ffi_target(
            f"{symbol}_{version}",
            jax.ffi.pycapsule(getattr(library, symbol)),
            platform="cpu",
        )
    return version
