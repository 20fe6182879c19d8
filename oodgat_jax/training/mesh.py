"""The mesh: devices along two axes, `runs` and `graph`.

Runs are independent and go along `runs` without a word between devices. A graph that
is too large for one device is spread along `graph`, which comes last, so that the
devices that exchange nodes are neighbors: of one host, if they fit on one.
"""

from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from oodgat_jax.graphs import reductions
from oodgat_jax.types import InputError

RUNS, GRAPH = AXES = ("runs", reductions.AXIS)


def parse(text: str) -> dict[str, int]:
    """Sizes of both axes from `runs:4,graph:2`; an axis that is not named has 1."""
    sizes = dict.fromkeys(AXES, 1)
    seen = set()
    for part in text.split(","):
        name, _, number = part.partition(":")
        if name not in AXES or not number.isdecimal() or int(number) < 1:
            raise InputError(
                f"--mesh takes sizes from 1 of its axes {' and '.join(AXES)}, as in "
                f"--mesh=runs:4,graph:2, not '{part}'."
            )
        if name in seen:
            raise InputError(f"--mesh names the axis {name} twice: name it once.")
        seen.add(name)
        sizes[name] = int(number)
    return sizes


def build(sizes: dict[str, int], devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Builds the mesh over all devices of all processes, or over those given."""
    devices = jax.devices() if devices is None else devices
    shape = tuple(sizes[axis] for axis in AXES)
    if np.prod(shape) != len(devices):
        written = ",".join(f"{axis}:{sizes[axis]}" for axis in AXES)
        raise InputError(
            f"--mesh={written} is for {np.prod(shape)} devices, but there are "
            f"{len(devices)}: choose sizes whose product is {len(devices)}."
        )
    return jax.make_mesh(shape, AXES, (AxisType.Auto,) * 2, devices=devices)
