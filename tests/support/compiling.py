"""How programs are compiled in the tests: as for users, or in a third of the time."""

import functools
import zlib

import jax

# XLA's options have no public door for a whole process.
from jax._src import compilation_cache, compiler
from jax._src.interpreters import mlir

# Most of the time of compiling goes into emitters that make loops fast, and into
# dividing a program for several threads.
OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in OPTIONS.items())
_usual = compiler.get_compile_options

# Making this anew is a fifth of the time of a small program; there are thousands.
mlir.make_ir_context = functools.cache(mlir.make_ir_context)

# Few compiled programs are read again, so writing is to be quick; any level is read.
if not (compilation_cache.zstd or compilation_cache.zstandard):
    compilation_cache.compress_executable = functools.partial(zlib.compress, level=1)


def use(quick: bool) -> None:
    """Compiles from now on quickly, where numbers need not be those of users."""
    jax.config.update("jax_disable_most_optimizations", quick)
    compiler.get_compile_options = _quick if quick else _usual


def _quick(*args, env_options_overrides=None, **more):
    given = OPTIONS | (env_options_overrides or {})
    return _usual(*args, env_options_overrides=given, **more)
