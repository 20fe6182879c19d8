import numpy as np
import pytest
from absl import flags
from support import synthetic

from experiments import no_ood_labels
from experiments.support import study, study_flags, trainings
from oodgat_jax.cli import shared_flags
from oodgat_jax.estimator.classifier import Answer
from oodgat_jax.methods import recipes
from oodgat_jax.records import append_records, check
from oodgat_jax.types import Split


@pytest.fixture(scope="module")
def record():
    dataset = synthetic.generate(400, 3000, 8, signal=2.0)
    settings = {"max_steps": 41, "patience": 5}
    recipe = recipes.recipe(None, "gcn") | settings
    return no_ood_labels.measure(dataset, "gcn", recipe, 2, 2)


def test_a_record_has_a_value_per_split(record):
    check(record)
    values = record["metrics"]
    assert set(values) == set(no_ood_labels.COLUMNS)
    assert all(len(column) == 2 for column in values.values())
    assert min(values["auroc"]) > 0.6
    for name in ("quantile", "mixture"):
        decided = np.array(values[f"f1_{name}"])
        beaten = decided <= np.array(values["f1_oracle"]) + 0.02  # it tries 200 values
        assert (beaten | np.isnan(decided)).all()


def test_a_record_of_another_score_is_not_taken(record, tmp_path):
    definitions = shared_flags.chosen(no_ood_labels.SHARED, {})
    given = {"datasets": ["digits"], "method": "gcn", "splits": 2, "seeds": 2}
    log = tmp_path / "log.jsonl"
    flags.FLAGS.mark_as_parsed()
    with study_flags.given(definitions, given):
        (training,) = no_ood_labels.STUDY.trainings()
        for detector, lacking in (("MSP", 1), ("ENT", 0)):
            append_records(log, {**record, **training.wanted[0], "detector": detector})
            assert len(trainings.lacking(log, training)) == lacking


def test_the_table_shows_both_ways_to_choose_the_step(record):
    other = {"auroc": [0.5, 0.7]}
    labeled = {**record, "metrics": other}
    page = study.markdown(no_ood_labels.STUDY, [record], [labeled])
    assert "60.0 ± 10.0 |" in page
    assert "over 2 splits, 2 members each" in page
    assert "60.0 ± 10.0" not in study.text(no_ood_labels.STUDY, [record], [])
    tuned = {**labeled, "hyperparameters": {**record["hyperparameters"], "lr": 9.0}}
    assert "60.0 ± 10.0" not in study.text(no_ood_labels.STUDY, [record], [tuned])


def test_the_table_has_a_row_per_method(record):
    both = [{**record, "method": method} for method in ("gcn", "oodgat-plus", "gcn")]
    table = no_ood_labels.draw(both, [])
    assert [row[1] for row in table.rows] == ["gcn", "oodgat-plus"]


def test_a_threshold_that_there_is_none_of_is_said_so(record):
    none = {**record["metrics"], "f1_mixture": [np.nan, np.nan]}
    changed = {**record, "metrics": none}
    page = study.markdown(no_ood_labels.STUDY, [changed], [])
    assert "none" in page


def test_decisions_are_counted_on_test_nodes():
    labels = np.array([0, 1, 2, 2, 0])
    split = Split(labels, labels == 2, *[np.array([1, 1, 1, 1, 0], bool)] * 3)
    probabilities = np.eye(2)[[0, 1, 0, 1, 1]]
    answer = Answer(probabilities, np.array([[0.1, 0.6, 0.7, 0.2, 0.9]]))
    found = no_ood_labels._decision(answer, split, 0.5)
    assert found["kept"] == found["found"] == 0.5
    # Class 0 is right, class 1 missed, and of two unknown nodes one is right.
    assert found["f1"] == pytest.approx((1.0 + 0.0 + 2 * 0.5) / 4)
