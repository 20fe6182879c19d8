"""Free memory: of the host, and of the control groups of containers and batch jobs."""

import pytest

from oodgat_jax.training import host_memory

V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = ("memory.max", "memory.current", "inactive_file")
HOST = 8 << 30


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A host with 8 GB free; membership and groups are made by the tests."""
    (tmp_path / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable: {HOST >> 10} kB")
    for name in ("MEMINFO", "MEMBERSHIP", "GROUPS"):
        monkeypatch.setattr(host_memory, name, tmp_path / name.lower())
    return tmp_path / "groups"


def put(group, names, limit, used, cached):
    group.mkdir(parents=True, exist_ok=True)
    (group / names[0]).write_text(f"{limit}\n")
    (group / names[1]).write_text(f"{used}\n")
    (group / "memory.stat").write_text(f"anon 5\n{names[2]} {cached}\n")


def test_without_groups_it_is_the_hosts(groups):
    assert host_memory.free_bytes() == HOST
    host_memory.MEMBERSHIP.write_text("0::/job\n")
    put(groups / "job", V2, "max", 7, 0)
    assert host_memory.free_bytes() == HOST


@pytest.mark.parametrize(
    ("line", "folder", "names"),
    [("0::/a/job", ".", V2), ("4:cpu,memory:/a/job", "memory", V1)],
    ids=["version 2", "version 1"],
)
def test_the_tightest_group_counts(groups, line, folder, names):
    """What the kernel would drop of it, files that were read, counts as free."""
    host_memory.MEMBERSHIP.write_text(f"3:cpuset:/\n{line}\n")
    put(groups / folder / "a" / "job", names, 5 << 30, 3 << 30, 1 << 30)
    assert host_memory.free_bytes() == 3 << 30
    put(groups / folder / "a", names, 2 << 30, 1 << 30, 0)
    assert host_memory.free_bytes() == 1 << 30


def test_a_container_that_sees_only_the_root_has_the_limit_there(groups):
    host_memory.MEMBERSHIP.write_text("4:memory:/docker/1234\n")
    put(groups / "memory", V1, 1 << 30, 2 << 30, 0)
    assert host_memory.free_bytes() == 0
