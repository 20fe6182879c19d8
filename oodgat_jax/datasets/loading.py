"""Find or fetch the raw files of a data set and turn them into a Dataset."""

import os
from collections.abc import Sequence
from pathlib import Path

from oodgat_jax.datasets import download
from oodgat_jax.datasets.assemble import assemble
from oodgat_jax.datasets.digits_graph import NEIGHBOURS, neighbour_graph
from oodgat_jax.datasets.records import Source
from oodgat_jax.datasets.table import DATASETS
from oodgat_jax.types import Dataset, InputError

DATA_DIR_VARIABLE = "OODGAT_DATA_DIR"


def load(name: str, data_dir: str | Path | None = None) -> Dataset:
    """The data set `name` (a key of DATASETS).

    `data_dir`, or else the environment variable OODGAT_DATA_DIR, names a folder that
    already holds the raw files (planetoid/, gnn-benchmark/, lastfm-asia/,
    facebook-pages/, wiki-cs/): then no network is touched. Otherwise the files are
    downloaded once and cached; OODGAT_CACHE_DIR moves the cache.
    """
    if name not in DATASETS:
        raise InputError(
            f"There is no data set {name!r}; choose one of {', '.join(DATASETS)}."
        )
    source = DATASETS[name]
    data_dir = data_dir or os.environ.get(DATA_DIR_VARIABLE)
    if not source.files:
        return assemble(source, source.read(Path(), source))
    if data_dir:
        return _load_given(source, Path(data_dir))
    return _load_cached(source, download.cache_dir())


def at_hand(name: str, data_dir: str | Path | None = None) -> bool:
    """Whether `load` would find all files of a data set without a download."""
    source = DATASETS[name]
    data_dir = data_dir or os.environ.get(DATA_DIR_VARIABLE)
    folder = Path(data_dir) if data_dir else download.cache_dir()
    return all((folder / source.folder / file).is_file() for file in source.files)


def digits(
    k: int = NEIGHBOURS,
    id_classes: Sequence[int] = DATASETS["digits"].id_classes,
    test_size: int = DATASETS["digits"].test_size,
) -> Dataset:
    """Digits with another number of neighbours, other ID classes or test size."""
    known = set(range(DATASETS["digits"].classes))
    if not id_classes or not set(id_classes) < known:
        raise InputError(
            f"The ID classes {list(id_classes)} of digits must be some, and not all, "
            f"of 0..9."
        )
    source = DATASETS["digits"]._replace(
        id_classes=tuple(sorted(set(id_classes))), test_size=test_size
    )
    return assemble(source, neighbour_graph(k))


def _load_given(source: Source, data_dir: Path) -> Dataset:
    """From a folder the user filled; its files are never changed."""
    folder = data_dir / source.folder
    for name, digest in source.files.items():
        if not (folder / name).is_file():
            raise InputError(
                f"{folder / name} does not exist; put the raw file of {source.name} "
                f"there, or give no data folder to download it."
            )
        download.check_digest(folder / name, digest)
    return assemble(source, source.read(folder, source))


def _load_cached(source: Source, cache: Path) -> Dataset:
    """From the cache, downloading what is missing there.

    Files without a known digest are only found wrong when they are read; they are
    then removed, so that the next call downloads them again.
    """
    folder = download.fetch(source, cache)
    try:
        return assemble(source, source.read(folder, source))
    except InputError as error:
        if not download.discard(source, cache):
            raise
        raise InputError(
            f"The download of {source.name} is wrong and was removed from the cache, "
            f"so try again later: {error}"
        ) from error
