"""Begins to compile the CPU kernels while the binary is still importing JAX.

Where a binary runs for the first time, both take seconds. Another process compiles; the
binary waits for it, or finds the library, when it needs the kernels.
"""

import importlib.util
import pathlib
import subprocess
import sys
from collections.abc import Sequence

# A binary with one of these trains nothing, or nothing with these kernels.
WITHOUT = ("--help", "-h", "--from_records", "--check", "--plan", "--kernel")
ACCELERATORS = ("jax_plugins", "libtpu")  # packages


def begin(arguments: Sequence[str]) -> subprocess.Popen | None:
    """Starts a process that compiles the kernels, if a binary may need them.

    It ends at once where they are compiled already or cannot be.
    """
    if any(argument.startswith(WITHOUT) for argument in arguments):
        return None
    if any(map(importlib.util.find_spec, ACCELERATORS)):
        return None
    package = importlib.util.find_spec("oodgat_jax")  # not imported, which takes long
    if package is None or not package.submodule_search_locations:
        return None
    folder = pathlib.Path(package.submodule_search_locations[0])
    command = [sys.executable, "-P", str(folder / "kernels" / "compiling.py")]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL)
