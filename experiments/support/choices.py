"""Which data sets an analysis takes if none is named: the paper's, if at hand."""

import sys
from collections.abc import Sequence

from absl import flags

from oodgat_jax import datasets
from oodgat_jax.cli import app
from oodgat_jax.datasets import DATASETS


def flag(name: str, kind, paper: Sequence[str]) -> app.Definitions:
    """The flag --dataset or --datasets with the paper's choice as its default."""
    meaning = (
        f"Of {', '.join(DATASETS)}; by default {', '.join(paper)}, or digits where "
        "their files are not at hand."
    )
    return {name: (kind, None, meaning, {})}


def one(paper: str) -> app.Definitions:
    """The flag of an analysis of one data set."""
    return flag("dataset", flags.DEFINE_string, [paper])


def several(paper: Sequence[str]) -> app.Definitions:
    """The flag of an analysis of several."""
    return flag("datasets", flags.DEFINE_list, paper)


def names(
    named: str | Sequence[str] | None, paper: Sequence[str], data_dir: str | None
) -> list[str]:
    """What was named, else what is at hand of the paper's, else digits; says so."""
    if named:
        return [named] if isinstance(named, str) else list(named)
    found = [name for name in paper if datasets.is_available(name, data_dir)]
    if missing := [name for name in paper if name not in found]:
        instead = "" if found else " This is digits instead."
        print(
            f"The paper's choice {', '.join(missing)} is not at hand (give its folder "
            f"with --data_dir, or name it to download it).{instead}",
            file=sys.stderr,
        )
    return found or ["digits"]
