"""Checkpoints of runs under way, with orbax: one table of all runs, whatever the mesh.

What is kept is each started run's state, on the host: a run goes on from it with the
same bits, on the same mesh or on another one. With several processes all of them call
every function, and the folder must be one that all of them see.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from oodgat_jax.training import placement
from oodgat_jax.types import InputError


class Checkpoints:
    """A folder of checkpoints of one training; the last two are kept.

    Args:
      folder: its own, made if needed. One training at a time uses it: a second one,
        of this process or another, is refused while the first is under way.
      seconds: at least so much time passes between two checkpoints.
      tell: called with a sentence if a damaged checkpoint is passed over.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        seconds: float = 300.0,
        tell: Callable[[str], None] = lambda sentence: None,
    ):
        self._folder = pathlib.Path(folder).absolute()
        self._seconds = seconds
        self._tell = tell
        self._last = time.monotonic()
        self._manager = None

    def exists(self) -> bool:
        """Returns whether there is a checkpoint to continue from, whole or not."""
        return bool(self._steps())

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other trainings out of the folder while the block runs.

        Raises:
          InputError: another training is in it, or it cannot be made.
        """
        first = jax.process_index() == 0
        held, reason = _lock(self._folder) if first else (None, "")
        try:
            if placement.from_first(float(bool(reason))):
                raise InputError(
                    reason or "The first process gave up: see its message."
                )
            yield
        finally:
            self._close()
            if held is not None:
                with contextlib.suppress(OSError):
                    self._folder.rmdir()  # only if nothing was saved
                os.close(held)

    def how_to_continue(self) -> str:
        """Returns the sentence for whoever stops a training after `save`."""
        return f"The same command continues from the checkpoint in {self._folder}."

    def is_due(self) -> bool:
        """Returns whether it is time for one, as the first process's clock says."""
        late = time.monotonic() - self._last >= self._seconds
        return bool(placement.from_first(late))

    def save(self, states: Mapping[int, Any], total: int) -> None:
        """Saves the states of the runs that have begun, of so many runs in all."""
        from orbax import checkpoint as ocp  # here, since it takes seconds to import

        step = sum(int(state.step) for state in states.values())
        tree = _table(states, total)
        if step in self._open().all_steps():
            return  # nothing has happened since
        self._open().save(step, args=ocp.args.StandardSave(tree), force=True)
        self._last = time.monotonic()

    def load(self, like: Any, total: int) -> dict[int, Any]:
        """Returns states by run from the last whole checkpoint; none if there is none.

        Args:
          like: one run's state, of which only shapes and types are used.
          total: runs in all.
        """
        wanted = _table({0: jax.tree.map(_zeros, like)}, total)
        steps = self._steps()
        for step in steps:
            table = self._restore(step, wanted)
            if table is not None:
                self._keep_only(step, steps)
                return _states(table, wanted, jax.tree.structure(like))
        if steps:
            raise InputError(
                f"No checkpoint in {self._folder} can be read, or they are of other "
                "runs: delete the folder, or choose another --out."
            )
        return {}

    def _steps(self) -> list[int]:
        """Returns the steps of all checkpoints, the last one first."""
        try:
            names = [path.name for path in self._folder.iterdir()]
        except OSError:
            return []
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def _restore(self, step: int, wanted: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the table of a checkpoint; None if it is damaged or of other runs."""
        from orbax import checkpoint as ocp

        try:
            with ocp.StandardCheckpointer() as reader:
                found = reader.restore(self._folder / str(step) / "default", wanted)
            table = jax.tree.map(np.asarray, found)
            same = jax.tree.map(_is_like, table, wanted)
        except Exception:  # orbax and tensorstore have many kinds for damaged files
            return None
        return table if all(jax.tree.leaves(same)) else None

    def _keep_only(self, step: int, steps: list[int]) -> None:
        """Removes newer checkpoints, which cannot be read, now that this one can."""
        damaged = [each for each in steps if each > step]
        if damaged:
            self._tell(
                f"The newest checkpoint in {self._folder} is damaged: continuing from "
                f"the one before, {damaged[0] - step} steps earlier in all."
            )
        try:
            self._remove(damaged)
            self._open()
        except Exception:  # an older one has damaged facts, which orbax stumbles over
            self._remove([each for each in steps if each != step])

    def _remove(self, steps: list[int]) -> None:
        if jax.process_index() == 0:
            for step in steps:
                shutil.rmtree(self._folder / str(step), ignore_errors=True)
        placement.from_first(0.0)  # the others wait for the first

    def clear(self) -> None:
        """Removes them all, when the training has ended."""
        self._close()
        if jax.process_index() == 0:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _close(self) -> None:
        if self._manager is not None:
            self._manager.close()
            self._manager = None

    def _open(self):
        if self._manager is None:
            from orbax import checkpoint as ocp

            options = ocp.CheckpointManagerOptions(
                max_to_keep=2, create=True, enable_async_checkpointing=False
            )
            self._manager = ocp.CheckpointManager(self._folder, options=options)
        return self._manager


def _table(states: Mapping[int, Any], total: int) -> dict[str, Any]:
    """Stacks the state of all runs to [S, ...] (zeros if not started), and who has."""
    rows = {run: jax.tree.leaves(state) for run, state in states.items()}
    started = np.zeros(total, bool)
    started[list(rows)] = True
    columns = {}
    for number, leaf in enumerate(next(iter(rows.values()))):
        column = np.zeros((total, *np.shape(leaf)), np.asarray(leaf).dtype)
        for run, leaves in rows.items():
            column[run] = leaves[number]
        columns[f"{number:03d}"] = column
    return {"started": started, "leaves": columns}


def _states(table: dict[str, Any], wanted: dict[str, Any], structure: Any) -> dict:
    columns = [table["leaves"][name] for name in wanted["leaves"]]
    return {
        int(run): jax.tree.unflatten(structure, [column[run] for column in columns])
        for run in np.flatnonzero(table["started"])
    }


def _lock(folder: pathlib.Path) -> tuple[int | None, str]:
    """Returns the descriptor of the locked folder, or a sentence on why there is none.

    A lock on a folder leaves no file behind, and ends with the process.
    """
    try:
        while True:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
                    return descriptor, ""
            except FileNotFoundError:
                pass  # whoever had the lock has just removed the folder: make it again
            except BlockingIOError:
                os.close(descriptor)
                return None, (
                    f"Another process trains the same into {folder}: wait for it, or "
                    "choose another --out."
                )
            os.close(descriptor)
    except OSError as error:
        return None, (
            f"Checkpoints cannot be kept in {folder} ({error.strerror}): choose "
            "another --out."
        )


def _is_like(found: np.ndarray, wanted: np.ndarray) -> bool:
    return (found.shape, found.dtype) == (wanted.shape, wanted.dtype)


def _zeros(leaf: Any) -> np.ndarray:
    return np.zeros(leaf.shape, leaf.dtype)
