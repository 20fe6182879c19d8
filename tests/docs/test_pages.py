"""The pages as they are written: nothing public and no binary is missing, code runs."""

import ast
import importlib
import json
import pathlib
import pkgutil
import re

import pytest

import experiments
import oodgat_jax as og
from oodgat_jax import detectors
from oodgat_jax.cli import shared_flags

ROOT = pathlib.Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("**/*.md"))
SHOWN = {
    module: page.stem
    for page in (DOCS / "api").glob("*.md")
    for module in re.findall(r"```\{api\} (\S+)", page.read_text(encoding="utf-8"))
}
# Packages whose parts are for the library itself.
INSIDE = {"oodgat_jax.cli", "oodgat_jax.kernels", "oodgat_jax.sharding"}


def test_every_package_with_public_names_is_shown():
    packages = {
        f"oodgat_jax.{entry.name}"
        for entry in pkgutil.iter_modules(og.__path__)
        if hasattr(importlib.import_module(f"oodgat_jax.{entry.name}"), "__all__")
    }
    assert packages - INSIDE <= set(SHOWN)
    assert "oodgat_jax" in SHOWN


def test_every_module_beside_the_packages_is_shown():
    modules = {f"oodgat_jax.{path.stem}" for path in ROOT.glob("oodgat_jax/[a-z]*.py")}
    assert modules - set(SHOWN) == {"oodgat_jax.atomic_files", "oodgat_jax.dropout"}


def test_every_binary_is_in_the_command_line_reference():
    text = (DOCS / "reference" / "command_line.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"```\{command\} (\S+)", text))
    names = (entry.name for entry in pkgutil.iter_modules(experiments.__path__))
    binaries = {f"experiments.{name}" for name in names if name != "support"}
    assert shown == binaries | {"oodgat"}


def test_every_example_has_a_page_and_is_listed():
    folder = DOCS / "gallery"
    files = {path.stem for path in folder.glob("*.py")}
    assert len(files) >= 9
    assert files == {path.stem for path in folder.glob("*.md")} - {"index"}
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert files == set(re.findall(r"\]\((\w+)\.md\)", index))


def test_the_notebook_is_committed_without_output():
    notebook = json.loads((DOCS / "quickstart.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 4
    for cell in code:
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        ast.parse("".join(cell["source"]))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_names_that_pages_use_exist(page):
    """`og.NAME` and the values of --method, --dataset and --detectors."""
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"\bog\.(\w+)", text):
        assert hasattr(og, name), name
    for names in re.findall(r"--detectors=([\w+,]+)", text):
        assert set(names.split(",")) <= set(detectors.DETECTORS)
    plugged = {"deep", "oodgat-deep", "NAME"}
    for name in re.findall(r"--method=([\w-]+)", text):
        assert name in {*og.METHODS, *plugged}, name


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_flags_of_commands_exist(page):
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for name, rest in re.findall(r"python -m (experiments\.[a-z_]+)([^`\n]*)", text):
        own = getattr(importlib.import_module(name), "OWN", {})
        given = set(re.findall(r"--(\w+)", rest.partition("#")[0]))
        assert given <= {*own, *shared_flags.SHARED, "help"}, name
