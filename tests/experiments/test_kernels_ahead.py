"""Kernels are compiled beside a binary that is still importing JAX."""

import importlib.util
import sys

import pytest

from experiments.support import kernels_ahead

# Stands for a compiler: it says what it is and writes what it is asked for.
FAKE = """#!/bin/sh
case "$*" in *--version*) echo fake 1.0; exit 0;; esac
while [ "$1" != -o ]; do shift; done
echo compiled > "$2"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    compiler = tmp_path / "fake-c++"
    compiler.write_text(FAKE)
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("OODGAT_KERNELS_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def test_a_process_without_jax_compiles(folder):
    process = kernels_ahead.begin(["--dataset=digits"])
    assert process.wait(60) == 0
    (library,) = folder.glob("*.so")
    assert library.read_text() == "compiled\n"


def test_a_compiler_that_fails_is_left_to_who_needs_it(folder, monkeypatch, capfd):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert kernels_ahead.begin([]).wait(60) == 0
    assert capfd.readouterr().err == ""
    assert not folder.exists()


@pytest.mark.parametrize(
    "argument", ["--help", "--from_records", "--check", "--kernel=sparse"]
)
def test_nothing_is_compiled_for_who_does_not_train(argument):
    assert kernels_ahead.begin([argument]) is None


def test_nothing_is_compiled_beside_an_accelerator(monkeypatch):
    found = {"jax_plugins": object(), "libtpu": None}
    monkeypatch.setattr(importlib.util, "find_spec", found.get)
    assert kernels_ahead.begin([]) is None


def test_the_package_alone_begins_nothing(monkeypatch):
    """Only `python -m` does: sys.argv says so while it looks for the binary."""
    begun = []
    monkeypatch.setattr(kernels_ahead, "begin", begun.append)
    for argv, times in ((["pytest"], 0), (["-m", "--splits=1"], 1)):
        monkeypatch.setattr(sys, "argv", argv)
        spec = importlib.util.find_spec("experiments")
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        assert begun == [["--splits=1"]] * times
