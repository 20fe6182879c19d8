"""The main binary as a user runs it: what it writes and prints, and how it ends."""

import functools
import os
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest
from support import binaries, compiling, forking

from experiments import detect
from oodgat_jax import datasets, experiment, metrics, splits
from oodgat_jax.methods import METHODS as TABLE
from oodgat_jax.records import KEYS, latest, read_records
from oodgat_jax.types import InputError

TINY = ["--splits=1", "--seeds=2", "--set=max_steps=11", "--set=hidden=8"]
METRICS = {
    "accuracy",
    "aupr",
    "auroc",
    "fpr95",
    "fpr95_paper",
    "weighted_f1",
    "weighted_f1_val",
}


call = functools.partial(binaries.call, "detect")


@pytest.fixture(scope="module")
def twice(tmp_path_factory, cache):
    """The same command twice into one folder: (folder, endings).

    First as users call it. The second time there is a folder of compiled programs,
    which is not of the tests; that process is forked, but not from the first, so that
    strings have other hashes in it.
    """
    folder = tmp_path_factory.mktemp("out") / "deep"
    command = ["-m", "experiments.detect", *TINY, f"--out={folder}"]
    env = os.environ | binaries.QUICK | {"XLA_FLAGS": compiling.FLAGS}
    env |= {"OODGAT_CACHE_DIR": str(cache)}
    env.pop("JAX_COMPILATION_CACHE_DIR")
    first = [sys.executable, *command]
    endings = [
        subprocess.run(first, capture_output=True, text=True, env=env),
        forking.run(*command, env=env),
    ]
    return folder, [(done.returncode, done.stdout, done.stderr) for done in endings]


def test_it_ends_well(twice):
    for code, _, err in twice[1]:
        assert (code, "Traceback" in err) == (0, False), err


def test_compiled_programs_are_kept(twice, cache):
    names = {path.name.partition("-")[0] for path in (cache / "compiled").iterdir()}
    assert "jit_evaluate" in names


def test_the_table(twice):
    lines = twice[1][0][1].splitlines()
    assert lines[0].startswith("oodgat on digits: 2 runs, 22 steps")
    assert lines[2].split()[:4] == ["detector", "Accuracy", "AUROC", "AUPR"]
    assert [line.split()[0] for line in lines[4:6]] == ["ENT", "ATT"]
    assert lines[4].count("±") == 6


def test_stderr_is_a_plain_log(twice):
    first, *_, last = twice[1][0][2].splitlines()
    assert first.startswith("oodgat on digits: starting")
    assert "2/2 runs done" in last
    assert not set("\r\x1b") & set(twice[1][0][2])


def test_the_records(twice):
    records = read_records(twice[0] / "results.jsonl")
    assert [r["detector"] for r in records] == ["ENT", "ATT"] * 2
    for record in records:
        assert set(KEYS) <= set(record)
        assert (record["dataset"], record["method"]) == ("digits", "oodgat")
        assert set(record["metrics"]) == METRICS
        assert record["split_seeds"] == [123, 123]
        assert record["model_seeds"] == [0, 1]
        assert record["steps_run"] == [11, 11]
        assert record["hyperparameters"]["hidden"] == 8
        assert record["failed_runs"] == []


def test_the_same_command_gives_the_same_numbers(twice):
    first, second = np.split(np.array(read_records(twice[0] / "results.jsonl")), 2)
    assert [r["metrics"] for r in first] == [r["metrics"] for r in second]
    assert first[0]["split_digest"] == second[0]["split_digest"]


def test_the_arrays_are_those_of_the_record(twice):
    dataset = datasets.load("digits")
    split = splits.draw(dataset, 123)
    record = latest(read_records(twice[0] / "results.jsonl"), detector="ATT")
    with np.load(twice[0] / "digits-oodgat.npz") as arrays:
        assert arrays["predictions"].shape == (2, dataset.num_nodes)
        assert arrays["scores_ENT"].shape == (2, dataset.num_nodes)
        np.testing.assert_array_equal(arrays["test"][1], split.test)
        np.testing.assert_array_equal(arrays["labels"], split.labels)
        scores = arrays["scores_ATT"][1]
    auroc = jax.jit(metrics.auroc)(scores, split.is_ood, split.test)
    assert auroc == pytest.approx(record["metrics"]["auroc"][1], abs=1e-6)
    assert not list(twice[0].glob("*.part"))


def test_help_explains_and_shows_commands(cache):
    code, out, err = call("--help", cache=cache)
    assert (code, err) == (0, "")
    assert "python -m experiments.detect --dataset=cora --method=gcn" in out
    for flag in (*detect.SHARED, *detect.OWN, "plugin"):
        assert f"\n  --{flag} (default: " in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--dataset=corra"], "no data set 'corra': choose from digits, cora"),
        (["--dataset=cora", "--data_dir=nowhere"], "ind.cora.allx does not exist"),
        (["--splits=few"], "--splits=few is wrong (invalid literal"),
        (["--sedes=3"], "There is no flag --sedes: see --help."),
        (["--set=unheard=1"], "no hyper-parameter 'unheard': choose from lr"),
        ([f"--out={__file__}/results"], "cannot be written to (Not a directory)"),
        (["--checkpoint_seconds=nan"], "--checkpoint_seconds must be a number"),
        (["stray"], "Unknown argument 'stray'"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_wrong_input_is_one_sentence(arguments, sentence, cache, tmp_path):
    code, out, err = call(f"--out={tmp_path}", *arguments, cache=cache)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert err.endswith((".\n", "?\n"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["digits-mlp.npz", "results.jsonl"])
def test_what_cannot_be_written_is_found_before_training(name, cache, tmp_path):
    (tmp_path / name).symlink_to(tmp_path / "lost" / name)
    asked = ("--method=mlp", f"--out={tmp_path}")
    code, out, err = call(*TINY, *asked, cache=cache)
    assert (code, out) == (2, "")
    assert f"{name} cannot be written (No such file" in err
    assert err.count("\n") == 1


def test_an_interrupt_is_one_sentence(cache, tmp_path):
    endless = ["--method=mlp", "--set=max_steps=9999999", "--set=patience=9999999"]
    process = binaries.start("detect", *endless, f"--out={tmp_path}", cache=cache)
    with process:
        assert "starting" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    # With a checkpoint, how to continue, if the training had begun.
    assert err.splitlines()[-1].startswith("Interrupted: stopped before the end.")
    assert "Traceback" not in err
    assert {path.name for path in tmp_path.iterdir()} <= {"checkpoints"}


def test_runs_that_fail_are_named(cache, tmp_path):
    wild = ["--method=mlp", "--set=lr=1e30", f"--out={tmp_path}"]
    code, out, err = call(*TINY, *wild, cache=cache)
    assert code == 1
    assert "ENT" in out
    assert "Run 1 (split 123, seed 1) failed: its loss was not finite at step" in err
    (record,) = read_records(tmp_path / "results.jsonl")
    assert [entry["run"] for entry in record["failed_runs"]] == [0, 1]


def test_detectors_and_regularizers_are_chosen_by_name():
    base = TABLE["oodgat"]
    method = experiment.define(base, ["MSP"], ["entropy"])
    assert (method.detectors, method.regularizers) == (("MSP",), ("entropy",))
    assert experiment.label("oodgat", base, ["entropy"]) == "oodgat-ce+entropy"
    assert experiment.label("oodgat", base, []) == "oodgat-ce"
    assert experiment.label("oodgat", base, None) == "oodgat"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (("oodgat", ["MPS"], None), "no detector 'MPS': choose from .*MSP"),
        (("oodgat", ["MSP", "MSP"], None), "detector 'MSP' is given twice"),
        (("oodgat", None, ["entropie"]), "no regularizer 'entropie': choose from"),
    ],
    ids=str,
)
def test_wrong_choices_are_named(choice, message):
    name, *others = choice
    with pytest.raises(InputError, match=message):
        experiment.define(TABLE[name], *others)


def test_what_a_method_lacks_is_named(cache, tmp_path):
    for choice in ("--detectors=ATT", "--regularizers=entropy"):
        given = "--method=gcn", choice, f"--out={tmp_path}"
        code, _, err = call(*given, cache=cache)
        assert code == 2
        assert "attention" in err
