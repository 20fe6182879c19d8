"""The binary of the comparison with GKDE: trained, measured by draws, drawn again."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from experiments import gkde, readme
from experiments.support import gkde_table, paper_results
from oodgat_jax import splits
from oodgat_jax.gkde import MEASURES
from oodgat_jax.methods import METHODS
from oodgat_jax.records import read_records
from oodgat_jax.types import Dataset, InputError

TINY = ["--datasets=pubmed", "--methods=gkde", "--splits=2", "--seeds=1"]
TINY += ["--set=max_steps=10", "--set=hidden=4"]
DRIVER = """
import sys
sys.path.insert(0, {tests!r})
import test_gkde_table
from experiments import app, gkde
gkde.datasets.load = lambda name, folder: test_gkde_table.made(name)
app.run(gkde.main, gkde.SHARED, gkde.OWN)
"""


def made(name="pubmed") -> Dataset:
    """1,700 nodes of three classes; the third is OOD, and most links are within."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 3, 1700).astype(np.int32)
    features = np.eye(3, dtype=np.float32)[labels] + draw.random((1700, 3)) / 2
    order = np.argsort(labels, kind="stable").astype(np.int32)
    ends = np.r_[order, np.roll(order, 1)], np.r_[np.roll(order, 1), order]
    features = features.astype(np.float32)
    return Dataset(name, features, *ends, labels, (0, 1), 100, num_public_train=60)


def call(*arguments, cache):
    """Exit code, stdout and stderr of the binary, for which `made` is every file."""
    driver = DRIVER.format(tests=str(Path(__file__).parent.parent))
    done = subprocess.run(
        [sys.executable, "-c", driver, *arguments],
        capture_output=True,
        check=False,
        text=True,
        env=os.environ | {"OODGAT_CACHE_DIR": str(cache)},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gkde")


@pytest.fixture(scope="module")
def ending(folder):
    return call(*TINY, f"--out={folder}", cache=folder / "cache")


def test_records(folder, ending):
    assert ending[0] == 0, ending[2]
    records = read_records(folder / gkde.FILE)
    assert [record["detector"] for record in records] == [*MEASURES]
    for record in records:
        assert set(record["metrics"]) == set(gkde_table.METRICS)
        assert record["split_seeds"] == [123, 1]
        assert record["model_seeds"] == [0, 1]
        assert record["steps_run"] == [10, 10]
        assert record["protocol"] == "citation"
        assert np.isfinite(list(record["metrics"].values())).all()


def test_what_is_recorded_is_only_drawn_again(folder, ending):
    before = (folder / gkde.FILE).read_bytes()
    for more in (["--from_records"], TINY):
        code, out, _ = call(*more, f"--out={folder}", cache=folder / "cache")
        assert (code, out) == (0, ending[1])
    assert (folder / gkde.FILE).read_bytes() == before
    markdown = (folder / "gkde.md").read_text(encoding="utf-8")
    assert readme.TABLES["gkde"](folder) == markdown
    assert "| pubmed " in markdown
    assert "\\toprule" in (folder / "gkde.tex").read_text(encoding="utf-8")


def test_wrong_input_is_one_sentence(tmp_path):
    code, out, err = call("--datasets=digits", f"--out={tmp_path}", cache=tmp_path)
    assert (code, out) == (2, "")
    assert err == (
        "There is no data set 'digits' here: choose from cora, citeseer, pubmed.\n"
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
    with pytest.raises(InputError, match="No method has 'unheard=1'"):
        gkde.plan(["cora"], ["gkde"], ["unheard=1"])


def test_every_evaluation_seed_has_its_own_initialisations():
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
    for row in gkde_table.ROWS:
        assert row.detector in METHODS[row.method].detectors
        figure = paper_results.figure("gkde", row.paper, "cora", "auroc")
        assert (figure is None) == (row.paper == "")


def test_the_table_shows_the_papers_figures_and_no_failed_run():
    record = {
        "dataset": "citeseer",
        "method": "gkde",
        "detector": "vacuity",
        "metrics": {name: [0.5, 0.7, 0.1] for name in gkde_table.METRICS},
        "split_seeds": [1, 1, 1],
        "failed_runs": [{"run": 2, "step": 4}],
    }
    (row,) = gkde_table.draw([record], ["citeseer"]).rows
    assert row[:2] == ["citeseer", "GKDE, vacuity"]
    assert row[2].text == "60.0 ± 10.0 (84.8)"
    assert row[4].text == "60.0 ± 10.0"
    with pytest.raises(InputError, match="no records of cora"):
        gkde_table.draw([record], ["cora"])
