"""What the README shows runs: its Python, its commands' flags, its regularizer."""

import ast
import importlib
import os
import pathlib
import re
import shlex

import pytest
from support import forking
from support.binaries import QUICK

import oodgat_jax as og
from oodgat_jax.cli import shared_flags

README = pathlib.Path(__file__).parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")
COMMANDS = re.findall(r"python -m (experiments\.\w+)([^`|\n]*)", TEXT)


def block(mark):
    """The Python code after a comment in the README."""
    return re.search(rf"<!-- {mark} -->\n```python\n(.*?)```", TEXT, re.DOTALL)[1]


def test_it_is_short():
    assert len(TEXT.splitlines()) <= 200
    assert len(block("quick start").splitlines()) <= 10


def test_the_quick_start_runs():
    code = block("quick start")
    few = 'splits=1, seeds=2, settings={"max_steps": 11})'
    shorter = code.replace("splits=3, seeds=3)", few)
    assert shorter != code
    done = forking.run("-c", shorter, env=os.environ | QUICK)
    assert done.returncode == 0, done.stderr
    assert "oodgat on digits: 2 runs, 22 steps" in done.stdout
    assert re.search(r"\[0\.\d+ +0\.\d+ *\]\n$", done.stdout)


def test_the_regularizer_works():
    before = dict(og.REGULARIZERS)
    try:
        exec(block("regularizer"), {})
        term = og.REGULARIZERS["trust"]
        og.testing.check_regularizer(term.function, hyper=term.hyper, needs=term.needs)
    finally:
        og.REGULARIZERS.clear()
        og.REGULARIZERS.update(before)


@pytest.mark.parametrize(("name", "arguments"), sorted(set(COMMANDS)))
def test_the_commands_have_flags_that_exist(name, arguments):
    module = importlib.import_module(name)
    known = {*shared_flags.SHARED, *getattr(module, "OWN", ())}
    given = [a for a in shlex.split(arguments) if a.startswith("--")]
    assert {a[2:].split("=")[0] for a in given} <= known


def test_every_binary_is_named():
    folder = README.parent / "experiments"
    binaries = {f"experiments.{path.stem}" for path in folder.glob("[a-z]*.py")}
    named = {name for name, _ in COMMANDS}
    assert binaries - named <= {"experiments.histogram", "experiments.readme"}


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)h][^)]*)\)", TEXT))
def test_linked_files_exist(link):
    assert (README.parent / link).is_file()


PAGES = sorted((README.parent / "docs").glob("**/*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_pages_exist(page):
    for link in re.findall(r"\]\(([^)#h][^)#]*)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).is_file(), link


PROMISES = (README.parent / "docs" / "promises.md").read_text(encoding="utf-8")
TESTS = README.parent / "tests"


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`((?:\w+/)?test_\w+\.py::\w+)`", PROMISES)))
)
def test_every_promise_has_its_test(name):
    file, function = name.split("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert function in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_every_promise_names_a_test():
    for line in re.findall(
        r"^- .*?(?=^- |^## |\Z)", PROMISES, re.MULTILINE | re.DOTALL
    ):
        assert re.search(r"`(\w+/)?test_", line), line
