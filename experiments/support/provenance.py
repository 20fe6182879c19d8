"""Says what made the records of a study: command, code, versions, machine."""

from collections.abc import Iterable, Sequence

from experiments.support.study import Study
from oodgat_jax.records import Record

SHOWN = ("oodgat_jax", "jax", "flax", "python")


def markdown(study: Study, records: Sequence[Record]) -> str:
    """Returns the command of a study and, below it, what its records say."""
    lines = [f"```\n{study.command}\n```", ""]
    facts = [_count(study, records), code(records)]
    facts += [*_versions(records), *_machine(records)]
    return "\n".join([*lines, f"*{'; '.join(facts)}.*", ""])


def _count(study: Study, records: Sequence[Record]) -> str:
    noun = "record" if len(records) == 1 else "records"
    text = f"From {len(records)} {noun} in `experiments/records/{study.file}`"
    hours = sum(_seconds(records)) / 3600
    if hours >= 1:
        return f"{text}, {hours:.0f} h of training"
    return f"{text}, {60 * hours:.0f} min of training" if hours else text


def code(records: Sequence[Record]) -> str:
    """Returns which code made the latest record, and how many are not of it.

    What the code is now plays no part: a page changes with its records alone.
    """
    made = [str(record.get("code", "")) for record in records]
    newest = next((each for each in reversed(made) if each), "")
    if not newest:
        return "of unknown code"
    others = {
        "other": sum(each not in ("", newest) for each in made),
        "unknown": made.count(""),
    }
    told = [f"{count} of {kind} code" for kind, count in others.items() if count]
    return ", ".join([f"code {newest}", *told])


def _seconds(records: Iterable[Record]) -> list[float]:
    """Returns the seconds of each training, which its detectors' records share."""
    found = {}
    for number, record in enumerate(records):
        names = ("dataset", "method", "hyperparameters", "seconds", "split_digest")
        key = repr([record.get(name, number) for name in names])
        found[key] = record.get("seconds", 0.0)
    return list(found.values())


def _versions(records: Iterable[Record]) -> list[str]:
    """Returns the versions of each package, several where records differ."""
    found: dict[str, dict[str, None]] = {name: {} for name in SHOWN}
    for record in records:
        for name in SHOWN:
            if name in record.get("versions", {}):
                found[name][record["versions"][name]] = None
    return [f"{name} {' and '.join(seen)}" for name, seen in found.items() if seen]


def _machine(records: Iterable[Record]) -> list[str]:
    """Returns the processors where records name them, else the kinds of devices."""
    processors: dict[str, None] = {}
    kinds: dict[str, None] = {}
    for record in records:
        machine, devices = record.get("machine"), record.get("devices")
        if machine:
            processors[f"{machine['processor']}, {machine['cores']} cores"] = None
        elif isinstance(devices, list):
            kinds |= {f"{devices.count(kind)} x {kind}": None for kind in devices}
    return [" and ".join(processors or kinds)] if processors or kinds else []
