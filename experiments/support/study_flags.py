"""Flags of studies: which data sets to take, and where records are."""

import contextlib
import pathlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from absl import flags

from oodgat_jax import datasets
from oodgat_jax.cli import app, shared_flags

FLAGS = flags.FLAGS
RECORDS = pathlib.Path(__file__).parent.parent / "records"
# The flags of a binary that trains with `trainings.complete`, but for its data sets.
TRAINING = ("splits", "seeds", "set", "out", "data_dir", "kernel", "from_records")
# The flag of binaries that draw what others have recorded.
RECORDS_DIR: app.Definitions = {
    "records_dir": (
        flags.DEFINE_string,
        str(RECORDS),
        "Folder of the *.jsonl files.",
        {},
    ),
}


def one_dataset(paper: str) -> app.Definitions:
    """Returns the flag --dataset, with the paper's choice as its default."""
    return _flag("dataset", flags.DEFINE_string, paper)


def several_datasets(paper: Sequence[str]) -> app.Definitions:
    """Returns the flag --datasets, with the paper's choices as its default."""
    return _flag("datasets", flags.DEFINE_list, ", ".join(paper))


def _flag(name: str, kind: Callable, paper: str) -> app.Definitions:
    meaning = (
        f"Of {{DATASETS}}; by default {paper}, or digits if their files are missing."
    )
    return {name: (kind, None, meaning, {})}


def dataset_names(
    named: str | Sequence[str] | None, paper: Sequence[str], data_dir: str | None
) -> list[str]:
    """Returns the data sets to take.

    Those given by flag; else those of the paper whose files are present; else digits,
    with a notice.
    """
    if named:
        return [named] if isinstance(named, str) else list(named)
    found = [name for name in paper if datasets.is_available(name, data_dir)]
    if missing := [name for name in paper if name not in found]:
        instead = "" if found else " This is digits instead."
        print(
            f"The files of {', '.join(missing)}, the paper's choice, are missing (give "
            f"their folder with --data_dir, or name a data set to download it)."
            f"{instead}",
            file=sys.stderr,
        )
    return found or ["digits"]


@contextlib.contextmanager
def given(definitions: app.Definitions, values: Mapping[str, Any]) -> Iterator[None]:
    """Defines flags of another binary for a while, with some values given.

    Flags of the same name that are defined already are back afterwards.
    """
    before = {name: FLAGS[name] for name in definitions if name in FLAGS}
    for name in before:
        delattr(FLAGS, name)
    shared_flags.define(definitions)
    try:
        for name, value in values.items():
            setattr(FLAGS, name, value)
        yield
    finally:
        for name in definitions:
            delattr(FLAGS, name)
        for name, flag in before.items():
            FLAGS[name] = flag
