"""What all binaries share: start and end of the process, and flags defined once.

A mistake of the user ends in one sentence on stderr and exit code 2, an interrupt in
one sentence and 130; only a bug shows a traceback.
"""

import os
import pathlib
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from absl import app, flags, logging

from experiments import cluster
from oodgat_jax import graphs
from oodgat_jax.datasets import DATASETS, download
from oodgat_jax.methods import METHODS
from oodgat_jax.types import InputError

HELP = ("--help", "-help", "-h", "--helpshort", "--helpfull")
WRONG_INPUT, LOST, INTERRUPTED, CLOSED = 2, 3, 130, 141
STOPPED = "\nInterrupted: stopped before the end."
GOES_ON = " The same command goes on with what is not yet recorded."

_FILL = textwrap.TextWrapper(
    width=80,
    initial_indent=8 * " ",
    subsequent_indent=8 * " ",
    break_on_hyphens=False,
)
_COUNT = {"lower_bound": 1}
# Flags by name: (kind of flag, default, what it means, further arguments). They are
# defined when a binary runs, so that binaries can be imported side by side.
Definitions = Mapping[str, tuple[Callable, Any, str, dict]]
SHARED: Definitions = {
    "dataset": (
        flags.DEFINE_string,
        "digits",
        f"What to learn: {', '.join(DATASETS)}. digits needs no download.",
        {},
    ),
    "datasets": (
        flags.DEFINE_list,
        ["digits"],
        f"What to learn, one after the other, of {', '.join(DATASETS)}.",
        {},
    ),
    "data_dir": (
        flags.DEFINE_string,
        None,
        "Folder that already holds the raw files; without it, and without "
        "OODGAT_DATA_DIR, they are downloaded once.",
        {},
    ),
    "method": (
        flags.DEFINE_string,
        "oodgat",
        f"How to learn it: {', '.join(METHODS)}.",
        {},
    ),
    "splits": (
        flags.DEFINE_integer,
        3,
        "Number of splits, drawn with the seeds 123, 1, 2, 3, ...",
        _COUNT,
    ),
    "seeds": (
        flags.DEFINE_integer,
        3,
        "Number of model seeds 0, 1, 2, ...; every split is trained with each.",
        _COUNT,
    ),
    "out": (flags.DEFINE_string, "results", "Folder for what is written.", {}),
    "set": (
        flags.DEFINE_multi_string,
        [],
        "name=value for a hyper-parameter",
        {},
    ),
    "from_records": (
        flags.DEFINE_bool,
        False,
        "Only draw, from the records in --out, and train nothing.",
        {},
    ),
    "mesh": (
        flags.DEFINE_string,
        None,
        "Devices along two axes, as in runs:4,graph:2: runs are shared out over one, "
        "a graph too large for one device over the other. By default all devices of "
        "this process are on runs.",
        {},
    ),
    "coordinator": (
        flags.DEFINE_string,
        None,
        "host:port of the first of several processes; not needed under Slurm, GKE or "
        "on TPU pods.",
        {},
    ),
    "num_processes": (
        flags.DEFINE_integer,
        None,
        "How many processes there are.",
        _COUNT,
    ),
    "process_id": (
        flags.DEFINE_integer,
        None,
        "Which of them this is, from 0; only process 0 writes.",
        {"lower_bound": 0},
    ),
    "path": (
        flags.DEFINE_enum,
        "auto",
        "How products with the graph are done; auto: sparse on the CPU, segment "
        "operations on GPU and TPU.",
        {"enum_values": graphs.PATHS},
    ),
}


# Of binaries that draw what others have recorded.
RECORDS_DIR: Definitions = {
    "records_dir": (
        flags.DEFINE_string,
        str(pathlib.Path(__file__).parent / "records"),
        "Folder of the *.jsonl files.",
        {},
    ),
}


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
    definitions = {name: SHARED[name] for name in shared} | dict(own or {})
    for name, (define, default, meaning, more) in definitions.items():
        define(name, default=default, help=meaning, **more)

    def guarded(argv: Sequence[str]) -> int | None:
        try:
            _no_arguments(argv)
            _start_jax()
            code = main()
            sys.stdout.flush()
            return code
        except InputError as error:
            return _complain(str(error), WRONG_INPUT)
        except KeyboardInterrupt:
            return _complain(STOPPED + (GOES_ON if goes_on else ""), INTERRUPTED)
        except BrokenPipeError:  # whoever reads the output has read enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return CLOSED
        except jax.errors.JaxRuntimeError as error:
            if jax.process_count() == 1:
                raise
            _complain(cluster.LOST.format(reason=_first_line(error)), LOST)
            cluster.leave(LOST)

    sys.stdout.reconfigure(errors="replace")  # a terminal may lack the sign ±
    app.run(guarded, flags_parser=lambda argv: _parse(argv, list(definitions), text))


def defaulting(**values: Any) -> Definitions:
    """The SHARED flags of these names with other defaults, as a binary's own."""
    return {
        name: (SHARED[name][0], value, *SHARED[name][2:])
        for name, value in values.items()
    }


def out_folder(name: str) -> pathlib.Path:
    """The folder, made if needed, after checking that a file can be written there."""
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
        print(_help(names, text))
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
    """What the binary is for, then its flags with defaults and meanings."""
    lines = [text.strip(), "", "Flags:"]
    for flag in (flags.FLAGS[name] for name in names):
        lines.append(f"  --{flag.name} (default: {flag.default or 'none'})")
        lines.append(_FILL.fill(flag.help))
    return "\n".join(lines)


def _no_arguments(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise InputError(f"Unknown argument '{argv[1]}': flags begin with --.")


def _start_jax() -> None:
    """One device per core, and compiled programs kept for the next process.

    JAX's own variables (JAX_COMPILATION_CACHE_DIR, JAX_ENABLE_COMPILATION_CACHE) win.
    """
    logging.set_verbosity(logging.WARNING)  # JAX tells which platforms it lacks
    cluster.start()
    if jax.config.jax_compilation_cache_dir:
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


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def _complain(sentence: str, code: int) -> int:
    print(sentence, file=sys.stderr)
    return code
