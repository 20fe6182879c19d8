"""Large pages: a process starts itself once more, with the setting, if it can."""

import os
import platform
import subprocess
import sys

import pytest

from experiments import machine

SCRIPT = """
import os, sys
print("begun", end=" ")
from experiments import machine
machine.use_large_pages()
print(os.getpid(), sys.argv[1:], os.environ.get(machine.TUNABLES))
"""


def run(*arguments, **variables):
    """What SCRIPT prints, and the number of its process."""
    without = {k: v for k, v in os.environ.items() if k != machine.TUNABLES}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=without | variables,
    )
    return process.communicate()[0].strip(), process.pid


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_a_process_starts_once_more_with_the_same_arguments():
    printed, pid = run("--one=1", "two words")
    again = f"{pid} ['--one=1', 'two words'] {machine.LARGE_PAGES}"
    assert printed == f"begun begun {again}"


@pytest.mark.parametrize("setting", ["", "glibc.malloc.arena_max=2"])
def test_a_setting_of_the_user_is_left_alone(setting):
    printed, pid = run(**{machine.TUNABLES: setting})
    assert printed == f"begun {pid} [] {setting}".strip()


def test_no_glibc_no_large_pages(monkeypatch):
    monkeypatch.delenv(machine.TUNABLES, raising=False)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("started once more"))
    machine.use_large_pages()
    assert machine.TUNABLES not in os.environ
