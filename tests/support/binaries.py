"""How tests call a binary: without data and network, in this process or a new one."""

import contextlib
import io
import os
import runpy
import subprocess
import sys
import warnings
from unittest import mock

import jax
from absl import app, flags
from jax.experimental.compilation_cache import compilation_cache
from threadpoolctl import threadpool_limits

from oodgat_jax import training

# Where compiling is most of the time and what is compiled is tested elsewhere.
QUICK = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true"
}


def call(name, *arguments, cache):
    """Exit code, stdout and stderr of `python -m experiments.NAME`, in this process.

    Importing JAX is most of the time of a short command, so it is done once.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, _environment(cache)))
        stack.enter_context(mock.patch.object(sys, "argv", [name, *arguments]))
        stack.enter_context(mock.patch.object(training, "use_cores"))  # too late here
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(_flags_and_cache())
        stack.enter_context(threadpool_limits(1))  # threads wait for each other here
        code = _exit_code(f"experiments.{name}")
    return code, _text(out), _text(err)


def start(name, *arguments, cache, quick=True, **options):
    """The running process of `python -m experiments.NAME`."""
    return subprocess.Popen(
        [sys.executable, "-m", f"experiments.{name}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | (QUICK if quick else {}) | _environment(cache),
        **options,
    )


def call_process(name, *arguments, cache, **options):
    """Exit code, stdout and stderr of `python -m experiments.NAME`."""
    with start(name, *arguments, cache=cache, **options) as process:
        out, err = process.communicate(timeout=300)
    return process.returncode, out, err


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
def _flags_and_cache():
    """Takes back the flags a binary defines and its folder of compiled programs."""
    app.define_help_flags()
    before = set(flags.FLAGS)
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)
        jax.config.update("jax_compilation_cache_dir", None)
        compilation_cache.reset_cache()
