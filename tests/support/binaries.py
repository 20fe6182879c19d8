"""How tests call a binary: without data and network, in this process or a new one."""

import contextlib
import io
import os
import runpy
import sys
import warnings
from unittest import mock

from absl import app, flags
from threadpoolctl import threadpool_limits

from oodgat_jax import training
from support import forking

# Where compiling is most of the time and what is compiled is tested elsewhere.
QUICK = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}

# A plug-in with which every call to the devices is short, and there are many.
PACED = """
from oodgat_jax.training import scheduler

scheduler.PACE = -1.0
"""


def call(name, *arguments, cache):
    """Exit code, stdout and stderr of `python -m experiments.NAME`, in this process."""
    return call_module(f"experiments.{name}", *arguments, cache=cache)


def call_module(module, *arguments, cache):
    """Exit code, stdout and stderr of `python -m MODULE`, in this process.

    Importing JAX is most of the time of a short command, so it is done once.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, _environment(cache)))
        stack.enter_context(mock.patch.object(sys, "argv", [module, *arguments]))
        stack.enter_context(mock.patch.object(training, "use_cores"))  # too late here
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(_own_flags())
        stack.enter_context(threadpool_limits(1))  # threads wait for each other here
        code = _exit_code(module)
    return code, _text(out), _text(err)


def start(name, *arguments, cache, cwd=None):
    """The running process of `python -m experiments.NAME`."""
    variables = os.environ | QUICK | _environment(cache)
    command = "-m", f"experiments.{name}", *arguments
    return forking.start(*command, env=variables, cwd=cwd)


def _text(stream):
    stream.flush()
    return stream.buffer.getvalue().decode()


def _environment(cache):
    return {"OODGAT_CACHE_DIR": str(cache), "OODGAT_DATA_DIR": ""}


def _exit_code(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it may be imported already
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            return end.code or 0
    raise AssertionError(f"{module} did not exit")


@contextlib.contextmanager
def _own_flags():
    """Takes back the flags that a binary defines."""
    app.define_help_flags()
    before = set(flags.FLAGS)
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)
