"""How tests call a binary: in a process of its own, without data and network."""

import os
import subprocess
import sys

# Where compiling is most of the time and what is compiled is tested elsewhere.
QUICK = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true"
}


def call(name, *arguments, cache):
    """Exit code, stdout and stderr of `python -m experiments.NAME`."""
    done = subprocess.run(
        [sys.executable, "-m", f"experiments.{name}", *arguments],
        capture_output=True,
        check=False,
        text=True,
        env=os.environ
        | QUICK
        | {"OODGAT_CACHE_DIR": str(cache), "OODGAT_DATA_DIR": ""},
    )
    return done.returncode, done.stdout, done.stderr
