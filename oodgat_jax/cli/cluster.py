"""The processes and devices of a command: flags, start, and who writes.

One process needs none of this. Several are started with the same command, each with
its own --process_id, or by a scheduler that JAX knows (Slurm, GKE, TPU pods): then
--mesh is all that is said.
"""

import os
import sys
from typing import Any

import jax
from absl import flags
from jax.sharding import Mesh

from oodgat_jax import training
from oodgat_jax.training import capacity
from oodgat_jax.training import mesh as meshes
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
NAMES = ("mesh", "coordinator", "num_processes", "process_id")
HEARTBEAT = 30  # seconds without a sign of life after which a process is lost

LOST = (
    "Lost contact with another process ({reason}): start the same command again on all "
    "of them; it goes on from the last checkpoint."
)


def start() -> None:
    """Joins the other processes, if there are any, and makes the CPU devices.

    Must come before JAX is used for the first time.
    """
    flag = {name: getattr(FLAGS, name, None) for name in NAMES}
    sizes = meshes.parse(flag["mesh"]) if flag["mesh"] else None
    _check(flag["coordinator"], flag["num_processes"], flag["process_id"])
    count = _join(flag)
    if sizes is None:
        training.use_cores()
        return
    devices = sizes[meshes.RUNS] * sizes[meshes.GRAPH]
    if devices % count:
        raise InputError(
            f"--mesh={flag['mesh']} is for {devices} devices, which {count} processes "
            "cannot share evenly: choose a multiple of the number of processes."
        )
    capacity.check_devices(devices // count)
    training.use_cores(devices // count)  # on the CPU, simulated if need be


def mesh() -> Mesh | None:
    """Builds the mesh that --mesh asks for; None: the default of one process."""
    if FLAGS.mesh:
        return meshes.build(meshes.parse(FLAGS.mesh))
    if jax.process_count() > 1:
        return meshes.build({meshes.RUNS: jax.device_count(), meshes.GRAPH: 1})
    return None


def is_writer() -> bool:
    """Returns whether this process writes records and prints; the first one does."""
    return jax.process_index() == 0


def leave(code: int) -> None:
    """Ends a process whose peers are gone, without waiting for them."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _check(coordinator: str | None, count: int | None, number: int | None) -> None:
    given = [value is not None for value in (coordinator, count, number)]
    if any(given) and not all(given):
        raise InputError(
            "--coordinator, --num_processes and --process_id belong together: give all "
            "three, or none where the scheduler tells them."
        )
    if coordinator is not None and ":" not in coordinator:
        raise InputError(
            f"--coordinator takes host:port of the first process, not '{coordinator}'."
        )
    if number is not None and count is not None and not number < count:
        raise InputError(
            f"--process_id counts from 0 to {count - 1}, one less than "
            f"--num_processes, and cannot be {number}."
        )


def _join(flag: dict) -> int:
    """Returns the number of processes, after all of them have met."""
    if flag["coordinator"] is not None:
        names = ("coordinator", "num_processes", "process_id")
        _initialize(*(flag[name] for name in names))
        return flag["num_processes"]
    if flag["mesh"] is None:
        return 1
    try:
        _initialize()
    except ValueError:  # there is no cluster here
        return 1
    return int(os.environ.get("SLURM_NTASKS", 1))


def _initialize(*where: Any) -> None:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        initialize: Any = jax.distributed.initialize
        initialize(*where, heartbeat_timeout_seconds=HEARTBEAT)
    except RuntimeError as error:
        raise InputError(
            f"The processes could not meet ({str(error).splitlines()[0]}): check that "
            "all of them are started and that --coordinator can be reached."
        ) from error
