"""How much memory the host has free, for this process and its control groups."""

import os
import pathlib

MEMINFO = pathlib.Path("/proc/meminfo")
MEMBERSHIP = pathlib.Path("/proc/self/cgroup")
GROUPS = pathlib.Path("/sys/fs/cgroup")
# Limit, use and the key of memory.stat with what the kernel drops when it needs room.
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")


def free_bytes() -> int:
    """Returns the free memory of the host, or of the tightest control group in it.

    A container or a batch job has less than the host; who takes more is killed.
    """
    return min([_of_host(), *_of_groups()])


def _of_host() -> int:
    """Returns the free memory of the host; half of all where a system tells no more."""
    try:
        lines = MEMINFO.read_text().splitlines()
        found = dict(line.split(":", 1) for line in lines)
        return 1024 * int(found["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _of_groups() -> list[int]:
    """Returns what is left of the limit of every group around this process."""
    try:
        lines = MEMBERSHIP.read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if not controllers:
            found += [_left(group, _VERSION_2) for group in _around(GROUPS, name)]
        elif "memory" in controllers.split(","):
            root = GROUPS / "memory"
            found += [_left(group, _VERSION_1) for group in _around(root, name)]
    return [left for left in found if left is not None]


def _around(root: pathlib.Path, name: str) -> list[pathlib.Path]:
    """Returns the group and those that hold it. A container may see only the root."""
    group = root / name.lstrip("/")
    return [group, *(path for path in group.parents if path.is_relative_to(root))]


def _left(group: pathlib.Path, names: tuple[str, str, str]) -> int | None:
    """Returns the bytes below the limit of a group; None if it has no limit."""
    limit, used, reclaimable = names
    try:
        most, taken = (int((group / name).read_text()) for name in (limit, used))
        lines = (group / "memory.stat").read_text().splitlines()
        cached = int(dict(line.split() for line in lines)[reclaimable])
    except (OSError, KeyError, ValueError):  # no such group, or its limit is "max"
        return None
    return max(0, most - taken + cached)
