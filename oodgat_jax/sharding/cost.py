"""What a compiled program costs a device: bytes held, and bytes sent to others.

Both are read from XLA's own account of the program: its buffers, and the collectives
in its text. A collective inside of a loop counts once, so the program should be one
training step.
"""

import math
import re
from typing import NamedTuple

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2}
_BYTES |= {"f32": 4, "s32": 4, "u32": 4, "f64": 8, "s64": 8, "u64": 8}
_KINDS = "all-to-all|all-reduce|all-gather|reduce-scatter|collective-permute"
_CALL = re.compile(rf"= (.*?) ({_KINDS})(?:-start)?\(")
_SHAPE = re.compile(r"([a-z]+\d*)\[([\d,]*)\]")


class Cost(NamedTuple):
    """Of one device."""

    arguments: int  # bytes of what goes in: graph, splits, parameters
    results: int  # bytes of what comes out
    scratch: int  # bytes of everything between
    sent: dict[str, int]  # bytes per kind of collective

    @property
    def memory(self) -> int:
        """Bytes held at the most."""
        return self.arguments + self.results + self.scratch

    @property
    def moved(self) -> int:
        """Bytes sent in all."""
        return sum(self.sent.values())


def cost(compiled, devices: int) -> Cost:
    """Returns the cost of a compiled program over a number of devices."""
    memory = compiled.memory_analysis()
    return Cost(
        arguments=memory.argument_size_in_bytes,
        results=memory.output_size_in_bytes - memory.alias_size_in_bytes,
        scratch=memory.temp_size_in_bytes,
        sent=sent(compiled.as_text(), devices),
    )


def sent(text: str, devices: int) -> dict[str, int]:
    """Bytes that a device sends by kind of collective, in the text of a program.

    With P devices: of an all-to-all's result all but a P-th part came from others; an
    all-gather likewise; an all-reduce is a reduce-scatter and an all-gather.
    """
    share = (devices - 1) / devices
    factor = {"all-reduce": 2 * share, "reduce-scatter": devices - 1.0}
    found: dict[str, float] = {}
    for line in text.splitlines():
        if match := _CALL.search(line):
            kind = match[2]
            size = sum(_size(*shape) for shape in _SHAPE.findall(match[1]))
            found[kind] = found.get(kind, 0.0) + factor.get(kind, share) * size
    return {kind: round(total) for kind, total in found.items()}


def _size(kind: str, dimensions: str) -> int:
    numbers = [int(number) for number in dimensions.split(",") if number]
    return _BYTES.get(kind, 4) * math.prod(numbers)
