"""Every experiments/*.py can be run, says what it is for, and takes plug-ins."""

import importlib
import pathlib
import sys

import pytest
from support.binaries import call

import experiments
from experiments import homophily
from oodgat_jax.datasets import DATASETS
from oodgat_jax.methods import METHODS

(FOLDER,) = map(pathlib.Path, experiments.__path__)
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
PLUGIN = """
from oodgat_jax import datasets
from oodgat_jax.methods import METHODS


def load(folder):
    return datasets.digits()._replace(name="mine")


datasets.register_dataset("mine", load)
METHODS.register("mine", METHODS["mlp"])
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """The name of a module in the current folder that registers `mine` twice."""
    (tmp_path / "registers_both.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "registers_both", raising=False)
    yield "registers_both"
    for table in (DATASETS, METHODS):
        table.pop("mine", None)


def test_there_are_binaries():
    assert len(NAMES) > 15


@pytest.mark.parametrize("name", NAMES)
def test_help_says_what_it_is_for(name, plugin, cache):
    code, out, err = call(name, "--help", f"--plugin={plugin}", cache=cache)
    assert (code, err) == (0, "")
    text = importlib.import_module(f"experiments.{name}").__doc__
    assert out.startswith(text.strip().splitlines()[0])
    assert f"python -m experiments.{name}" in out
    assert "\n  --plugin (default: none)\n" in out
    assert "mine" in METHODS
    for flag in ("--method ", "--dataset "):
        if f"\n  {flag}" in out:
            told = out.partition(f"\n  {flag}")[2].partition("\n  --")[0]
            assert ", mine" in " ".join(told.split())


def test_what_a_plug_in_registers_can_be_used(plugin, cache, tmp_path):
    flags = f"--plugin={plugin}", "--datasets=mine", f"--out={tmp_path}"
    code, out, err = call("homophily", *flags, cache=cache)
    assert code == 0, err
    assert "mine" in out
    assert (tmp_path / homophily.STUDY.file).exists()
    few = "--splits=1", "--seeds=2", "--set=max_steps=11", "--set=hidden=8"
    code, out, err = call("detect", *flags[::2], "--method=mine", *few, cache=cache)
    assert code == 0, err
    assert out.startswith("mine on digits")


def test_a_plug_in_that_cannot_be_imported_is_one_sentence(cache):
    code, out, err = call("findings", "--plugin=no_such_module", cache=cache)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--plugin=no_such_module cannot be imported" in err
