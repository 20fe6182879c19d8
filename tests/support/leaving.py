"""Processes that end at once: the system takes their memory back sooner than Python.

Freeing all objects one by one takes an eighth of a second in a forked process, where
each is copied first, and seconds in a process that has run a thousand tests.
"""

import atexit
import os
import sys
import threading

import jax
from jax._src import api


def use():
    """Spares what JAX does at the end of a process, but for what others wait for."""
    api.clear_backends = lambda **_: jax.effects_barrier()
    api.clear_caches = lambda: None


def leave(code):
    """Ends this process as `sys.exit` does outside of any function."""
    if not (code is None or isinstance(code, int)):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120  # as Python says it
    os._exit((code or 0) & 0xFF)
