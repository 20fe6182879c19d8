"""Measures a peer, another implementation of the same training, beside our own.

A peer is a command that trains for a while and prints `ms_per_step: X`, and if it
likes `about: ...`. Rounds of ours and of the peer's alternate, so that both meet the
same machine in the same state, and each round gives a ratio.
"""

import json
import pathlib
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from oodgat_jax import graphs
from oodgat_jax.types import Dataset, InputError, Split

SCRIPT = pathlib.Path(__file__).parent / "pyg_peer.py"
PYG = "pyg"
PYG_METHODS = ("gat", "gcn", "oodgat")
TIMEOUT = 3600


class Answer(NamedTuple):
    """What a peer printed."""

    ms: float
    about: str


class Rounds(NamedTuple):
    """Times of a step, ms, in alternating rounds."""

    ours: list[float]
    theirs: list[float]
    about: str

    @property
    def ratios(self) -> list[float]:
        """Returns how many times faster ours was, per round."""
        return [b / a for a, b in zip(self.ours, self.theirs, strict=True)]

    def record(self, name: str) -> dict[str, Any]:
        """Returns what a record holds of the peer."""
        return {
            "peer": {
                "name": name,
                "about": self.about,
                "ours_ms": self.ours,
                "theirs_ms": self.theirs,
                "ratios": self.ratios,
            },
            "peer_ms_per_step": float(np.median(self.theirs)),
        }


def alternate(
    ours: Callable[[], float], theirs: Callable[[], Answer], rounds: int
) -> Rounds:
    """Measures ours and theirs in turn."""
    answers = [(ours(), theirs()) for _ in range(rounds)]
    about = answers[-1][1].about
    return Rounds([a for a, _ in answers], [b.ms for _, b in answers], about)


def ask(command: str) -> Answer:
    """Runs the peer's command and reads what it prints.

    Raises:
      InputError: it fails, takes too long or prints no figure.
    """
    try:
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"--peer took more than {TIMEOUT} s: {command}") from error
    found = re.findall(r"ms_per_step:\s*([0-9.eE+-]+)", done.stdout)
    if done.returncode or not found:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise InputError(
            f"--peer must print 'ms_per_step: X' and end with exit code 0, but it "
            f"ended with {done.returncode}: {last[-1]}"
        )
    about = re.findall(r"^about:\s*(.+)$", done.stdout, re.MULTILINE)
    return Answer(float(found[-1]), about[-1] if about else "")


def pyg_command(
    python: str, path: str, method: str, threads: int, seconds: float
) -> str:
    """Returns the command that times our own PyTorch Geometric version of a method."""
    given = f"--data={path}", f"--method={method}", f"--threads={threads}"
    return shlex.join([python, str(SCRIPT), *given, f"--seconds={seconds}"])


def write(
    path: str, dataset: Dataset, split: Split, recipe: Mapping[str, float | int | str]
) -> None:
    """Writes what the PyTorch Geometric script trains on, as an npz file."""
    entries = scipy.sparse.coo_array(dataset.features)
    loops = graphs.with_self_loops(
        dataset.senders, dataset.receivers, dataset.features.shape[0]
    )
    np.savez(
        path,
        shape=np.array(entries.shape),
        rows=entries.row,
        columns=entries.col,
        values=entries.data.astype(np.float32),
        edges=np.stack(loops),
        labels=split.labels,
        train=split.train,
        val=split.val,
        is_ood=split.is_ood,
        recipe=json.dumps(recipe),
    )
