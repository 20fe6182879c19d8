"""The digest of the sources that decide a number: what counts, what does not."""

import pathlib

import pytest
from test_layers import ROOT, imports, module_of

from oodgat_jax import source_digest
from oodgat_jax.records import made_by

LIBRARY = ROOT / "oodgat_jax"
SOURCE = '''"""Adds."""


def add(a: float, b: float = 1.0) -> float:
    """Returns a sum."""
    return a + b  # both
'''
BARE = "def add(a: float, b: float=1.0) -> float:\n\n    return (a +\n b)\n"


def reached(start):
    """Modules that a package imports, directly or not, its own __init__ files too."""
    files = {module_of(path): path for path in LIBRARY.rglob("*.py")}
    found, left = set(), [name for name in files if name.startswith(start)]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        for each in imports(files[name]):
            parts = each.split(".")
            above = [".".join(parts[:n]) for n in range(2, len(parts) + 1)]
            left += [module for module in above if module in files]
    return {files[name] for name in found}


def test_whatever_an_experiment_reaches_counts_or_is_named_as_around_it():
    counted = set(source_digest.counted(LIBRARY))
    rooms = {path.relative_to(LIBRARY).parts[0] for path in counted}
    assert {"experiment", "training", "methods", "splits", "metrics.py"} <= rooms
    beyond = reached("oodgat_jax.experiment") - counted
    # They write what was measured, and do not measure.
    written = {"atomic_files.py", "records.py", "source_digest.py", "tables.py"}
    assert {path.relative_to(LIBRARY).as_posix() for path in beyond} <= written


def test_kernels_count_as_written_and_every_name_around_is_a_room():
    names = {path.name for path in source_digest.counted(LIBRARY)}
    assert {"attention.cc", "attention.h"} <= names
    rooms = {path.stem for path in LIBRARY.iterdir()}
    assert set(source_digest.AROUND) <= rooms


@pytest.fixture
def library(tmp_path):
    """A function that writes a library of one counted file and returns its digest."""

    def write(source, name="training/loop.py"):
        for path in [p for p in tmp_path.rglob("*") if p.is_file()]:
            path.unlink()
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return source_digest.of_files(tmp_path)

    return write


def test_what_documents_code_makes_no_record_stale(library):
    assert library(SOURCE) == library(BARE)
    assert library(SOURCE) != library(SOURCE.replace("a + b", "b + a"))
    assert library(SOURCE) != library(SOURCE.replace("1.0", "1"))
    assert library(SOURCE) != library(SOURCE, "training/other.py")
    assert library(SOURCE, "cli/app.py") == library(BARE * 2, "cli/app.py")
    # Worked out once, and the same under every version of Python.
    assert library(SOURCE) == "c2d989c6204d"


def test_the_digest_is_in_what_records_say_of_their_making():
    found = made_by()
    assert found["code"] == source_digest.digest() == source_digest.of_files(LIBRARY)
    assert len(found["code"]) == source_digest.LENGTH
    assert pathlib.Path(source_digest.ROOT) == LIBRARY
