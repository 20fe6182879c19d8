"""A live line on stderr while runs train; plain lines, now and then, in a log."""

import shutil
import sys
import time
from typing import TextIO

from oodgat_jax.training import Progress

LOG_EVERY = 10.0  # seconds between lines that are not overwritten


class Line:
    """Shows the progress of `train.train`; a context manager.

    On a terminal one line is overwritten. Anywhere else, a line is added at most
    every ten seconds, and nothing but text is written.
    """

    def __init__(
        self, title: str, stream: TextIO | None = None, *, quiet: bool = False
    ):
        self._title = title
        self._quiet = quiet  # for all but one of several processes
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._began = self._shown = time.monotonic()
        self._first: tuple[float, int] | None = None  # when, and after which steps

    def __enter__(self) -> "Line":
        self._show("starting, compiling")
        return self

    def __exit__(self, *error) -> None:
        if self._live and not self._quiet:
            self._stream.write("\n")

    def __call__(self, progress: Progress) -> None:
        """Shows where the runs are."""
        over = progress.finished == progress.total
        if self._live or over or time.monotonic() - self._shown >= LOG_EVERY:
            self._show(describe(progress) + self._left(progress))
        if self._first is None:  # compiling is behind it
            self._first = time.monotonic(), progress.steps

    def _left(self, progress: Progress) -> str:
        """Returns the time that remains at most; runs that stop early need less."""
        if self._first is None or not progress.left:
            return ""
        began, steps = self._first
        done = progress.steps - steps
        if done <= 0:
            return ""
        seconds = progress.left * (time.monotonic() - began) / done
        return f", at most {duration(seconds)} left"

    def _show(self, text: str) -> None:
        if self._quiet:
            return
        self._shown = time.monotonic()
        text = f"{self._title}: {text}, {self._shown - self._began:.0f} s"
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{text[:width]}")
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()


def duration(seconds: float) -> str:
    """Returns a time for people, in the unit that suits it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def describe(progress: Progress) -> str:
    """Returns one line on where the runs are, without the time."""
    return (
        f"{progress.finished}/{progress.total} runs done, {progress.going} going, "
        f"{progress.steps} steps, validation {progress.score:.3f} of 2"
    )
