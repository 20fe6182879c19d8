"""Tells what made the records of a section: settings, seeds, time, versions."""

import collections
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.support import paper_results, provenance
from oodgat_jax.records import Record
from oodgat_jax.tables import Table

MANY_SEEDS = 4
# What tells trainings apart, beside their hyper-parameters.
KIND = (
    "dataset",
    "method",
    "variant",
    "regularizers",
    "removed_edges",
    "removed_inter_edges",
)
DIGEST = 10  # characters of a digest that are shown


def facts(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Returns (what, text) of what all records share, their versions and code."""
    shared = _shared(trainings(records))
    pairs = [("Records", str(len(records)))]
    if shared:
        pairs.append(("Same everywhere", _listed(shared)))
    for title, key in (("Versions", "versions"), ("Devices", "devices")):
        pairs += [(title, text) for text in _distinct(records, key)]
    pairs.append(("Code", provenance.code(records)))
    return pairs


def settings(records: Sequence[Record]) -> list[tuple[str, Table]]:
    """Returns captioned tables of the latest trainings and of detectors' settings."""
    found = [("Trainings behind the tables", _trainings_table(trainings(records)))]
    tuned = [record for record in records if record.get("detector_settings")]
    if tuned:
        found.append(("Settings of detectors", _detectors_table(tuned)))
    return found


def trainings(records: Sequence[Record]) -> list[Record]:
    """Returns the latest record of each data set, method and variant, by data set."""
    kinds = {_kind(record): record for record in records}
    names = paper_results.in_order(str(record.get("dataset", "")) for record in records)
    return sorted(
        kinds.values(), key=lambda record: names.index(str(record.get("dataset", "")))
    )


def _kind(record: Record) -> tuple[str, ...]:
    return tuple(str(record.get(key)) for key in KIND)


# Columns of the table of trainings; those that are empty everywhere are left out.
COLUMNS: dict[str, Callable[[Record], str]] = {
    "Data set": lambda record: str(record.get("dataset", "")),
    "Method": lambda record: str(record.get("method", "")),
    "Variant": lambda record: str(record.get("variant", "")),
    "Runs": lambda record: str(record.get("runs", len(record.get("split_seeds", ())))),
    "Split seeds": lambda record: seeds(record.get("split_seeds", ())),
    "Model seeds": lambda record: seeds(record.get("model_seeds", ())),
    "Steps": lambda record: _span(record.get("steps_run", [record.get("steps", "")])),
    "Seconds": lambda record: _seconds(record.get("seconds")),
    "Failed runs": lambda record: str(len(record.get("failed_runs", ())) or ""),
    "Digest of splits": lambda record: str(record.get("split_digest", ""))[:DIGEST],
}


def _trainings_table(found: Sequence[Record]) -> Table:
    shared = _shared(found)
    header = [*COLUMNS, "Other settings"]
    rows = []
    for record in found:
        own = {k: v for k, v in _hyper(record).items() if k not in shared}
        rows.append([*(text(record) for text in COLUMNS.values()), _listed(own)])
    filled = [place for place in range(len(header)) if any(row[place] for row in rows)]
    return Table(
        [header[place] for place in filled],
        [[row[place] for place in filled] for row in rows],
    )


def _detectors_table(records: Sequence[Record]) -> Table:
    keys = ("dataset", "method", "detector", "selection")
    latest = {
        tuple(str(record.get(key, "")) for key in keys): record for record in records
    }
    rows = [
        [*kind, _listed(record["detector_settings"])] for kind, record in latest.items()
    ]
    return Table(["Data set", "Method", "Detector", "Chosen by", "Settings"], rows)


def _hyper(record: Record) -> Mapping[str, Any]:
    return record.get("hyperparameters", {})


def _shared(records: Sequence[Record]) -> dict[str, Any]:
    """Returns the hyper-parameters that all records have with the same value."""
    first = _hyper(records[0]) if records else {}
    return {
        name: value
        for name, value in first.items()
        if all(name in _hyper(r) and _hyper(r)[name] == value for r in records)
    }


def _distinct(records: Sequence[Record], key: str) -> list[str]:
    """Returns each value under a key once, with its count of records if they differ."""
    texts = collections.Counter(
        _listed(record[key]) for record in records if key in record
    )
    if len(texts) == 1:
        return list(texts)
    return [f"{text} ({count} records)" for text, count in texts.items()]


def _listed(value: Any) -> str:
    """Writes a mapping as `name value, ...`, a list as its values."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {value_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    return value_text(value)


def value_text(value: Any) -> str:
    """Returns a setting as it would be typed."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def seeds(values: Sequence[int]) -> str:
    """Lists each seed once; many consecutive ones by the first and the last."""
    found = list(dict.fromkeys(values))
    if len(found) > MANY_SEEDS and found == list(range(found[0], found[-1] + 1)):
        return f"{found[0]} to {found[-1]}"
    return ", ".join(map(str, found))


def _span(values: Sequence[Any]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
