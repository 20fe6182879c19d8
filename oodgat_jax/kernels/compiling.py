"""Compiles the kernels with the system's C++ compiler, into a folder of the user's own.

The compiled file is loaded as code. It is therefore only taken from a folder that is
the user's and closed to others, under a name that holds the digest of all that it was
made from and the digest of its own content: a file that is stale, half-written or
changed is never loaded.

Nothing here needs JAX: run as a script, this file compiles the library, so that a
process that is still importing JAX can have it made meanwhile.
"""

import concurrent.futures
import contextlib
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jaxlib

CACHE_DIR_VARIABLE = "OODGAT_CACHE_DIR"
FOLDER_VARIABLE = "OODGAT_KERNELS_DIR"  # instead of CACHE/kernels
FLAGS_VARIABLE = "OODGAT_KERNEL_FLAGS"  # appended, such as -fsanitize=address
SOURCES = Path(__file__).parent
COMPILERS = ("c++", "g++", "clang++")
TIMEOUT = 600  # seconds
_COMMON = (
    "-std=c++17",
    "-fPIC",
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-Wno-psabi",
)
# What only hands arrays on is compiled quickly.
_OPTIMIZED, _QUICKLY = ("-O3",), ("-O1",)
_GLUE = ("ffi.cc",)
# Tried in turn: what a compiler or a CPU does not know makes the first ones fail.
_TARGETS = (("-march=native", "-mprefer-vector-width=512"), ("-march=native",), ())


class CompileError(Exception):
    """Raised with one sentence on why there is no library."""


class Compiler(NamedTuple):
    """A C++ compiler and what it says of itself."""

    command: tuple[str, ...]
    version: str


def library() -> Path:
    """Returns the compiled library, compiling it if there is none that is right.

    Raises:
      CompileError: there can be none.
    """
    compiler = find_compiler()
    folder = make_folder()
    key = digest(compiler)
    found = find(folder, key)
    if found is not None:
        return found
    with _locked(folder):  # another process may be at it
        return find(folder, key) or _compile(compiler, folder, key)


def find_compiler() -> Compiler:
    """Returns the compiler that CXX names, else the first one on the PATH."""
    named = _words("CXX")
    candidates = [named] if named else [[name] for name in COMPILERS]
    for command in candidates:
        if shutil.which(command[0]) is None:
            continue
        try:
            done = _run([*command, "--version"])
        except (OSError, subprocess.SubprocessError):
            continue
        if done.returncode == 0:
            return Compiler(tuple(command), done.stdout)
    what = f"CXX={shlex.join(named)} does not work" if named else "none was found"
    raise CompileError(
        f"they need a C++ compiler and {what}; install g++ or clang, for instance with "
        f"'apt install g++' or 'xcode-select --install'"
    )


def digest(compiler: Compiler) -> str:
    """Returns the SHA-256 of all that the library depends on."""
    parts = [
        *(f"{path.name}\n{path.read_text()}" for path in _sources("*.h", "*.cc")),
        *compiler.command,
        compiler.version,
        *_COMMON,
        *_OPTIMIZED,
        *_QUICKLY,
        *_GLUE,
        *(flag for target in _TARGETS for flag in target),
        *_more_flags(),
        _cpu(),
        jaxlib.__version__,
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def make_folder() -> Path:
    """Returns the folder of compiled files, which only the user can enter."""
    folder = Path(os.environ.get(FOLDER_VARIABLE) or _cache() / "kernels").absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode) or not _is_mine(state):
            raise CompileError(f"{folder} is not a folder of your own; remove it")
        if stat.S_IMODE(state.st_mode) & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise CompileError(
            f"{folder} cannot be made ({error.strerror}); set {_variable()} to "
            f"a folder you can write to"
        ) from error
    return folder


def _cache() -> Path:
    if os.environ.get(CACHE_DIR_VARIABLE):
        return Path(os.environ[CACHE_DIR_VARIABLE])
    import pooch  # takes longer than all the rest

    return Path(pooch.os_cache("oodgat-jax"))


def find(folder: Path, key: str) -> Path | None:
    """Returns the library of this key, if there is one that is whole and the user's."""
    for path in sorted(folder.glob(f"{key[:32]}-*.so")):
        with contextlib.suppress(OSError):
            state = path.lstat()
            private = not stat.S_IMODE(state.st_mode) & 0o022
            if not (stat.S_ISREG(state.st_mode) and _is_mine(state) and private):
                continue
            if path.name == _name(key, path.read_bytes()):
                return path
            path.unlink()  # broken, and in the way
    return None


def _compile(compiler: Compiler, folder: Path, key: str) -> Path:
    print(
        f"Compiling the CPU kernels with {Path(compiler.command[0]).name}: once, "
        f"a few seconds ...",
        file=sys.stderr,
        flush=True,
    )
    try:
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            built = Path(temporary) / "kernels.so"
            _build(compiler, built)
            built.chmod(0o700)
            path = folder / _name(key, built.read_bytes())
            os.replace(built, path)
            return path
    except OSError as error:
        raise CompileError(
            f"{folder} cannot be written to ({error.strerror}); set "
            f"{_variable()} to a folder you can write to"
        ) from error


def _build(compiler: Compiler, to: Path) -> None:
    """Compiles for this very CPU, else for any; all sources at the same time."""
    failed = "no source"
    for target in _TARGETS:
        begin = [*compiler.command, *_COMMON, *target, "-isystem", _jaxlib_headers()]
        objects = [to.with_name(f"{path.stem}.o") for path in _sources("*.cc")]
        commands = [
            [
                *begin,
                *_level(source),
                *_more_flags(),
                "-c",
                str(source),
                "-o",
                str(built),
            ]
            for source, built in zip(_sources("*.cc"), objects, strict=True)
        ]
        link = [*begin, *_more_flags(), "-shared", *map(str, objects), "-o", str(to)]
        with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
            done = list(pool.map(_try, commands))
        done += [_try(link)] if not any(done) else []
        if not any(done):
            return
        failed = next(filter(None, done))
    raise CompileError(f"{shlex.join(compiler.command)} failed: {failed}")


def _level(source: Path) -> tuple[str, ...]:
    return _QUICKLY if source.name in _GLUE else _OPTIMIZED


def _jaxlib_headers() -> str:
    """Returns what `jax.ffi.include_dir()` does, without importing JAX."""
    return str(Path(jaxlib.__path__[0]) / "include")


def _try(command: list[str]) -> str | None:
    """Runs a command; returns why it failed, None if it did not."""
    try:
        done = _run(command)
    except subprocess.TimeoutExpired:
        return f"it took over {TIMEOUT} s"
    if done.returncode == 0 and Path(command[-1]).is_file():
        return None
    lines = (line.strip() for line in done.stderr.splitlines() if "error" in line)
    return next(lines, f"exit status {done.returncode}")


def _run(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT,
        check=False,
        env=os.environ | {"LC_ALL": "C"},
    )


def _name(key: str, content: bytes) -> str:
    return f"{key[:32]}-{hashlib.sha256(content).hexdigest()[:32]}.so"


def _sources(*endings: str) -> list[Path]:
    return sorted(path for ending in endings for path in SOURCES.glob(ending))


def _more_flags() -> list[str]:
    return _words(FLAGS_VARIABLE)


def _words(variable: str) -> list[str]:
    """Returns the words of an environment variable, quoted as in a shell."""
    text = os.environ.get(variable, "")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise CompileError(f"{variable}={text} is not a command ({error})") from error


def _variable() -> str:
    """Returns the environment variable that decides where the library goes."""
    named = os.environ.get(FOLDER_VARIABLE)
    return FOLDER_VARIABLE if named else CACHE_DIR_VARIABLE


def _cpu() -> str:
    """Returns what this CPU can do, as far as the system tells."""
    kinds = ("flags", "Features", "model name", "CPU part")
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "\n".join(sorted({line for line in lines if line.startswith(kinds)}))
    return f"{platform.machine()} {platform.processor()} {platform.platform()}"


def _is_mine(state: os.stat_result) -> bool:
    return state.st_uid == os.getuid()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lets one process compile at a time, where the file system can lock."""
    try:
        import fcntl

        with (folder / "lock").open("a") as file:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except ImportError:
        yield


if __name__ == "__main__":
    os.nice(5)  # the process that waits for it has other work to do
    with contextlib.suppress(CompileError, OSError):  # who needs it will hear why
        library()
