import numpy as np
import pytest
from support import synthetic

from experiments import unknown_groups
from experiments.support import study
from oodgat_jax.methods import recipes
from oodgat_jax.records import check


@pytest.fixture(scope="module")
def record():
    dataset = synthetic.generate(400, 3000, 8, signal=2.0)
    recipe = recipes.recipe(None, "gcn") | {"max_steps": 41, "patience": 5}
    keys = {
        "dataset": "made",
        "method": "gcn",
        "members": 1,
        "rounds": 2,
        "labels_each": 12,
        "split_seeds": [1],
        "hyperparameters": recipe,
    }
    return unknown_groups.measure(dataset, "gcn", recipe, keys)


def test_a_record_has_a_value_per_split_and_one_per_round(record):
    check(record)
    values = record["metrics"]
    assert set(values) >= set(unknown_groups.COLUMNS)
    assert all(len(column) == 1 for column in values.values())
    assert len(record["named_by_round"][0]) == 3
    assert record["named_by_round"][0][0] == values["named_start"][0]
    assert record["named_by_round"][0][-1] == values["named_next"][0]
    assert values["found_start"] == [0.0]
    assert values["found_next"][0] > 0
    assert values["ari_unknown"][0] > 0.2


def test_a_class_waits_for_its_second_label():
    truth = np.array([0, 0, 1, 1, 2])
    nobody = np.zeros(5, bool)
    labels = unknown_groups.Labels(truth, nobody, ~nobody).add([0, 1, 2])
    assert labels.given().tolist() == [0, 0, -1, -1, -1]
    assert labels.add([3]).given().tolist() == [0, 0, 1, 1, -1]
    assert labels.pool.tolist() == [False, False, False, True, True]


def test_the_table_and_its_note(record):
    page = study.markdown(unknown_groups.STUDY, [record])
    assert "named, next" in page
    assert "2 times 12 nodes" in page
    assert "made, " in page
