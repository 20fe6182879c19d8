"""Six changes from files outside of the package: docs/extending.md, as users do it."""

import contextlib
import importlib
import os
import pathlib
import re
import shlex
import sys

import jax
import numpy as np
import pytest
from support import forking
from support.binaries import QUICK

import oodgat_jax as og
from oodgat_jax.cli import app
from oodgat_jax.detectors import FACTORIES, GRIDS, NEEDS
from oodgat_jax.types import InputError

ROOT = pathlib.Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (\w+)\.py -->\n```python\n(.*?)```", TEXT, re.S))
COMMANDS = re.findall(r"<!-- run -->\n```\n(.*?)\n```", TEXT, re.S)
CODE = re.findall(r"<!-- run -->\n```python\n(.*?)```", TEXT, re.S)
TABLES = (og.REGULARIZERS, og.DETECTORS, og.BACKBONES, og.METHODS, og.DATASETS)
TABLES += (NEEDS, FACTORIES, GRIDS)
FEW = {"max_steps": 11, "hidden": 4}


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """The page's files in a folder of their own; what they register is taken back."""
    for name, code in FILES.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with restored():
        yield tmp_path
    for name in FILES:
        sys.modules.pop(name, None)


@contextlib.contextmanager
def restored():
    before = [dict(table) for table in TABLES]
    try:
        yield
    finally:
        for table, entries in zip(TABLES, before, strict=True):
            table.clear()
            table.update(entries)


def quick(dataset, method, **options):
    """A short `og.run` without early surprises."""
    settings = FEW | options.pop("settings", {})
    return og.run(dataset, method, splits=1, seeds=1, settings=settings, **options)


def test_the_page_has_all_of_it():
    assert list(FILES) == [
        *("margin", "deep", "probe", "teacher", "pretrained", "rings", "adamw")
    ]
    assert (len(COMMANDS), len(CODE)) == (2, 4)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[30:50])
def test_commands_with_plug_ins(plugins, command):
    few = [f"--set={name}={value}" for name, value in FEW.items()]
    done = forking.run(
        *(*shlex.split(command)[1:], *few, "--splits=1", "--seeds=1"),
        cwd=plugins,
        env=os.environ | QUICK | {"PYTHONPATH": str(ROOT), "OODGAT_DATA_DIR": ""},
    )
    assert done.returncode == 0, done.stderr
    assert "digits: 1 run" in done.stdout


def test_a_plug_in_is_listed_by_help_and_a_missing_one_is_named(plugins):
    def call(*flags):
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        return forking.run("-m", "experiments.detect", *flags, cwd=plugins, env=env)

    shown = call("--plugin", "deep", "--plugin=margin", "--help").stdout
    assert "oodgat-deep" in shown
    assert "margin" in shown.split("--regularizers")[1]
    missing = call("--plugin=nowhere")
    assert missing.returncode == 2
    assert "--plugin=nowhere cannot be imported (ModuleNotFoundError" in missing.stderr
    assert missing.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import sys\nsys.exit(0)", "(SystemExit: 0): correct odd.py, line 2."),
        ("raise OSError('a\\nb')", "(OSError: a): correct odd.py, line 1."),
        ("import nowhere", "named 'nowhere'): correct odd.py, line 1."),
        ("def f(:", "(odd.py, line 1)): correct it."),
    ],
)
def test_a_plug_in_that_fails_is_named_with_its_line(
    text, sentence, tmp_path, monkeypatch
):
    (tmp_path / "odd.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.modules.pop("odd", None)
    importlib.invalidate_caches()
    with pytest.raises(InputError) as raised:
        app.load_plugins(["odd"])
    assert str(raised.value).endswith(sentence)
    assert "\n" not in str(raised.value)


def test_the_second_hyper_parameter_counts(plugins):
    importlib.import_module("margin")
    one, two = (
        quick("digits", "gcn", regularizers=["margin"], settings={"gap": gap})
        for gap in (1.0, 30.0)
    )
    assert one.method == "gcn-ce+margin"
    assert not np.array_equal(one.states.losses, two.states.losses)
    og.testing.check_regularizer(
        og.REGULARIZERS["margin"].function, hyper={"margin": 0.5, "gap": 1.0}
    )


def test_three_layers_of_attention(plugins):
    module = importlib.import_module("deep")
    result = quick("digits", "oodgat-deep")
    assert len(predict(result, *first(result)).attention) == 3
    assert set(result.metrics) == {"ENT", "ATT"}
    og.testing.check_backbone(module.Deep, hidden=4, depth=3)


def predict(result, params, aux):
    return jax.jit(result.task.predict)(params, aux, result.graph)


def first(result):
    """Parameters and auxiliary state of the first run."""
    return jax.tree.map(lambda x: x[0], (result.states.best, result.states.best_aux))


def test_a_detector_that_trains_also_in_the_classifier(plugins):
    importlib.import_module("probe")
    result = quick("digits", "gcn", detectors=("ENT", "probe"))
    assert np.isfinite(result.scores["probe"]).all()
    og.testing.check_detector(og.DETECTORS["probe"], needs=("labels",))
    data = og.load("digits")
    edges = np.stack([data.senders, data.receivers], 1)
    known = np.isin(data.labels, data.id_classes) & (np.arange(1797) < 300)
    labels = np.where(known, data.labels, -1)
    model = og.OODGATClassifier("gcn", detector="probe", members=1, settings=FEW)
    model.fit(data.features, edges, labels)
    again = model.answer(data.features, edges)
    np.testing.assert_array_equal(again.score, model.ood_score())
    with pytest.raises(og.InputError, match="labeled nodes of the fit"):
        model.answer(data.features[5:], edges[(edges >= 5).all(1)] - 5)


def test_a_teacher_is_an_average_and_predicts(plugins):
    importlib.import_module("teacher")
    result = quick("digits", "gcn-teacher")
    best, aux = first(result)
    kernel, taught = (tree["params"]["Linear_0"]["kernel"] for tree in (best, aux))
    assert not np.array_equal(kernel, taught)
    np.testing.assert_allclose(
        predict(result, best, aux).logits, result.logits[0], atol=1e-5
    )


def test_a_pretrained_layer_is_where_training_starts(plugins):
    importlib.import_module("pretrained")
    result = quick("digits", "gcn-pretrained", settings={"lr": 0.0, "weight_decay": 0})
    kernel = result.states.best["params"]["Linear_0"]["kernel"][0]
    x = np.asarray(result.graph.nodes)
    directions = np.linalg.svd(x - x.mean(0), full_matrices=False)[2][:4].T
    np.testing.assert_allclose(kernel, directions, atol=1e-5)


def test_a_data_set_as_pytorch_geometric_has_it(plugins):
    importlib.import_module("rings")
    result = quick("rings", "gcn")
    assert result.dataset == "rings"
    assert result.logits.shape == (1, 400, 2)


def test_another_optimizer_is_another_program(plugins):
    importlib.import_module("adamw")
    usual, other = quick("digits", "gcn"), quick("digits", "gcn-adamw")
    assert not np.array_equal(usual.states.losses, other.states.losses)
    method = og.METHODS["gcn"]
    og.register_method("gcn", method._replace(optimizer=og.METHODS["gcn-adamw"][4]))
    replaced = quick("digits", "gcn")
    np.testing.assert_array_equal(replaced.states.losses, other.states.losses)


@pytest.mark.parametrize("number", range(len(CODE)))
def test_code_of_the_page(plugins, number, monkeypatch):
    """As it stands, but with fewer steps."""
    kept = og.run

    def fewer(*args, **options):
        options["settings"] = FEW | options.get("settings", {})
        return kept(*args, **options)

    monkeypatch.setattr(og, "run", fewer)
    exec(CODE[number], {"og": og})
