"""The binary of the field's protocols: what it trains, records and shows."""

import functools
from unittest import mock

import numpy as np
import pytest
from support import binaries

from experiments import field
from experiments.support import field_plan as plan
from experiments.support import field_table, study, trainings
from experiments.support.study_flags import RECORDS
from oodgat_jax import datasets, splits
from oodgat_jax.methods import METHODS, choosing
from oodgat_jax.records import read_records
from oodgat_jax.types import Dataset

ENTRIES = {entry.name: entry for entry in plan.ENTRIES}
TINY = ["--datasets=amazon-photo", "--runs=2", "--set=max_steps=2", "--set=hidden=4"]
TINY += ["--methods=gnnsafe++", "--shifts=structure", "--choose=validation,test"]


@functools.cache
def made(name="amazon-photo") -> Dataset:
    """240 nodes of eight classes, most links within one."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 8, 240).astype(np.int32)
    features = np.eye(8, dtype=np.float32)[labels] + random.random((240, 8)) / 2
    order = np.argsort(labels, kind="stable").astype(np.int32)
    ends = np.r_[order, np.roll(order, 1)], np.r_[np.roll(order, 1), order]
    return Dataset(name, features.astype(np.float32), *ends, labels, (0, 1), 20)


@pytest.fixture(scope="module")
def call(cache):
    with mock.patch.object(datasets, "load", lambda name, folder: made(name)):
        yield functools.partial(binaries.call, "field", cache=cache)


@pytest.fixture(scope="module")
def ending(call, tmp_path_factory):
    folder = tmp_path_factory.mktemp("field")
    return folder, call(*TINY, f"--out={folder}")


def test_records_say_what_was_scored_and_how_it_was_chosen(ending):
    folder, (code, out, err) = ending
    assert code == 0, err
    (record,) = read_records(folder / field.STUDY.file)
    told = {
        "protocol": "gnnsafe",
        "shift": "structure",
        "chosen_by": "validation nodes",
    }
    assert told.items() <= record.items()
    assert record["split_seeds"] == [123, 123]
    assert record["model_seeds"] == [0, 1]
    assert record["hyperparameters"]["energy_margin"] == 0.1  # as published for Photo
    assert {"auroc", "aupr_id", "fpr95_id", "accuracy"} <= set(record["metrics"])
    assert record["seconds"] > 0
    assert "GNNSafe++, exposed" in out
    assert "(99.8)" in out  # as published


def test_what_is_recorded_is_only_drawn_again(ending, call):
    folder, (_, out, _) = ending
    before = (folder / field.STUDY.file).read_bytes()
    for more in (["--from_records"], TINY):
        assert call(*more, f"--out={folder}")[:2] == (0, out)
    assert (folder / field.STUDY.file).read_bytes() == before


def test_shifts_to_another_graph_share_one_training(call, tmp_path):
    flags = [*TINY, "--methods=nodesafe"]
    trained = mock.Mock(wraps=trainings.execute)
    with mock.patch.object(trainings, "execute", trained):
        assert call(*flags, "--shifts=structure,feature", f"--out={tmp_path}")[0] == 0
        assert trained.call_count == 1
        alone = tmp_path / "alone"
        assert call(*flags, "--shifts=feature", f"--out={alone}")[0] == 0
        assert trained.call_count == 2
    structure, shared = read_records(tmp_path / field.STUDY.file)
    (feature,) = read_records(alone / field.STUDY.file)
    changing = {"seconds", "made", "time"}
    assert {k: v for k, v in shared.items() if k not in changing} == {
        k: v for k, v in feature.items() if k not in changing
    }
    assert structure["metrics"]["auroc"] != shared["metrics"]["auroc"]
    assert structure["metrics"]["accuracy"] == shared["metrics"]["accuracy"]


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--protocol=mine", "There is no protocol 'mine': choose from gnnsafe, grasp"),
        ("--shifts=edges", "There is no shift 'edges'"),
        ("--methods=gat", "There is no method of this table 'gat'"),
        ("--datasets=digits", "There is no data set of this protocol 'digits'"),
        ("--choose=luck", "There is no way to choose 'luck'"),
        ("--set=speed=1", "There is no hyper-parameter 'speed'"),
    ],
)
def test_wrong_input_is_one_sentence(call, tmp_path, flag, message):
    code, out, err = call(flag, f"--out={tmp_path}")
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def cell(entry, by=plan.BY_VALIDATION, protocol="gnnsafe", shift="label"):
    return plan.Cell(protocol, "amazon-photo", shift, ENTRIES[entry], by)


def test_every_entry_can_be_trained_and_shown():
    for protocol in plan.PROTOCOLS:
        shifts = plan.PROTOCOLS[protocol].shifts
        ways = ("validation", "test")
        for name in plan.PROTOCOLS[protocol].datasets:
            for one in plan.cells(protocol, name, shifts, plan.ENTRIES, ways):
                assert plan.recipe(one)["lr"] == 0.01
    shown = {(row.entry, row.detector) for row in field_table.ROWS}
    for name, entry in ENTRIES.items():
        detectors = entry.detectors or METHODS[entry.method].detectors
        assert {(name, detector) for detector in detectors} & shown, name


def test_how_a_step_is_chosen():
    assert plan.definition(cell("oodgat")).customize is choosing.by_validation_loss
    grasp = plan.definition(cell("gcn-bn", protocol="grasp"))
    assert grasp.customize is choosing.by_validation_accuracy
    assert grasp.optimizer is plan.adamw
    oracle = plan.definition(cell("gnnsafe++", plan.BY_TEST))
    assert oracle.customize is None
    assert oracle.validated_by == "GNNSafe_coded"


def test_only_the_oracle_sees_test_nodes():
    shift = splits.under_gnnsafe(made(), "label")
    true = shift.draw(shift.learned, 123)
    for by in (plan.BY_VALIDATION, plan.BY_TEST, plan.BY_UNLABELED):
        one = cell("oodgat", by)
        drawn = plan.draw_for(one, shift.draw)(shift.learned, 123)
        np.testing.assert_array_equal(drawn.train, true.train)
        np.testing.assert_array_equal(drawn.exposure, true.exposure)
        if by == plan.BY_VALIDATION:
            assert not (drawn.val & drawn.test).any()
            assert plan.scored(one, shift) is None
        else:
            assert plan.scored(one, shift).dataset is shift.scored
    # Without labels: no node but train and validation tells its class or its kind.
    labeled = true.train | true.val
    assert drawn.is_ood[~labeled].all()
    assert (drawn.labels[~labeled] == 3).all()
    np.testing.assert_array_equal(drawn.labels[labeled], true.labels[labeled])


def test_published_figures_belong_to_rows():
    keys = {row.key for row in field_table.ROWS}
    for figure in field_table.every_published():
        assert figure["protocol"] in plan.PROTOCOLS
        assert figure["chosen_on"] in ("validation", "test", "not stated")
        assert figure["source"]
        assert 0 < figure["auroc"] < 100
        assert figure["row"] in keys


@pytest.mark.parametrize("name", ["cora", "amazon-photo", "coauthor-cs"])
@pytest.mark.parametrize("shift", splits.SHIFTS)
def test_gnnsafe_is_near_its_published_figures(name, shift):
    """Within 1.5 points of AUROC, from the committed records, as the protocol says or
    where the network sees what it sees in the published code."""
    (records,) = study.read(field.STUDY, RECORDS)
    where = {"protocol": "gnnsafe", "dataset": name, "shift": shift}
    gaps = []
    for entry in ("gcn-bn", "gcn-bn-seen"):
        row = field_table.Row("GNNSafe", entry, "GNNSafe_coded")
        if record := field_table.find(records, row, plan.BY_VALIDATION, **where):
            paper = field_table.published("gcn-bn/GNNSafe_coded", *where.values())
            gaps.append(abs(100 * np.mean(record["metrics"]["auroc"]) - paper["auroc"]))
    assert min(gaps) < 1.5
