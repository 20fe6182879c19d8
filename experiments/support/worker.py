"""Calls functions in a process of its own, with its own devices and memory."""

import concurrent.futures
import multiprocessing
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from oodgat_jax.cli import app

Job = TypeVar("Job")

_kept: list[Any] = []  # in the worker: the object that `Worker` built


def in_process(
    measure: Callable[[Job], dict[str, Any]], job: Job, plugins: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns `measure(job)` from a new process that has imported the plug-ins."""
    with _pool() as pool:
        return pool.submit(_call, measure, job, list(plugins)).result()


class Worker:
    """An object `build(job)` in a new process, whose methods can be called from here.

    Args:
      build: at the top of a module.
      job: its argument.
      plugins: modules to import before.
    """

    def __init__(
        self, build: Callable[[Job], Any], job: Job, plugins: Sequence[str] = ()
    ):
        self._pool = _pool()
        self._built = self._pool.submit(_call, _keep, (build, job), list(plugins))

    def __enter__(self) -> Self:
        self._built.result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown()

    def call(self, method: str, *args: Any) -> Any:
        """Returns what the object's method returns."""
        return self._pool.submit(_ask, method, args).result()


def _pool() -> concurrent.futures.ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return concurrent.futures.ProcessPoolExecutor(1, context)


def _call(measure: Callable[[Any], Any], job: Any, plugins: Sequence[str]) -> Any:
    app.load_plugins(plugins)
    return measure(job)


def _keep(job: tuple[Callable[[Any], Any], Any]) -> None:
    build, argument = job
    _kept.append(build(argument))


def _ask(method: str, args: tuple[Any, ...]) -> Any:
    return getattr(_kept[-1], method)(*args)
