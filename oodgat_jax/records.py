"""Records of experiments: one JSON line each, appended and never changed.

A record says what was run, with what, and what came out, one value per run:

  dataset, method, detector   names
  metrics                     {metric: [value per run]}, fractions in [0, 1]
  split_seeds, model_seeds    [seed per run]
  steps_run                   [optimization steps per run]
  hyperparameters             {name: value}
  split_digest                of the splits, so that two records can be compared
  versions                    see `versions`
  seconds                     wall time of all runs
  code                        digest of the library's sources, see `source_digest`;
                              records before 0.3 lack it

More keys are welcome. A metric that is NaN or infinite is stored as null, which is
strict JSON, and read back as NaN.
"""

import fcntl
import importlib.metadata
import json
import math
import os
import pathlib
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oodgat_jax import atomic_files, source_digest
from oodgat_jax.types import InputError

Record = dict[str, Any]

PER_RUN = ("split_seeds", "model_seeds", "steps_run")
KEYS = (
    "dataset",
    "method",
    "detector",
    "metrics",
    *PER_RUN,
    "hyperparameters",
    "split_digest",
    "versions",
    "seconds",
)
_APPENDING = os.O_RDWR | os.O_APPEND
_OPTIONAL_PER_RUN = ("best_step", "validation")
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "oodgat_jax")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def versions() -> dict[str, str]:
    """Returns versions of Python and of the packages that decide a result."""
    found = {package: _version(package) for package in PACKAGES}
    return {"python": platform.python_version(), **found}


def made_by() -> Record:
    """Returns what a record says of its making: versions, and digest of the code."""
    return {"versions": versions(), "code": source_digest.digest()}


def check(record: Mapping[str, Any]) -> None:
    """Raises InputError unless the record has all keys and one value per run."""
    missing = [key for key in KEYS if key not in record]
    if missing:
        raise InputError(
            f"The record lacks {', '.join(missing)}: add the missing keys."
        )
    if not isinstance(record["metrics"], Mapping) or not record["metrics"]:
        raise InputError("The record's metrics must be a dict with a list per metric.")
    columns = {key: record[key] for key in PER_RUN} | dict(record["metrics"])
    lengths = {name: _length(name, values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1 or 0 in lengths.values():
        raise InputError(f"The record needs one value per run, but has {lengths}.")


def _length(name: str, values: Any) -> int:
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise InputError(f"The record's {name} must be a list, one value per run.")
    return len(values)


def _plain(value: Any) -> Any:
    """Turns arrays and scalars of numpy and jax into lists and numbers, for `json`."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored in a record")


def _finite_or_null(values: Iterable[Any]) -> list[float | None]:
    numbers = [float(value) for value in values]
    return [number if math.isfinite(number) else None for number in numbers]


def _encode(record: Mapping[str, Any]) -> bytes:
    """Returns one line, with its newline."""
    metrics = record.get("metrics", {})
    metrics = {name: _finite_or_null(values) for name, values in metrics.items()}
    stored = dict(record) | ({"metrics": metrics} if metrics else {})
    try:
        line = json.dumps(stored, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"The record cannot be written as JSON: {error}.") from error
    return line.encode() + b"\n"


def _check_tail(descriptor: int, path: pathlib.Path) -> int:
    """Returns the size of the file, after checking that its last line is whole."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        number = path.read_bytes().count(b"\n") + 1
        raise InputError(
            f"{path}, line {number} has no end, as after a killed run: "
            "delete this line, then run again."
        )
    return size


def _write(descriptor: int, lines: bytes, size: int, path: pathlib.Path) -> None:
    """Writes and syncs once; what a full disk does not take is taken back."""
    try:
        written = os.write(descriptor, lines)
        if written == len(lines):
            os.fsync(descriptor)
            return
        reason = "no space is left"
    except OSError as error:
        reason = error.strerror or "unknown reason"
    os.ftruncate(descriptor, size)
    raise InputError(
        f"{path} could not take the new records ({reason}) and is as it was: make room "
        "or choose another --out, then run again."
    )


def append_records(path: str | os.PathLike, *records: Mapping[str, Any]) -> None:
    """Checks records and adds them to a file, all or none; see `append_lines`.

    Raises:
      InputError: a record is incomplete, or the file's last line is damaged.
    """
    for record in records:
        check(record)
    append_lines(path, *records)


def check_appendable(path: pathlib.Path) -> None:
    """Raises InputError unless records could be added to the file, or make it."""
    if not path.exists():
        atomic_files.check(path)
        return
    try:
        os.close(os.open(path, _APPENDING))
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}).") from error


def append_lines(path: str | os.PathLike, *records: Mapping[str, Any]) -> None:
    """Adds JSON lines to a file, all of them or none, whoever else is writing.

    They go out in one appending write under a lock on the file and are synced to the
    disk. The file and its folder are made if needed.
    """
    lines, path = b"".join(map(_encode, records)), pathlib.Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, _APPENDING | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}).") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _write(descriptor, lines, _check_tail(descriptor, path), path)
    finally:
        os.close(descriptor)


def _decode(line: str) -> Record:
    try:
        record = json.loads(line)
    except RecursionError as error:
        raise InputError("A record must not be nested so deep.") from error
    if not isinstance(record, dict):
        raise InputError("A record must be a JSON object.")
    if "terms" in record:  # what versions before 0.2 called it
        record["regularizers"] = record.pop("terms")
    return record


def _decode_checked(line: str) -> Record:
    record = _decode(line)
    check(record)
    _check_kinds(record)
    for name, values in record["metrics"].items():
        record["metrics"][name] = [math.nan if v is None else v for v in values]
    return record


def _check_kinds(record: Record) -> None:
    """Raises InputError unless every entry is of the kind that tables rely on."""
    for key in ("dataset", "method", "detector", "split_digest"):
        _need(isinstance(record[key], str), key, "text")
    _need(isinstance(record.get("code", ""), str), "code", "text")
    for key in ("hyperparameters", "versions"):
        _need(isinstance(record[key], dict), key, "a dict")
    _need(_is_number(record["seconds"]), "seconds", "a number")
    for key in PER_RUN:
        _need(all(_is_whole(v) for v in record[key]), key, "whole numbers")
    runs = len(record["split_seeds"])
    columns = record["metrics"] | {
        key: record[key] for key in _OPTIONAL_PER_RUN if key in record
    }
    for name, values in columns.items():
        right = isinstance(values, list) and len(values) == runs
        fits = right and all(v is None or _is_number(v) for v in values)
        _need(fits, name, "a number or null per run")
    failed = record.get("failed_runs", [])
    right = isinstance(failed, list) and all(
        isinstance(entry, dict) and entry.get("run") in range(runs) for entry in failed
    )
    _need(right, "failed_runs", "a list of runs and steps")


def _need(fits: bool, key: str, kind: str) -> None:
    if not fits:
        raise InputError(f"The record's {key} must be {kind}.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _lines(path: pathlib.Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError as error:
        raise InputError(
            f"There are no records at {path}: run the experiment that writes them."
        ) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def read_records(path: str | os.PathLike) -> list[Record]:
    """Reads all records of a file, oldest first.

    Raises:
      InputError: there is no such file, or a line is damaged (it names the line).
    """
    return _read(path, _decode_checked)


def read_lines(path: str | os.PathLike) -> list[Record]:
    """Reads lines of any keys, as `append_lines` takes them."""
    return _read(path, _decode)


def _read(path: str | os.PathLike, decode: Callable[[str], Record]) -> list[Record]:
    records = []
    for number, line in enumerate(_lines(pathlib.Path(path)), start=1):
        try:
            records.append(decode(line))
        except ValueError as error:  # also JSONDecodeError and InputError
            reason = str(error).rstrip(".")
            raise InputError(
                f"{path}, line {number} is damaged ({reason}): mend or delete it."
            ) from error
    return records


def count_runs(records: Iterable[Record]) -> str:
    """Returns the number of runs behind records, or its range."""
    counts = sorted({len(record["split_seeds"]) for record in records})
    return " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))


def latest(records: Iterable[Record], **match: Any) -> Record | None:
    """Returns the last record whose keys have the given values; None if none has."""
    found = None
    for record in records:
        if all(record.get(key) == value for key, value in match.items()):
            found = record
    return found


def kept_metrics(record: Record) -> dict[str, list[float]]:
    """Returns the metrics of a record without its failed runs."""
    failed = {entry["run"] for entry in record.get("failed_runs", ())}
    return {
        name: [value for run, value in enumerate(values) if run not in failed]
        for name, values in record["metrics"].items()
    }


def with_seeds(record: Record, model_seeds: Sequence[int]) -> Record:
    """Returns the record with its runs of these model seeds only, on all splits."""
    places = [i for i, seed in enumerate(record["model_seeds"]) if seed in model_seeds]

    def cut(values: Sequence[Any]) -> list[Any]:
        return [values[place] for place in places]

    metrics = {name: cut(values) for name, values in record["metrics"].items()}
    failed = [
        entry | {"run": places.index(entry["run"])}
        for entry in record.get("failed_runs", ())
        if entry["run"] in places
    ]
    share = len(places) / len(record["model_seeds"])
    return {
        **record,
        **{
            name: cut(record[name])
            for name in (*PER_RUN, *_OPTIONAL_PER_RUN)
            if name in record
        },
        "metrics": metrics,
        "failed_runs": failed,
        "seconds": round(share * record["seconds"], 3),
    }
