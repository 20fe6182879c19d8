"""Files that are written whole or not at all."""

import os

import numpy as np
import pytest

from oodgat_jax import atomic_files
from oodgat_jax.types import InputError


def test_a_file_takes_its_place_at_the_end(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with atomic_files.file(path) as output:
        output.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o644
    atomic_files.text(path, "ä\n")
    assert path.read_bytes() == "ä\n".encode()


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "page.html").write_text("old")

    def full(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(
        InputError, match=r"page\.html cannot be written \(No space left"
    ):
        atomic_files.text(tmp_path / "page.html", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert (tmp_path / "page.html").read_text() == "old"


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out.csv").symlink_to(tmp_path / "disk" / "real.csv")
    atomic_files.text(tmp_path / "out.csv", "new")
    assert (tmp_path / "out.csv").is_symlink()
    assert (tmp_path / "disk" / "real.csv").read_text() == "new"


def test_who_may_read_is_up_to_the_user(tmp_path):
    before = os.umask(0o077)
    try:
        atomic_files.text(tmp_path / "secret.csv", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "secret.csv").stat().st_mode & 0o777 == 0o600
    atomic_files.text(tmp_path / "secret.csv", "newer")
    assert (tmp_path / "secret.csv").stat().st_mode & 0o777 == 0o600


def test_the_longest_name_is_written(tmp_path):
    path = tmp_path / ("a" * 251 + ".csv")
    atomic_files.check(path)
    atomic_files.text(path, "new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("name", ["folder", "lost/a.csv", "link", 300 * "a"])
def test_what_cannot_be_written_is_found_beforehand(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lost" / "b")
    with pytest.raises(InputError, match="cannot be written"):
        atomic_files.check(tmp_path / name)


def test_an_interrupted_block_leaves_nothing(tmp_path):
    def write():
        with atomic_files.file(tmp_path / "a.npz") as output:
            np.savez(output, x=np.arange(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"lost/a\.txt cannot be written"):
        atomic_files.text(tmp_path / "lost" / "a.txt", "x")
