"""Checkpoints of runs under way, with orbax: one table of all runs, whatever the mesh.

What is kept is each started run's state, on the host: a run goes on from it with the
same bits, on the same mesh or on another one. With several processes all of them call
every function, and the folder must be one that all of them see.
"""

import pathlib
import shutil
import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from oodgat_jax.training import placement
from oodgat_jax.types import InputError


class Checkpoints:
    """A folder of checkpoints of one training; the last two are kept.

    Args:
      folder: its own, made if needed.
      seconds: at least so much time passes between two checkpoints.
    """

    def __init__(self, folder: pathlib.Path, seconds: float = 300.0):
        self._folder = pathlib.Path(folder).absolute()
        self._seconds = seconds
        self._last = time.monotonic()
        self._manager = None

    def exists(self) -> bool:
        """Returns whether the checkpoint folder exists; it may still be empty."""
        return self._folder.exists()

    def is_due(self) -> bool:
        """Whether it is time for one, as the first process's clock says."""
        late = time.monotonic() - self._last >= self._seconds
        return bool(placement.from_first(late))

    def save(self, states: Mapping[int, Any], total: int) -> None:
        """Keeps the states of the runs that have begun, of so many runs in all."""
        from orbax import checkpoint as ocp  # here, since it takes seconds to import

        step = sum(int(state.step) for state in states.values())
        tree = _table(states, total)
        self._open().save(step, args=ocp.args.StandardSave(tree), force=True)
        self._last = time.monotonic()

    def load(self, like: Any, total: int) -> dict[int, Any]:
        """States by run from the last checkpoint; none if there is no checkpoint.

        Args:
          like: one run's state, of which only shapes and types are used.
          total: runs in all.
        """
        if self._open().latest_step() is None:
            return {}
        from orbax import checkpoint as ocp

        wanted = _table({0: jax.tree.map(_zeros, like)}, total)
        step = self._open().latest_step()
        try:
            args = ocp.args.StandardRestore(wanted)
            table = self._open().restore(step, args=args)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"The checkpoint in {self._folder} is not of these runs: delete the "
                "folder, or choose another --out."
            ) from error
        structure = jax.tree.structure(like)
        columns = [np.asarray(table["leaves"][name]) for name in wanted["leaves"]]
        return {
            int(run): jax.tree.unflatten(structure, [column[run] for column in columns])
            for run in np.flatnonzero(table["started"])
        }

    def clear(self) -> None:
        """Removes them all, when the training has ended."""
        if self._manager is not None:
            self._manager.close()
            self._manager = None
        if jax.process_index() == 0:
            shutil.rmtree(self._folder, ignore_errors=True)

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


def _zeros(leaf: Any) -> np.ndarray:
    return np.zeros(leaf.shape, leaf.dtype)
