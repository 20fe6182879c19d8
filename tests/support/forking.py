"""New processes that need not import anything: they are forked from one that has.

`start` stands for `subprocess.Popen([sys.executable, ...])` in the tests. Importing is
most of the time of a short command, so one process imports what all of them need and
then does nothing but fork. What it forks is a process of its own, with its own signals,
environment, folder and exit code, in which JAX has not been used yet.
"""

import array
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pathlib
import runpy
import select
import signal
import socket
import subprocess
import sys
import time

import jax

from oodgat_jax import source_digest
from oodgat_jax.datasets.readers import digits
from support import compiling, leaving, lone_teacher, quick_digits, quick_unique

TESTS = pathlib.Path(__file__).parent.parent
LARGEST = 1 << 20  # bytes of a message
# Imported before anything is forked, with all that they import. Binaries are not among
# them: they are run as modules, which must be new to their process.
MODULES = ("oodgat_jax.cli.app", "oodgat_jax.estimator", "experiments.support.study")
MODULES += ("orbax.checkpoint",)


class Process:
    """The part of `subprocess.Popen` that the tests use; streams are text."""

    def __init__(self, forker, pid, out, err):
        self._forker, self.pid, self.returncode = forker, pid, None
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(err)

    def poll(self):
        return self._ended(0)

    def wait(self, timeout=None):
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired("a forked process", timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout=None):
        """The rest of both streams, after the process has ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        parts = {self.stdout.fileno(): b"", self.stderr.fileno(): b""}
        going = set(parts)
        while going:
            ready, _, _ = select.select(going, [], [], _left(deadline))
            if not ready:
                raise subprocess.TimeoutExpired("a forked process", timeout)
            for stream in ready:
                part = os.read(stream, 1 << 16)
                parts[stream] += part
                going -= set() if part else {stream}
        self.wait(_left(deadline))
        return tuple(text.decode() for text in parts.values())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.wait()
        self.stdout.close()
        self.stderr.close()

    def _ended(self, timeout):
        if self.returncode is None:
            self.returncode = self._forker.code(self.pid, timeout)
        return self.returncode


def start(*command, cwd=None, env=None):
    """A new process of `python COMMAND`: -m MODULE or -c CODE, and arguments."""
    out, err = os.pipe(), os.pipe()
    job = {"command": [str(word) for word in command], "cwd": str(cwd or os.getcwd())}
    job["env"] = dict(env or os.environ)
    forker = _forker()
    try:
        return Process(forker, forker.fork(job, out[1], err[1]), out[0], err[0])
    finally:
        os.close(out[1])
        os.close(err[1])


def run(*command, timeout=1800, **options):
    """A process that has ended, as `subprocess.run` returns it."""
    with start(*command, **options) as process:
        out, err = process.communicate(timeout)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _left(deadline):
    return None if deadline is None else max(0.0, deadline - time.monotonic())


# --- The process that forks, as others see it -----------------------------------


class _Forker:
    """The process that forks: asked through a socket, it tells who has ended."""

    def __init__(self):
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        more = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        # The project's `experiments` comes before the folder of that name in the tests.
        more["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent), str(TESTS)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.forking", str(its.fileno())],
            cwd=TESTS.parent,
            env=os.environ | more,  # a process of many threads is not to be forked
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
        )
        its.close()
        self._codes = {}

    def fork(self, job, *streams):
        """The number of a new process with these streams."""
        sent = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
        self._socket.sendmsg([json.dumps(job).encode()], sent)
        while "pid" not in (told := self._read(None)):
            pass
        return told["pid"]

    def code(self, pid, timeout):
        """The exit code of a process as Popen has it; None if it still runs."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while pid not in self._codes:
            if not self._read(_left(deadline)):
                return None
        return self._codes[pid]

    def end(self):
        """Lets the process go, which ends when nobody can ask any more."""
        self._socket.close()
        self._process.wait()

    def _read(self, timeout):
        """One message, kept if it is of an end; None if there is none in time."""
        if not select.select([self._socket], [], [], timeout)[0]:
            return None
        told = json.loads(self._socket.recv(LARGEST))
        if "ended" in told:
            self._codes[told["ended"]] = told["code"]
        return told


@functools.cache
def _forker():
    made = _Forker()
    atexit.register(made.end)
    return made


# --- The process that forks, from within -----------------------------------------


def serve(asked):
    """Forks as asked until nobody can ask; in a new process, returns its job."""
    reader, writer = socket.socketpair()
    for end in (reader, writer):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # so that the byte is written
    signal.set_wakeup_fd(writer.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([asked, reader], [], [])
        if reader in ready:
            with contextlib.suppress(BlockingIOError):
                reader.recv(1 << 16)
            _tell_ends(asked)
        if asked in ready:
            message, ancillary, _, _ = asked.recvmsg(LARGEST, socket.CMSG_SPACE(8))
            if not message:
                sys.exit()
            streams = array.array("i", ancillary[0][2])
            if not (pid := os.fork()):
                signal.set_wakeup_fd(-1)
                for number in (signal.SIGCHLD, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for end in (reader, writer, asked):
                    end.close()
                return json.loads(message), streams
            asked.send(json.dumps({"pid": pid}).encode())
            for stream in streams:
                os.close(stream)


def _tell_ends(asked):
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            code = os.waitstatus_to_exitcode(ended[1])
            asked.send(json.dumps({"ended": ended[0], "code": code}).encode())


def become(job, streams):
    """Turns this process into `python COMMAND`."""
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, closefd=False)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    _say_to_jax(job["env"])
    kind, what, *arguments = job["command"]
    paths = job["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = ["" if kind == "-c" else os.getcwd(), *filter(None, paths), *sys.path]
    sys.argv = [kind if kind == "-c" else what, *arguments]
    code = None
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        code = end.code
    leaving.leave(code)


def _say_to_jax(env):
    """JAX has read its variables; of these only two differ from process to process."""
    quick = bool(env.get("JAX_DISABLE_MOST_OPTIMIZATIONS"))
    compiling.use(quick, by_flags="XLA_FLAGS" in env)
    folder = env.get("JAX_COMPILATION_CACHE_DIR")
    jax.config.update("jax_compilation_cache_dir", folder)


def prepare():
    """Imports and computes what most commands need and what is always the same."""
    for name in MODULES:
        importlib.import_module(name)
    leaving.use()
    quick_unique.use()
    lone_teacher.use()
    source_digest.digest()  # kept by the library, once per process
    quick_digits.use()
    digits.neighbor_graph(digits.NEIGHBORS)


if __name__ == "__main__":
    gc.disable()
    prepare()
    gc.enable()
    gc.freeze()  # what is imported is no garbage, and need not be copied to look for it
    gc.set_threshold(20_000, 20, 20)  # as in the tests
    become(*serve(socket.socket(fileno=int(sys.argv[1]))))
