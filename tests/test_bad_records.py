"""Records that somebody has changed by hand: one sentence with the line."""

import json
import pathlib

import pytest
from support.example_records import record

from experiments import report
from oodgat_jax.records import append_records, read_lines, read_records
from oodgat_jax.types import InputError

METRICS = record()["metrics"]
CHANGES = {
    "text metrics": {"metrics": METRICS | {"auroc": ["high", "low"]}},
    "a metric of lists": {"metrics": METRICS | {"auroc": [[1], [2]]}},
    "a method of nothing": {"method": None},
    "a data set of a list": {"dataset": ["cora"]},
    "settings of text": {"hyperparameters": "lr=1"},
    "versions of a list": {"versions": []},
    "seconds of text": {"seconds": "long"},
    "seeds of text": {"split_seeds": ["a", "b"]},
    "a failed run that is not there": {"failed_runs": [{"run": 7}]},
    "failed runs of text": {"failed_runs": "all"},
    "validation of another length": {"validation": [1.0]},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_record_is_one_sentence(tmp_path, name):
    path = tmp_path / "a.jsonl"
    append_records(path, record())
    with path.open("a") as file:
        file.write(json.dumps(record() | CHANGES[name]) + "\n")
    with pytest.raises(InputError, match="line 2 is damaged") as raised:
        read_records(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("read", [read_records, read_lines])
def test_endless_nesting_is_one_sentence(tmp_path, read):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a":' * 100_000 + "\n")
    with pytest.raises(InputError, match=r"line 1 is damaged .*nested"):
        read(path)


def test_a_folder_is_not_a_file_of_records(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_records(tmp_path)


def test_lines_of_the_wrong_kind_are_one_sentence_in_the_report(tmp_path):
    """Lines of any keys, as of benchmark, are not checked when they are read."""
    whole = pathlib.Path(report.__file__).parent / "records" / "benchmark.jsonl"
    lines = [json.loads(line) for line in whole.read_text().splitlines()]
    for line in lines:
        line |= {k: "text" for k, v in line.items() if isinstance(v, float)}
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / "benchmark.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"benchmark\.jsonl cannot be shown .*kind"):
        report.draw(tmp_path)
