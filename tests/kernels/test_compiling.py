"""Compiling and caching the kernels: safe whatever the machine is like."""

import os
import pathlib
import stat

import pytest
from support import forking

from oodgat_jax import kernels
from oodgat_jax.kernels import compiling

pytestmark = pytest.mark.usefixtures("native")
ASK = """
from oodgat_jax import graphs, kernels
import numpy as np
status = kernels.status()
graph = graphs.from_edges(np.ones((3, 2)), np.array([0]), np.array([1]))
assert (graph.globals.native is not None) == status.available
print(status.available, status.reason)
"""
# Stands for a compiler that takes no time: it "compiles" by copying.
FAKE = """#!/bin/sh
case "$*" in *--version*) echo fake 1.0; exit 0;; esac
while [ "$1" != -o ]; do shift; done
cp {library} "$2"
"""


FAILING = """#!/bin/sh
case "$*" in *--version*) exit 0;; esac
echo "x: error: no" >&2
exit 1
"""


def ask(tmp_path, **variables):
    done = forking.run("-c", ASK, env=os.environ | here(tmp_path) | variables)
    assert done.returncode == 0, done.stderr
    return done


def here(tmp_path):
    """Variables that make the cache one of this test."""
    return {"OODGAT_CACHE_DIR": str(tmp_path / "cache"), "OODGAT_KERNELS_DIR": ""}


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def fake(tmp_path):
    text = FAKE.format(library=kernels.status().path)
    return script(tmp_path / "fake-c++", text)


@pytest.fixture
def folder(tmp_path, monkeypatch, fake):
    for name, value in here(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CXX", fake)
    return tmp_path / "cache" / "kernels"


def test_no_compiler(tmp_path):
    done = ask(tmp_path, PATH="", CXX="")
    assert done.stdout.startswith("False")
    assert "install g++ or clang" in done.stderr
    assert done.stderr.count("\n") == 1


def test_compiler_that_fails(tmp_path):
    done = ask(tmp_path, CXX=script(tmp_path / "bad", FAILING))
    assert done.stdout.startswith("False")
    assert "failed: x: error: no" in done.stderr.splitlines()[-1]
    assert os.listdir(tmp_path / "cache" / "kernels") == ["lock"]


def test_compiler_whose_library_cannot_be_loaded(tmp_path, fake):
    (tmp_path / "not-a-library").write_text("nothing")
    text = FAKE.format(library=tmp_path / "not-a-library")
    done = ask(tmp_path, CXX=script(tmp_path / "odd", text))
    assert done.stdout.startswith("False")
    assert "--kernel=auto is pure JAX" in done.stderr


@pytest.fixture
def read_only(tmp_path):
    """Returns a folder in which nothing can be made, not even by root."""
    if os.getuid() == 0:  # may write to any folder on a disk
        return pathlib.Path("/proc")
    (tmp_path / "home").mkdir(mode=0o500)
    return tmp_path / "home"


def test_read_only_home(tmp_path, read_only):
    done = ask(tmp_path, OODGAT_CACHE_DIR=str(read_only / "cache"))
    assert done.stdout.startswith("False")
    assert "cache/kernels cannot be made" in done.stderr
    assert "OODGAT_CACHE_DIR" in done.stderr
    assert done.stderr.count("\n") == 1


def test_cache_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "cache").write_text("a file")
    done = ask(tmp_path)
    assert done.stdout.startswith("False")
    assert "OODGAT_CACHE_DIR" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_variable_that_is_set_is_the_one_to_change(tmp_path):
    (tmp_path / "file").write_text("a file")
    done = ask(tmp_path, OODGAT_KERNELS_DIR=str(tmp_path / "file"))
    assert done.stdout.startswith("False")
    assert "set OODGAT_KERNELS_DIR to" in done.stderr


@pytest.mark.parametrize("variable", ["CXX", "OODGAT_KERNEL_FLAGS"])
def test_a_quote_without_end_is_one_sentence(tmp_path, variable):
    done = ask(tmp_path, **{variable: 'g++ "'})
    assert done.stdout.startswith("False")
    assert f'{variable}=g++ " is not a command' in done.stderr


def test_two_processes_at_once(tmp_path, fake):
    slow = script(tmp_path / "slow", f'#!/bin/sh\nsleep 1\nexec {fake} "$@"\n')
    variables = here(tmp_path) | {"CXX": slow}
    started = [forking.start("-c", ASK, env=os.environ | variables) for _ in range(2)]
    ended = [process.communicate() for process in started]
    assert all(out.startswith("True") for out, _ in ended), ended
    assert sum(errors.count("Compiling") for _, errors in ended) == 1


def test_the_second_time_nothing_is_compiled(folder, capsys):
    path = compiling.library()
    assert "Compiling" in capsys.readouterr().err
    assert compiling.library() == path
    assert capsys.readouterr().err == ""
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"", b"other"])
def test_a_corrupted_file_is_compiled_again(folder, content, capsys):
    path = compiling.library()
    good = path.read_bytes()
    path.write_bytes(content or good[: len(good) // 2])
    capsys.readouterr()
    assert compiling.library() == path
    assert "Compiling" in capsys.readouterr().err
    assert path.read_bytes() == good


def test_files_that_others_can_write_are_not_loaded(folder):
    path = compiling.library()
    key = compiling.digest(compiling.find_compiler())
    path.chmod(0o722)
    assert compiling.find(folder, key) is None
    path.chmod(0o700)
    assert compiling.find(folder, key) == path


def test_links_and_folders_of_others_are_not_used(folder, tmp_path, monkeypatch):
    path = compiling.library()
    key = compiling.digest(compiling.find_compiler())
    target = path.rename(tmp_path / "elsewhere.so")
    path.symlink_to(target)
    assert compiling.find(folder, key) is None
    monkeypatch.setattr(os, "getuid", lambda: -1)
    with pytest.raises(compiling.CompileError, match="your own"):
        compiling.make_folder()


def test_an_open_folder_is_closed(folder):
    compiling.library()
    folder.chmod(0o755)
    compiling.library()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_key_follows_the_compiler_and_its_flags(folder, monkeypatch):
    compiler = compiling.find_compiler()
    keys = {compiling.digest(compiler), compiling.digest(compiler._replace(version=""))}
    monkeypatch.setenv(compiling.FLAGS_VARIABLE, "-O1")
    keys.add(compiling.digest(compiler))
    monkeypatch.setattr(compiling, "_cpu", lambda: "another")
    keys.add(compiling.digest(compiler))
    assert len(keys) == 4
