"""Runs: their order, equality with runs alone, failures, records, progress line."""

import io

import numpy as np
import pytest

from oodgat_jax import datasets, experiment, splits
from oodgat_jax.cli import progress
from oodgat_jax.methods import recipes
from oodgat_jax.records import (
    append_records,
    kept_metrics,
    read_records,
    with_seeds,
)
from oodgat_jax.training import Progress
from oodgat_jax.types import InputError

SETTINGS = ["max_steps=11", "hidden=32"]
# The second one cannot but diverge; with few hidden units, they might all die instead.
HYPERS = ({}, {"lr": 1e30}, {"lr": 0.1})


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


def train(dataset, split_seeds, model_seeds, hypers=({},)):
    recipe = recipes.override(recipes.recipe("digits", "mlp"), SETTINGS)
    return experiment.execute(
        dataset, "mlp", recipe, split_seeds, model_seeds, hypers=hypers
    )


@pytest.fixture(scope="module")
def outcome(digits):
    return train(digits, (123, 1), (0, 5), HYPERS)


def test_split_seeds():
    assert experiment.split_seeds(1) == (123,)
    assert experiment.split_seeds(4) == (123, 1, 2, 3)


def test_runs_are_all_combinations_seeds_fastest(outcome):
    assert outcome.setting.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert outcome.split_seeds.tolist() == [123, 123, 1, 1] * 3
    assert outcome.model_seeds.tolist() == [0, 5] * 6


def test_a_run_does_not_depend_on_its_neighbors(digits, outcome):
    backwards = train(digits, (1, 123), (5, 0), HYPERS[::-1])
    np.testing.assert_array_equal(backwards.scores["ENT"][0], outcome.scores["ENT"][11])
    np.testing.assert_array_equal(backwards.scores["ENT"][9], outcome.scores["ENT"][2])
    np.testing.assert_array_equal(splits.draw(digits, 1).test, outcome.splits.test[11])


def test_failed_runs_are_named_and_others_kept(outcome):
    assert outcome.failed.tolist() == [4, 5, 6, 7]
    sentences = experiment.failures(outcome)
    assert len(sentences) == 4
    assert "Run 6 (split 1, seed 0) failed" in sentences[2]
    good, bad, _ = experiment.records(outcome)
    assert [entry["run"] for entry in bad["failed_runs"]] == [0, 1, 2, 3]
    assert f"at step {bad['failed_runs'][2]['step']};" in sentences[2]
    assert np.isnan(bad["metrics"]["accuracy"]).all()
    assert kept_metrics(bad)["auroc"] == []
    assert good["failed_runs"] == []
    assert kept_metrics(good)["auroc"] == good["metrics"]["auroc"].tolist()
    assert np.isfinite(good["metrics"]["auroc"]).all()


def test_records_can_be_written(outcome, tmp_path):
    for record in experiment.records(outcome):
        append_records(tmp_path / "a.jsonl", record)
    first, _, third = read_records(tmp_path / "a.jsonl")
    assert first["hyperparameters"]["lr"] == 0.01
    assert third["hyperparameters"] == first["hyperparameters"] | {"lr": 0.1}
    assert first["split_seeds"] == [123, 123, 1, 1]
    assert first["steps_run"] == [11] * 4
    assert first["split_digest"] == third["split_digest"]


def test_a_record_with_fewer_seeds_is_that_of_a_training_with_fewer(digits, outcome):
    alone = train(digits, (123, 1), (5,), HYPERS)
    for longer, shorter in zip(*map(experiment.records, (outcome, alone)), strict=True):
        cut = with_seeds(longer, (5,))
        assert cut["seconds"] == pytest.approx(longer["seconds"] / 2, abs=1e-3)
        assert cut["failed_runs"] == shorter["failed_runs"]
        for name, values in shorter["metrics"].items():
            np.testing.assert_array_equal(cut["metrics"][name], values)
        for name in ("split_seeds", "model_seeds", "best_step", "split_digest"):
            np.testing.assert_array_equal(cut[name], shorter[name])


def test_a_record_of_the_least_keys_is_cut_too(outcome):
    optional = {"best_step", "validation", "failed_runs"}
    least = {
        k: v for k, v in experiment.records(outcome)[0].items() if k not in optional
    }
    assert len(with_seeds(least, (0,))["metrics"]["auroc"]) == 2


@pytest.mark.parametrize("hypers", [(), ({"hidden": 8.0},), ({"unheard": 1.0},)])
def test_impossible_settings_are_refused(digits, hypers):
    with pytest.raises(InputError):
        train(digits, (1,), (0,), hypers)


STATE = Progress(steps=420, finished=3, going=2, total=9, score=1.5)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_in_a_log_is_plain_and_rare():
    stream = io.StringIO()
    with progress.Line("a on b", stream) as line:
        for _ in range(100):
            line(STATE)
        line(STATE._replace(finished=9, going=0))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert "9/9 runs done, 0 going, 420 steps, validation 1.500 of 2" in lines[1]
    assert not set("\r\x1b") & set(stream.getvalue())


def test_progress_on_a_terminal_is_one_line():
    stream = Terminal()
    with progress.Line("a on b", stream) as line:
        line(STATE)
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith(" s\n")
    assert "\r\x1b[Ka on b: 3/9 runs" in stream.getvalue()


def test_run_takes_exposed_nodes(digits, monkeypatch):
    given = []
    monkeypatch.setattr(
        experiment.run_by_name,
        "execute",
        lambda dataset, *_, **__: given.append(dataset),
    )
    others = np.flatnonzero(~np.isin(digits.labels, digits.id_classes))[:7]
    experiment.run(digits, "gcn-bn", exposure=others)
    split = splits.draw(given[0], 123)
    np.testing.assert_array_equal(np.flatnonzero(split.exposure), others)
    assert not (split.exposure & (split.val | split.test)).any()


def test_splits_of_any_protocol_are_checked(digits):
    def leaking(dataset, seed):
        split = splits.draw(dataset, seed)
        return split._replace(exposure=split.test & split.is_ood)

    recipe = recipes.override(recipes.recipe("digits", "mlp"), SETTINGS)
    with pytest.raises(InputError, match="is an exposure node and a test node"):
        experiment.execute(digits, "mlp", recipe, [1], [0], draw=leaking)
