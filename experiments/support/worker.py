"""Calls a function in a process of its own, with its own devices and memory."""

import concurrent.futures
import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from oodgat_jax.cli import app

Job = TypeVar("Job")


def in_process(
    measure: Callable[[Job], dict[str, Any]], job: Job, plugins: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns `measure(job)` from a new process that has imported the plug-ins."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_call, measure, job, list(plugins)).result()


def _call(
    measure: Callable[[Job], dict[str, Any]], job: Job, plugins: Sequence[str]
) -> dict[str, Any]:
    app.load_plugins(plugins)
    return measure(job)
