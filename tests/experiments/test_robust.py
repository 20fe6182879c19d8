"""The study of OODGAT+: its stages, its rows, worst runs and fallen ones."""

import numpy as np
import pytest
from support.binaries import call
from support.example_records import record

from experiments import robust
from experiments.support import main_table, robust_tables
from experiments.support.robust_variants import MAIN, OFF, VARIANTS, find, values
from oodgat_jax import tables
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import read_records

TINY = ["--datasets=digits", "--stage=development"]


def made(method, detector, auroc, off=(), stage="paper", known=(0, 1), validation=None):
    found = record("digits", detector, auroc, method=method)
    return found | {
        "stage": stage,
        "known": list(known),
        "off": list(off),
        "validation_auroc": list(validation or auroc),
        "made": "2026-01-01T00:00:00+00:00",
    }


@pytest.fixture(scope="module")
def small(students):
    """The method with one step and a student of one step, compiled once."""
    sizes = {"max_steps": 1, "check_every": 1, "hidden": 4, "heads": 1}
    hyper = {**METHODS["oodgat-plus"].hyper, **sizes, "student_steps": 1.0}
    return METHODS["oodgat-plus"]._replace(hyper=hyper)


@pytest.fixture
def tiny(monkeypatch, small):
    monkeypatch.setitem(METHODS, "oodgat-plus", small)
    return small


def test_every_part_is_a_setting_of_the_method():
    recipe = recipes.recipe(None, "oodgat-plus")
    for settings in OFF.values():
        assert all(recipe[name] != value for name, value in settings.items())
    titles = [variant.title for variant in VARIANTS]
    assert len(set(titles)) == len(titles)
    assert not any("," in title for title in titles)  # --rows is a list


def test_gat_takes_the_detector_that_validation_prefers():
    one = made("gat", "ENT", (0.9, 0.5), validation=(0.8, 0.4))
    two = made("gat", "MSP", (0.7, 0.6), validation=(0.7, 0.5))
    gat = MAIN[2]
    assert values(find([one, two], gat), "auroc").tolist() == [0.9, 0.6]


def test_fallen_runs_are_judged_within_their_problem():
    problems = [np.array([0.99, 0.99, 0.95]), np.array([0.90, 0.88, 0.90])]
    assert robust_tables.fallen(problems) == pytest.approx(1 / 6)
    assert np.isnan(robust_tables.fallen([np.array([0.9]), np.array([0.5])]))


def test_tables_show_means_worst_runs_and_differences():
    records = [
        made("oodgat-plus", "FUSED+student", (0.99, 0.97)),
        made("oodgat", "ATT", (0.98, 0.90)),
        made("oodgat-plus", "FUSED+prop", (0.95, 0.93), off=("anchor",)),
    ]
    (title, table), (_, paired) = robust_tables.draw(records)
    assert title == "The paper's splits"
    shown = {row[1]: [getattr(c, "text", c) for c in row[2:5]] for row in table.rows}
    assert shown["OODGAT+"][:2] == ["98.0 ± 1.0", "97.0"]
    assert shown["OODGAT"] == ["94.0 ± 4.0", "90.0", "50"]
    assert "OODGAT+ without anchor" in shown
    assert paired.rows[0][1] == "OODGAT"
    assert paired.rows[0][3].text.startswith("+4.0 (+1.0 to +7.0")


def test_a_stage_without_the_main_rows_has_a_table_alone():
    records = [made("oodgat-plus", "FUSED+prop", (0.9,), ("heads=1",), "settings")]
    ((title, table),) = robust_tables.draw(records)
    assert title.startswith("Other settings")
    assert table.rows[0][1] == "OODGAT+ with heads=1"
    assert robust_tables.figures(records) == {}


def test_the_summary_has_a_row_of_it():
    records = [made("oodgat-plus", "FUSED+student", (0.99, 0.97))]
    records.append(made("oodgat-plus", "FUSED+student", (0.5, 0.5), off=("lead",)))
    records.append(made("oodgat-plus", "FUSED+student", (0.5, 0.5), stage="fresh"))
    text = tables.as_text(main_table.summary(robust_tables.in_summary(records)))
    assert "OODGAT+" in text
    assert "98.0" in text


def test_a_row_is_trained_and_not_again(tmp_path, cache, tiny, monkeypatch):
    few = ["ATT", "FUSED+student"]
    monkeypatch.setitem(robust.DETECTORS, "oodgat-plus", few)
    options = [*TINY, "--rows=OODGAT+", f"--out={tmp_path}"]
    code, out, err = call("robust", *options, cache=cache)
    assert code == 0, err
    assert "worst run" in out
    found = read_records(tmp_path / robust.STUDY.file)
    assert [r["detector"] for r in found] == few
    assert found[0]["split_seeds"] == [20, 21, 22]
    code, _, err = call("robust", *options, cache=cache)
    assert "recorded already" in err
    assert len(read_records(tmp_path / robust.STUDY.file)) == len(found)


@pytest.mark.parametrize(
    ("flag", "text"),
    [("--stage=nope", "stage 'nope'"), ("--rows=nope", "row 'nope'")],
)
def test_wrong_names(flag, text, tmp_path, cache):
    options = [*TINY, flag, f"--out={tmp_path}"]
    code, _, err = call("robust", *options, cache=cache)
    assert code == 2
    assert text in err


def test_ensembles_are_recorded_and_drawn(tmp_path, cache, tiny, monkeypatch):
    monkeypatch.setitem(robust.DETECTORS, "oodgat-plus", ["FUSED+student"])
    options = ["--stage=ensembles", "--datasets=digits", "--rows=OODGAT+"]
    code, out, err = call("robust", *options, f"--out={tmp_path}", cache=cache)
    assert code == 0, err
    assert "OODGAT+, 3 members" in out
    record = read_records(tmp_path / robust.STUDY.file)[0]
    made = {(e["members"], e["dropping"]): e["metrics"] for e in record["ensembles"]}
    assert [len(metrics["auroc"]) for metrics in made.values()] == [9, 9, 3, 3, 3, 3]
    assert list(made) == [
        (n, dropping) for n in (3, 5, 9) for dropping in (False, True)
    ]
    single = record["metrics"]["auroc"]
    assert min(single) - 0.1 < np.mean(made[9, False]["auroc"]) < max(single) + 0.1
