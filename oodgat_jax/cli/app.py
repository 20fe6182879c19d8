"""What all binaries share: start and end of the process, and flags defined once.

A mistake of the user ends in one sentence on stderr and exit code 2, an interrupt in
one sentence and 130, SIGTERM in one sentence and 143; only a bug shows a traceback.
"""

import importlib
import io
import os
import pathlib
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Callable, Sequence

import jax
from absl import app, flags, logging

from oodgat_jax.cli import cluster
from oodgat_jax.cli.shared_flags import Definitions, chosen, defaulting, define
from oodgat_jax.datasets import download, limits
from oodgat_jax.training import interrupts
from oodgat_jax.types import InputError

__all__ = ["Definitions", "defaulting", "load_plugins", "out_folder", "run"]

HELP = ("--help", "-help", "-h", "--helpshort", "--helpfull")
WRONG_INPUT, LOST, INTERRUPTED, CLOSED, TERMINATED = 2, 3, 130, 141, 143
STOPPED = "\n{how}: stopped before the end."
GOES_ON = " The same command goes on with what is not yet recorded."

_FILL = textwrap.TextWrapper(
    width=80,
    initial_indent=8 * " ",
    subsequent_indent=8 * " ",
    break_on_hyphens=False,
)


def run(
    main: Callable[[], int | None],
    shared: Sequence[str] = (),
    own: Definitions | None = None,
    text: str | None = None,
    goes_on: bool = False,
) -> None:
    """Runs a binary's `main`, whose return value is the exit code, and exits.

    Args:
      main: reads its flags from `absl.flags.FLAGS`.
      shared: names of the SHARED flags that it has.
      own: further flags, which no other binary need have.
      text: what --help says first; the docstring of the main module by default.
      goes_on: whether the same command, started again, skips what it has finished.
    """
    text = text or sys.modules["__main__"].__doc__ or ""
    try:
        load_plugins(_plugins(sys.argv[1:]))
    except InputError as error:
        sys.exit(_complain(str(error), WRONG_INPUT))
    definitions = chosen(shared, own)
    define(definitions)

    def guarded(argv: Sequence[str]) -> int | None:
        try:
            _no_arguments(argv)
            interrupts.install()
            if getattr(flags.FLAGS, limits.FLAG, None):
                limits.set_unpacked_mb(getattr(flags.FLAGS, limits.FLAG))
            _start_jax()
            code = main()
            sys.stdout.flush()
            return code
        except InputError as error:
            return _complain(str(error), WRONG_INPUT)
        except KeyboardInterrupt as error:
            return _complain(_stopped("Interrupted", error, goes_on), INTERRUPTED)
        except interrupts.Terminated as error:
            return _complain(_stopped("Terminated", error, goes_on), TERMINATED)
        except BrokenPipeError:
            return _closed()
        except jax.errors.JaxRuntimeError as error:
            if jax.process_count() == 1:
                raise
            _complain(cluster.LOST.format(reason=_first_line(error)), LOST)
            cluster.leave(LOST)
            return LOST

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack the sign ±
    app.run(guarded, flags_parser=lambda argv: _parse(argv, list(definitions), text))


def load_plugins(names: Sequence[str]) -> None:
    """Imports modules of the user, which register what they add."""
    sys.path.insert(0, os.getcwd())
    for name in names:
        try:
            importlib.import_module(name)
        except InputError:
            raise
        except (Exception, SystemExit) as error:  # whatever the user's module raises
            found = f"({type(error).__name__}: {_first_line(error)})"
            raise InputError(
                f"--plugin={name} cannot be imported {found}: {_advice(name, error)}."
            ) from error


def _advice(name: str, error: BaseException) -> str:
    """Returns what to do: give another name, or correct the module."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename][1:]
    if own:
        place = f"{pathlib.Path(own[-1].filename).name}, line {own[-1].lineno}"
        return f"correct {place}"
    if isinstance(error, SyntaxError):
        return "correct it"
    return "name a Python module without .py, in this folder or installed"


def _plugins(arguments: Sequence[str]) -> list[str]:
    """Returns the values of --plugin, which are needed before flags are parsed."""
    found = []
    for at, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in ("--plugin", "-plugin"):
            found.append(value if equals else "".join(arguments[at + 1 : at + 2]))
    return found


def out_folder(name: str) -> pathlib.Path:
    """Returns the folder, made if needed, after a check that it can be written to."""
    folder = pathlib.Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise InputError(
            f"The folder {folder} cannot be written to ({error.strerror}): choose "
            "another one with --out."
        ) from error


def _parse(argv: Sequence[str], names: Sequence[str], text: str) -> Sequence[str]:
    if any(argument in HELP for argument in argv[1:]):
        try:
            print(_help(names, text), flush=True)
        except BrokenPipeError:
            sys.exit(_closed())
        sys.exit(0)
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        sys.exit(_complain(_sentence(error), WRONG_INPUT))


def _sentence(error: flags.Error) -> str:
    if isinstance(error, flags.UnrecognizedFlagError):
        return f"There is no flag --{error.flagname}: see --help."
    if not isinstance(error, flags.IllegalFlagValueError):
        return f"{str(error).rstrip('.')}: see --help."
    flag, _, reason = str(error).removeprefix("flag ").partition(": ")
    return f"{flag} is wrong ({reason.rstrip('.')}): see --help."


def _help(names: Sequence[str], text: str) -> str:
    """Returns what the binary is for, then its flags with defaults and meanings."""
    lines = [text.strip(), "", "Flags:"]
    for flag in (flags.FLAGS[name] for name in names):
        lines.append(f"  --{flag.name} (default: {_default(flag)})")
        lines.append(_FILL.fill(flag.help))
    return "\n".join(lines)


def _default(flag: flags.Flag) -> str:
    """Returns a flag's default as it would be written; 0 and false are values too."""
    if flag.default is None or flag.default in ([], ""):
        return "none"
    return str(flag.default_as_str or flag.default).strip("'")


def _no_arguments(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise InputError(f"Unknown argument '{argv[1]}': flags begin with --.")


def _start_jax() -> None:
    """Makes one device per core, and keeps compiled programs for the next process.

    JAX's own variables (JAX_COMPILATION_CACHE_DIR, JAX_ENABLE_COMPILATION_CACHE) win.
    """
    logging.set_verbosity(logging.WARNING)  # JAX tells which platforms it lacks
    cluster.start()
    if jax.config.values["jax_compilation_cache_dir"]:
        return
    folder = download.cache_dir() / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _stopped(how: str, error: BaseException, goes_on: bool) -> str:
    """Returns the sentence for a signal; the trainer may have said how to continue."""
    sentence = STOPPED.format(how=how)
    if str(error):
        return f"{sentence} {error}"
    return sentence + (GOES_ON if goes_on else "")


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def tell(sentence: str) -> None:
    """Prints a sentence on stderr, from the process that writes."""
    if cluster.is_writer():
        print(sentence, file=sys.stderr)


def _closed() -> int:
    """Gives up on an output whose reader has read enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED


def _complain(sentence: str, code: int) -> int:
    print(sentence, file=sys.stderr)
    return code
