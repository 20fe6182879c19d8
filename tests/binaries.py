"""How tests call a binary: in a process of its own, without data and network."""

import os
import subprocess
import sys


def call(name, *arguments, cache):
    """Exit code, stdout and stderr of `python -m experiments.NAME`."""
    done = subprocess.run(
        [sys.executable, "-m", f"experiments.{name}", *arguments],
        capture_output=True,
        check=False,
        text=True,
        env=os.environ | {"OODGAT_CACHE_DIR": str(cache), "OODGAT_DATA_DIR": ""},
    )
    return done.returncode, done.stdout, done.stderr
