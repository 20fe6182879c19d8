"""Signals that wait until a training can be left: SIGINT and SIGTERM.

A binary installs the handlers. While runs train, a signal is only noted, so that the
trainer can save a checkpoint between two calls to the devices and then raise what the
signal means; at all other times, and at a second signal, it is raised at once.
"""

import contextlib
import signal
from collections.abc import Iterator


class Terminated(BaseException):
    """SIGTERM arrived, which schedulers send before they kill."""


_MEANINGS: dict[int, type[BaseException]] = {
    signal.SIGINT: KeyboardInterrupt,
    signal.SIGTERM: Terminated,
}
_noted: list[type[BaseException]] = []
_depth = 0


def install() -> None:
    """Handles both signals from here on, unless the caller had SIGINT ignored."""
    for number in _MEANINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Notes signals inside of the block; raises at its end what is still noted."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth and _noted:
            kind = _noted.pop()
            _noted.clear()
            raise kind()


def noted() -> bool:
    """Returns whether a signal is waiting."""
    return bool(_noted)


def leave(sentence: str) -> None:
    """Raises what the waiting signal means, with a sentence on how to continue."""
    kind = _noted[-1] if _noted else KeyboardInterrupt
    _noted.clear()
    raise kind(sentence)


def _handle(number: int, frame: object) -> None:
    del frame
    if _depth and not _noted:
        _noted.append(_MEANINGS[number])
        return
    _noted.clear()
    raise _MEANINGS[number]()
