"""How programs are compiled in the tests: as for users, or in a third of the time."""

import functools
import itertools
import zlib

import jax

# XLA's options have no public door for a whole process.
from jax._src import compilation_cache, compiler
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

# Most of the time of compiling goes into emitters that make loops fast, and into
# dividing a program for several threads.
OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in OPTIONS.items())
_usual = compiler.get_compile_options

# Every operation is else lowered with the lines of code that it comes from.
jax.config.update("jax_traceback_in_locations_limit", 0)

# Making this anew is a fifth of the time of a small program; there are thousands.
mlir.make_ir_context = functools.cache(mlir.make_ir_context)

# Naming a program for the folder of compiled ones takes a tenth of the time of a small
# one, which is too quick to be kept there.
SMALL = 80  # operations; they compile in a third of the time from which it is kept
_usual_key = compiler._get_cache_key

# Few compiled programs are read again, so they are kept as they are; any level is read.
if not (compilation_cache.zstd or compilation_cache.zstandard):
    compilation_cache.compress_executable = functools.partial(zlib.compress, level=0)


def use(quick: bool, by_flags: bool = False) -> None:
    """Compiles from now on quickly, where numbers need not be those of users.

    With FLAGS in XLA_FLAGS the options are given already.
    """
    jax.config.update("jax_disable_most_optimizations", quick)
    compiler.get_compile_options = _quick if quick and not by_flags else _usual


def _key(options, backend, computation, *args, **more):
    """The name of a compiled program, or None if it is not to be kept."""
    if _is_small(computation):
        return None
    return _usual_key(options, backend, computation, *args, **more)


def _is_small(module):
    count = itertools.count()

    def proceed(_):
        return go_on if next(count) < SMALL else ir.WalkResult.INTERRUPT

    go_on = ir.WalkResult.ADVANCE
    module.operation.walk(proceed)
    return next(count) <= SMALL


compiler._get_cache_key = _key


def _quick(*args, env_options_overrides=None, **more):
    given = OPTIONS | (env_options_overrides or {})
    return _usual(*args, env_options_overrides=given, **more)
