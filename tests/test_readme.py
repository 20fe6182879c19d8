"""What the README shows runs: its Python, its commands' flags, its regularizer."""

import pathlib
import re
import shlex
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import detect
from oodgat_jax import losses
from oodgat_jax.cli import app
from oodgat_jax.types import Outputs, Split

README = pathlib.Path(__file__).parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")


def block(mark):
    """The Python code after a comment in the README."""
    return re.search(rf"<!-- {mark} -->\n```python\n(.*?)```", TEXT, re.DOTALL)[1]


def test_the_quick_start_runs():
    code = block("quick start")
    shorter = code.replace("arange(16)", "arange(2)").replace("=300", "=11")
    assert shorter.count("arange(2)") == shorter.count("max_steps=11") == 1
    done = subprocess.run([sys.executable, "-c", shorter], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert re.fullmatch(r"AUROC 0\.\d+ ± 0\.\d+\n", done.stdout.decode())


def test_the_regularizer_works(monkeypatch):
    monkeypatch.setattr(losses, "REGULARIZERS", dict(losses.REGULARIZERS))
    exec(block("regularizer"), vars(losses) | {"__name__": "readme"})
    term = losses.REGULARIZERS["labeled"]
    logits = (jnp.array([[0.0, 2.0], [9.0, 9.0]]), jnp.array([[-1.0], [9.0]]))
    outputs = Outputs(jnp.zeros((2, 3)), jnp.zeros((2, 1)), logits)
    mask = np.array([True, False])
    split = Split(np.array([0, 3]), ~mask, mask, mask, mask)
    expected = 1 / (1 + np.exp(-1 / 3))
    assert float(term(outputs, split, {})) == pytest.approx(expected, rel=1e-6)
    empty = split._replace(train=np.zeros(2, bool))
    assert term(outputs, empty, {}) == 0


def commands(module):
    lines = re.findall(rf"^python -m {module}(.*?)(?:#.*)?$", TEXT, re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_the_commands_have_flags_that_exist():
    known = {*app.SHARED, "detectors", "terms", "help", "set"}
    found = commands(r"experiments\.detect")
    assert len(found) >= 5
    for arguments in found:
        names = {a[2:].split("=")[0] for a in arguments if a.startswith("--")}
        assert names <= known
    chosen = [a for command in found for a in command if a.startswith("--detectors=")]
    detect.define("gcn", chosen[0].removeprefix("--detectors=").split(","), None)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)h][^)]*)\)", TEXT))
def test_linked_files_exist(link):
    assert (README.parent / link).is_file()


def test_the_map_names_what_there_is():
    listed = re.findall(r"^  (\w+(?:\.py|/)) ", TEXT, re.MULTILINE)
    assert len(listed) > 10
    assert [n for n in listed if not (README.parent / "oodgat_jax" / n).exists()] == []


PROMISES = (README.parent / "docs" / "promises.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`(test_\w+\.py::\w+)`", PROMISES)))
)
def test_every_promise_has_its_test(name):
    file, function = name.split("::")
    text = (README.parent / "tests" / file).read_text(encoding="utf-8")
    assert re.search(rf"^def {function}\(", text, re.MULTILINE)


def test_every_promise_names_a_test():
    for line in re.findall(
        r"^- .*?(?=^- |^## |\Z)", PROMISES, re.MULTILINE | re.DOTALL
    ):
        assert "`test_" in line, line
