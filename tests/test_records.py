"""Records: what is written is what is read, whoever else writes."""

import json
import math
from collections import Counter

import jax.numpy as jnp
import numpy as np
import pytest
from support import forking
from support.example_records import record

from oodgat_jax.records import (
    KEYS,
    PACKAGES,
    append_lines,
    append_records,
    check_appendable,
    latest,
    read_records,
    versions,
)
from oodgat_jax.types import InputError


def test_records_come_back_in_order(tmp_path):
    path = tmp_path / "deep" / "folder" / "a.jsonl"
    written = [record(note=i) for i in range(3)]
    for entry in written:
        append_records(path, entry)
    assert read_records(path) == written
    assert path.read_bytes().endswith(b"}\n")


def test_arrays_are_stored_as_lists(tmp_path):
    path = tmp_path / "a.jsonl"
    entry = record(metrics={"auroc": jnp.array([0.5, 0.25])})
    append_records(
        path, entry | {"steps_run": np.array([1, 2]), "seconds": np.float32(2)}
    )
    (got,) = read_records(path)
    assert got["metrics"] == {"auroc": [0.5, 0.25]}
    assert (got["steps_run"], got["seconds"]) == ([1, 2], 2.0)


def test_metrics_that_are_not_finite_are_null_in_the_file(tmp_path):
    path = tmp_path / "a.jsonl"
    append_records(path, record(metrics={"auroc": [math.nan, 0.5]}))
    assert json.loads(path.read_text())["metrics"]["auroc"] == [None, 0.5]
    values = read_records(path)[0]["metrics"]["auroc"]
    assert math.isnan(values[0])
    assert values[1] == 0.5


@pytest.mark.parametrize("key", KEYS)
def test_a_record_without_a_key_is_refused(tmp_path, key):
    entry = record()
    del entry[key]
    with pytest.raises(InputError, match=key):
        append_records(tmp_path / "a.jsonl", entry)
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"split_seeds": [1]},
        {"steps_run": [1, 2, 3]},
        {"model_seeds": 7},
        {"metrics": {}},
        {"metrics": {"auroc": [0.5]}},
        {"metrics": {"auroc": 0.5}},
        {"hyperparameters": {"lr": math.inf}},
        {"hyperparameters": {"lr": {1}}},
    ],
    ids=str,
)
def test_a_malformed_record_is_refused(tmp_path, wrong):
    with pytest.raises(InputError):
        append_records(tmp_path / "a.jsonl", record(**wrong))
    assert not (tmp_path / "a.jsonl").exists()


def test_a_damaged_tail_is_named_and_left_alone(tmp_path):
    path = tmp_path / "a.jsonl"
    append_records(path, record())
    damaged = path.read_bytes() + b'{"dataset": "co'
    path.write_bytes(damaged)
    for act in (lambda: append_records(path, record()), lambda: read_records(path)):
        with pytest.raises(InputError, match=r"a\.jsonl, line 2"):
            act()
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("line", ["", "{", "[]", "null", '{"dataset": "cora"}', "\xff"])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "a.jsonl"
    append_records(path, record())
    good = path.read_text()
    path.write_bytes((good + line + "\n" + good).encode("latin-1"))
    with pytest.raises(InputError, match=r"a\.jsonl, line 2"):
        read_records(path)


def test_a_file_that_cannot_be_opened_is_one_sentence(tmp_path):
    (tmp_path / "results.jsonl").symlink_to(tmp_path / "lost" / "results.jsonl")
    with pytest.raises(InputError, match=r"results\.jsonl cannot be written"):
        append_lines(tmp_path / "results.jsonl", {"a": 1})
    with pytest.raises(InputError, match=r"results\.jsonl cannot be written"):
        check_appendable(tmp_path / "results.jsonl")
    check_appendable(tmp_path / "new.jsonl")
    assert not (tmp_path / "new.jsonl").exists()


def test_no_file_and_an_empty_file(tmp_path):
    with pytest.raises(InputError, match=r"no records at .*a\.jsonl"):
        read_records(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").touch()
    assert read_records(tmp_path / "a.jsonl") == []


def test_latest_is_the_last_that_matches():
    entries = [record(note=0), record(note=1), record(dataset="wiki-cs", note=2)]
    assert latest(entries, dataset="cora", detector="ATT")["note"] == 1
    assert latest(entries)["note"] == 2
    assert latest(entries, dataset="cora", detector="ENT") is None
    assert latest(entries, unheard="of") is None


def test_versions_name_what_decides_a_result():
    found = versions()
    assert list(found) == ["python", *PACKAGES]
    assert found["numpy"] == np.__version__


WRITER = """
import json, pathlib, sys, time
from oodgat_jax import records
path, writer, whole = sys.argv[1:]
print("ready", flush=True)
while not pathlib.Path(whole).exists():
    time.sleep(0.01)
entry = json.loads(pathlib.Path(whole).read_text())
for number in range(100):
    each = [entry | {"writer": writer, "number": 2 * number + k} for k in range(2)]
    records.append_records(path, *each)
"""


def test_eight_writers_lose_and_mix_nothing(tmp_path):
    """Each 100 appends of two records."""
    path, whole, draft = (tmp_path / name for name in ("a.jsonl", "whole", "draft"))
    draft.write_text(json.dumps(record(filler="x" * 1_000)))
    writers = [forking.start("-c", WRITER, path, name, whole) for name in range(8)]
    assert [process.stdout.readline() for process in writers] == ["ready\n"] * 8
    draft.rename(whole)  # all are past their imports, so that they do compete
    ended = [process.communicate() for process in writers]
    assert [process.returncode for process in writers] == [0] * 8, ended
    entries = read_records(path)
    found = Counter((entry["writer"], entry["number"]) for entry in entries)
    assert found == Counter((str(w), n) for w in range(8) for n in range(200))
    # Records of one append stand together.
    pairs = zip(entries[::2], entries[1::2], strict=True)
    assert all(
        (a["writer"], a["number"] + 1) == (b["writer"], b["number"]) for a, b in pairs
    )


FULL = """
import json, resource, signal, sys
from oodgat_jax import records
from oodgat_jax.types import InputError
path = sys.argv[1]
entry = json.loads(sys.argv[3])
records.append_records(path, entry)
size = len(open(path, "rb").read())
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]),) * 2)
try:
    records.append_records(path, entry, entry)
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize("room", [0, 100])
def test_a_full_disk_leaves_the_records_as_they_were(tmp_path, room):
    path = tmp_path / "a.jsonl"
    done = forking.run("-c", FULL, path, room, json.dumps(record()))
    assert "could not take the new records" in done.stdout, done.stderr
    assert len(read_records(path)) == 1
