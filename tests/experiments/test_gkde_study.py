"""The binary of the comparison with GKDE: trained, measured by draws, drawn again."""

import functools
from unittest import mock

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from support import binaries

from experiments import gkde
from experiments.support import paper_results, study
from oodgat_jax import datasets, splits
from oodgat_jax.gkde import MEASURES
from oodgat_jax.methods import METHODS
from oodgat_jax.records import read_records
from oodgat_jax.types import Dataset, InputError

TINY = ["--datasets=pubmed", "--methods=gkde", "--splits=2", "--seeds=1"]
TINY += ["--set=max_steps=10", "--set=hidden=4"]


def made(name="pubmed") -> Dataset:
    """1,700 nodes of three classes; the third is OOD, and most links are within."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 3, 1700).astype(np.int32)
    features = np.eye(3, dtype=np.float32)[labels] + draw.random((1700, 3)) / 2
    order = np.argsort(labels, kind="stable").astype(np.int32)
    ends = np.r_[order, np.roll(order, 1)], np.r_[np.roll(order, 1), order]
    features = features.astype(np.float32)
    return Dataset(name, features, *ends, labels, (0, 1), 100, num_public_train=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gkde")


@pytest.fixture(scope="module")
def call(cache):
    """Calls the binary, for which `made` is every file."""
    with mock.patch.object(datasets, "load", lambda name, folder: made(name)):
        yield functools.partial(binaries.call, "gkde", cache=cache)


@pytest.fixture(scope="module")
def ending(folder, call):
    return call(*TINY, f"--out={folder}")


def test_records(folder, ending):
    assert ending[0] == 0, ending[2]
    records = read_records(folder / gkde.STUDY.file)
    assert [record["detector"] for record in records] == [*MEASURES]
    for record in records:
        assert set(record["metrics"]) == set(gkde.METRICS)
        assert record["split_seeds"] == [123, 1]
        assert record["model_seeds"] == [0, 1]
        assert record["steps_run"] == [10, 10]
        assert record["protocol"] == "citation"
        assert np.isfinite(list(record["metrics"].values())).all()


def test_what_is_recorded_is_only_drawn_again(folder, ending, call):
    before = (folder / gkde.STUDY.file).read_bytes()
    for more in (["--from_records"], TINY):
        code, out, _ = call(*more, f"--out={folder}")
        assert (code, out) == (0, ending[1])
    assert (folder / gkde.STUDY.file).read_bytes() == before
    markdown = (folder / "gkde.md").read_text(encoding="utf-8")
    assert study.markdown(gkde.STUDY, *study.read(gkde.STUDY, folder)) == markdown
    assert "| pubmed " in markdown
    assert "\\toprule" in (folder / "gkde.tex").read_text(encoding="utf-8")


def test_wrong_input_is_one_sentence(tmp_path, call):
    code, out, err = call("--datasets=digits", f"--out={tmp_path}")
    assert (code, out) == (2, "")
    assert err == (
        "There is no data set 'digits': choose from cora, citeseer, pubmed.\n"
    )


def test_plan():
    chosen = gkde.plan(["cora"], ["gkde", "oodgat"], ["kernel=1", "lr=0.5"])
    found = {method: recipe for _, method, recipe in chosen}
    assert found["gkde"]["kernel"] == 1.0
    assert "kernel" not in found["oodgat"]
    assert found["gkde"]["lr"] == found["oodgat"]["lr"] == 0.5
    assert found["oodgat"]["consistency"] == 1.0
    with pytest.raises(InputError, match="no method 'gcn'"):
        gkde.plan(["cora"], ["gcn"], [])
    with pytest.raises(InputError, match="no hyper-parameter 'unheard'"):
        gkde.plan(["cora"], ["gkde"], ["unheard=1"])


def test_every_evaluation_seed_has_its_own_initializations():
    assert gkde.seeds(3, 2) == ([123, 123, 1, 1, 2, 2], [0, 1, 2, 3, 4, 5])


def test_measure_is_the_mean_over_draws():
    split = splits.draw_citation(made())
    scores = np.random.default_rng(1).normal(size=(2, 1700)) + split.is_ood
    found = gkde.measure(scores.astype(np.float32), split, [5, 6])
    for suffix, pool in (("", split.test), ("_unseen", split.test & ~split.val)):
        for run, seed in enumerate((5, 6)):
            draws = splits.evaluation_draws(pool, seed)
            pairs = [(split.is_ood[mask], scores[run][mask]) for mask in draws]
            auroc = np.mean([roc_auc_score(*pair) for pair in pairs])
            aupr = np.mean([average_precision_score(*pair) for pair in pairs])
            assert found[f"auroc{suffix}"][run] == pytest.approx(auroc, abs=1e-5)
            assert found[f"aupr{suffix}"][run] == pytest.approx(aupr, abs=1e-5)


def test_rows_are_known_detectors_and_known_rows_of_the_paper():
    for row in gkde.ROWS:
        assert row.detector in METHODS[row.method].detectors
        figure = paper_results.figure("gkde", row.paper, "cora", "auroc")
        assert (figure is None) == (row.paper == "")


def test_the_table_shows_the_papers_figures_and_no_failed_run():
    record = {
        "dataset": "citeseer",
        "method": "gkde",
        "detector": "vacuity",
        "metrics": {name: [0.5, 0.7, 0.1] for name in gkde.METRICS},
        "split_seeds": [1, 1, 1],
        "failed_runs": [{"run": 2, "step": 4}],
    }
    (row,) = gkde.draw([record], ["citeseer"]).rows
    assert row[:2] == ["citeseer", "GKDE, vacuity"]
    assert row[2].text == "60.0 ± 10.0 (84.8)"
    assert row[4].text == "60.0 ± 10.0"
    with pytest.raises(InputError, match="no records of cora"):
        gkde.draw([record], ["cora"])
