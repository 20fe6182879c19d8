"""Flags that several binaries have, defined once.

They are defined when a binary runs, so that binaries can be imported side by side and
plug-ins can register what the help then lists.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import flags

from oodgat_jax import graphs
from oodgat_jax.datasets import DATASETS, limits
from oodgat_jax.detectors import DETECTORS
from oodgat_jax.losses import REGULARIZERS
from oodgat_jax.methods import METHODS

_COUNT = {"lower_bound": 1}
# Flags by name: (kind of flag, default, what it means, further arguments). In what it
# means, the names of TABLES stand for their keys.
Definitions = Mapping[str, tuple[Callable, Any, str, dict]]
TABLES: Mapping[str, Mapping[str, Any]] = {
    "{DATASETS}": DATASETS,
    "{DETECTORS}": DETECTORS,
    "{METHODS}": METHODS,
    "{REGULARIZERS}": REGULARIZERS,
}
SHARED: Definitions = {
    "plugin": (
        flags.DEFINE_multi_string,
        [],
        "Python module to import first, which registers methods, detectors, data sets "
        "and so on; may be given several times.",
        {},
    ),
    "dataset": (
        flags.DEFINE_string,
        "digits",
        "What to learn: {DATASETS}. digits needs no download.",
        {},
    ),
    "datasets": (
        flags.DEFINE_list,
        ["digits"],
        "What to learn, one after the other, of {DATASETS}.",
        {},
    ),
    "data_dir": (
        flags.DEFINE_string,
        None,
        "Folder that already holds the raw files; without it, and without "
        "OODGAT_DATA_DIR, they are downloaded once.",
        {},
    ),
    limits.FLAG: (
        flags.DEFINE_integer,
        None,
        f"Megabytes that a compressed file may unpack to, at least; by default "
        f"{limits.VARIABLE}, else {limits.DEFAULT_MB}.",
        _COUNT,
    ),
    "method": (
        flags.DEFINE_string,
        "oodgat",
        "How to learn it: {METHODS}.",
        {},
    ),
    "splits": (
        flags.DEFINE_integer,
        3,
        "Number of splits, drawn with the seeds 123, 1, 2, 3, ...",
        _COUNT,
    ),
    "seeds": (
        flags.DEFINE_integer,
        3,
        "Number of model seeds 0, 1, 2, ...; every split is trained with each.",
        _COUNT,
    ),
    "out": (flags.DEFINE_string, "results", "Folder for what is written.", {}),
    "set": (
        flags.DEFINE_multi_string,
        [],
        "name=value for a hyper-parameter",
        {},
    ),
    "from_records": (
        flags.DEFINE_bool,
        False,
        "Only draw, from the records in --out, and train nothing.",
        {},
    ),
    "mesh": (
        flags.DEFINE_string,
        None,
        "Devices along two axes, as in runs:4,graph:2: runs are shared out over one, "
        "a graph too large for one device over the other. By default all devices of "
        "this process are on runs.",
        {},
    ),
    "coordinator": (
        flags.DEFINE_string,
        None,
        "host:port of the first of several processes; not needed under Slurm, GKE or "
        "on TPU pods.",
        {},
    ),
    "num_processes": (
        flags.DEFINE_integer,
        None,
        "How many processes there are.",
        _COUNT,
    ),
    "process_id": (
        flags.DEFINE_integer,
        None,
        "Which of them this is, from 0; only process 0 writes.",
        {"lower_bound": 0},
    ),
    "kernel": (
        flags.DEFINE_enum,
        "auto",
        "How products with the graph are computed; auto: sparse on the CPU, segment "
        "operations on GPU and TPU.",
        {"enum_values": graphs.KERNELS},
    ),
}


def define(definitions: Definitions, **options: Any) -> None:
    """Defines flags, with the tables as they are now; options go to absl."""
    for name, (make, default, meaning, more) in definitions.items():
        for mark, table in TABLES.items():
            meaning = meaning.replace(mark, ", ".join(table))
        make(name, default=default, help=meaning, **more, **options)


def chosen(shared: Sequence[str], own: Definitions | None = None) -> Definitions:
    """Returns the SHARED flags of these names, --plugin, and a binary's own.

    Whoever reads raw files can also be told how much of them to unpack.
    """
    more = (limits.FLAG, "plugin") if "data_dir" in shared else ("plugin",)
    names = dict.fromkeys((*shared, *more))
    return {name: SHARED[name] for name in names} | dict(own or {})


def defaulting(**values: Any) -> Definitions:
    """Returns the SHARED flags of these names with other defaults."""
    return {
        name: (SHARED[name][0], value, *SHARED[name][2:])
        for name, value in values.items()
    }
