"""Training what is not recorded: what counts as recorded, and what is copied."""

import json

import pytest
from support.example_records import record

from experiments.support import trainings
from experiments.support.trainings import Training, find, wanted
from oodgat_jax.records import append_records, read_records

DETECTORS = ("ENT", "ATT")


def trained(detector, lr=0.1, seeds=(0, 1), **more):
    """A record of OODGAT on Cora, as it comes back from a file."""
    keys = {"split_seeds": [123] * len(seeds), "model_seeds": list(seeds)}
    keys |= {"hyperparameters": {"lr": lr}, "regularizers": ["consistency"]}
    values = [0.9 - seed / 10 for seed in seeds]
    return json.loads(json.dumps(record("cora", detector, values, **keys | more)))


def asked(lr=0.1, seeds=(0, 1)):
    return wanted({"lr": lr}, "cora", "oodgat", (123,), seeds, DETECTORS)


@pytest.fixture
def two_seeds(monkeypatch):
    """The flags --splits=1 --seeds=2."""
    monkeypatch.setattr(trainings, "seeds", lambda: ((123,), (0, 1)))


def training(run, *lrs, **more):
    return Training("cora", [k for lr in lrs for k in asked(lr)], run, **more)


def never(missing):
    pytest.fail("this is recorded")


def test_recorded_are_the_same_runs_with_all_detectors():
    mine = [trained(detector) for detector in DETECTORS]
    assert find(mine, asked()) == mine
    assert find(mine[:1], asked()) == []
    assert find(mine, asked(lr=0.2)) == []
    assert find(mine, asked(seeds=(0,))) == []
    later = [trained(detector, seconds=9.0) for detector in DETECTORS]
    assert find(mine + later, asked()) == later


def test_only_what_is_missing_is_trained(tmp_path, two_seeds, capsys):
    log = tmp_path / "log.jsonl"
    append_records(log, *(trained(detector) for detector in DETECTORS))

    def run(missing):
        assert [keys["hyperparameters"]["lr"] for keys in missing] == [0.2, 0.2]
        yield [trained("ENT", 0.2)]
        assert len(read_records(log)) == 3  # a batch is kept before the next is made
        yield [trained("ATT", 0.2)]

    assert trainings.complete(log, [training(run, 0.1, 0.2)]) is None
    assert trainings.complete(log, [training(never, 0.1, 0.2)]) is None
    assert capsys.readouterr().err == "cora is recorded already.\n"


def test_old_records_may_have_settings_that_nothing_reads(tmp_path, two_seeds):
    log = tmp_path / "log.jsonl"
    unread = {"hyperparameters": {"lr": 0.1, "threshold": 0.4}}  # of entropy
    append_records(log, *(trained(detector, **unread) for detector in DETECTORS))
    assert trainings.complete(log, [training(never, 0.1)]) is None
    read = unread | {"regularizers": ["entropy"]}
    other = tmp_path / "other.jsonl"
    append_records(other, *(trained(detector, **read) for detector in DETECTORS))
    assert trainings.complete(other, [training(lambda missing: [], 0.1)]) == 1


def test_runs_are_copied_from_records_with_these_seeds_or_more(tmp_path, two_seeds):
    log, other = tmp_path / "log.jsonl", tmp_path / "other.jsonl"
    append_records(other, *(trained(d, seeds=(0, 1, 2)) for d in DETECTORS))
    append_records(other, trained("ENT", 0.2))  # ATT is missing
    append_records(other, *(trained(d, 0.3, regularizers=[]) for d in DETECTORS))
    calls = []

    def run(missing):
        calls.extend(sorted({keys["hyperparameters"]["lr"] for keys in missing}))
        return []

    mine = {"removed": 0.5}
    work = training(run, 0.1, 0.2, 0.3)
    work = work._replace(wanted=[w | mine for w in work.wanted], keys=mine)
    trainings.complete(log, [work], other)
    assert calls == [0.1, 0.2, 0.3]
    assert not log.exists()
    work = work._replace(elsewhere={"regularizers": ["consistency"]})
    trainings.complete(log, [work], other)
    assert calls[3:] == [0.2, 0.3]
    taken = read_records(log)
    assert [(r["detector"], r["removed"]) for r in taken] == [
        ("ENT", 0.5),
        ("ATT", 0.5),
    ]
    assert taken[0]["metrics"]["auroc"] == [0.9, 0.8]


def test_exit_code_1_says_that_every_run_failed(tmp_path, two_seeds):
    failed = [{"run": run, "step": 3} for run in range(2)]

    def run(missing):
        yield [trained(keys["detector"], failed_runs=failed) for keys in missing]

    def nothing(missing):
        return []

    log = tmp_path / "log.jsonl"
    assert trainings.complete(log, [training(nothing, 0.1)]) == 1
    assert trainings.complete(log, [training(run, 0.1), training(nothing, 0.2)]) == 1
    assert trainings.complete(log, [training(run, 0.1), training(nothing, 0.2)]) is None
