"""--mesh: what it takes, and the mesh it makes."""

import types

import jax
import pytest

from oodgat_jax.cli import cluster
from oodgat_jax.training import mesh, placement
from oodgat_jax.types import InputError


def test_axes_that_are_not_named_have_one_device():
    assert mesh.parse("runs:4,graph:2") == {"runs": 4, "graph": 2}
    assert mesh.parse("graph:8") == {"runs": 1, "graph": 8}
    assert mesh.parse("runs:3") == {"runs": 3, "graph": 1}


@pytest.mark.parametrize(
    "text", ["", "rows:2", "runs", "runs:", "runs:0", "runs:-1", "runs:2.5", "graph=2"]
)
def test_what_is_no_mesh_is_named(text):
    with pytest.raises(InputError, match=f"--mesh.*not '{text}'"):
        mesh.parse(text)


def test_an_axis_is_named_once():
    with pytest.raises(InputError, match="runs twice"):
        mesh.parse("runs:2,runs:2")


def test_the_mesh_takes_all_devices():
    devices = jax.devices()[:1]
    found = mesh.build(mesh.parse("runs:1"), devices)
    assert dict(found.shape) == {"runs": 1, "graph": 1}
    assert placement.shards_here(found) == [0]
    with pytest.raises(InputError, match=r"--mesh=runs:3,graph:2 is for 6 devices.* 1"):
        mesh.build(mesh.parse("graph:2,runs:3"), devices)


def start(monkeypatch, **given):
    names = dict.fromkeys(cluster.NAMES) | given
    monkeypatch.setattr(cluster, "FLAGS", types.SimpleNamespace(**names))
    cluster.start()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"coordinator": "host:1"}, "belong together"),
        ({"num_processes": 2, "process_id": 0}, "belong together"),
        (
            {"coordinator": "host", "num_processes": 2, "process_id": 0},
            "--coordinator takes host:port",
        ),
        (
            {"coordinator": "host:1", "num_processes": 2, "process_id": 2},
            "--process_id counts from 0 to 1",
        ),
        ({"mesh": "columns:2"}, "--mesh"),
    ],
)
def test_processes_that_cannot_meet_are_named(monkeypatch, given, message):
    with pytest.raises(InputError, match=message):
        start(monkeypatch, **given)


def test_devices_are_shared_evenly(monkeypatch):
    monkeypatch.setattr(cluster, "_join", lambda flag: 2)
    with pytest.raises(InputError, match="3 devices, which 2 processes"):
        start(monkeypatch, mesh="runs:3")
