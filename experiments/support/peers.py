"""Measures a peer, another implementation of the same training, beside our own.

A peer is a command that trains for a while and prints `ms_per_step: X`, and if it
likes `cpu_ms_per_step: X` and `about: ...`. Rounds of ours and of the peer's alternate,
so that both meet the same machine in the same state, and each round gives a ratio.
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
    """What a round of ours or of a peer's measured, per step."""

    ms: float
    cpu_ms: float | None = None  # of all cores together, if it is known
    about: str = ""


class Rounds(NamedTuple):
    """Alternating rounds."""

    ours: list[Answer]
    theirs: list[Answer]

    @property
    def ratios(self) -> list[float]:
        """Returns how many times faster ours was, per round."""
        return [b.ms / a.ms for a, b in zip(self.ours, self.theirs, strict=True)]

    @property
    def cpu_ratios(self) -> list[float]:
        """Returns the same of CPU time, which other work hardly changes."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return [b.cpu_ms / a.cpu_ms for a, b in pairs if a.cpu_ms and b.cpu_ms]

    def record(self, name: str) -> dict[str, Any]:
        """Returns what a record holds of the peer."""
        return {
            "peer": {
                "name": name,
                "about": self.theirs[-1].about,
                "ours_ms": [a.ms for a in self.ours],
                "theirs_ms": [b.ms for b in self.theirs],
                "ratios": self.ratios,
                "ours_cpu_ms": [a.cpu_ms for a in self.ours],
                "theirs_cpu_ms": [b.cpu_ms for b in self.theirs],
                "cpu_ratios": self.cpu_ratios,
            },
            "peer_ms_per_step": float(np.median([b.ms for b in self.theirs])),
        }


def alternate(
    ours: Callable[[], Answer], theirs: Callable[[], Answer], rounds: int
) -> Rounds:
    """Measures ours and theirs in turn."""
    answers = [(ours(), theirs()) for _ in range(rounds)]
    return Rounds([a for a, _ in answers], [b for _, b in answers])


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
    found = _numbers("ms_per_step", done.stdout)
    if done.returncode or not found:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise InputError(
            f"--peer must print 'ms_per_step: X' and end with exit code 0, but it "
            f"ended with {done.returncode}: {last[-1]}"
        )
    cpu = _numbers("cpu_ms_per_step", done.stdout)
    about = re.findall(r"^about:\s*(.+)$", done.stdout, re.MULTILINE)
    return Answer(found[-1], cpu[-1] if cpu else None, about[-1] if about else "")


def _numbers(name: str, text: str) -> list[float]:
    """Returns all X of lines `name: X`."""
    found = re.findall(rf"^{name}:\s*([0-9.eE+-]+)\s*$", text, re.MULTILINE)
    return [float(number) for number in found]


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
