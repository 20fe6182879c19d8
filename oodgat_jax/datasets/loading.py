"""Finds or downloads the raw files of a data set and turns them into a Dataset."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse

from oodgat_jax.datasets import download
from oodgat_jax.datasets.catalog import DATASETS
from oodgat_jax.datasets.readers.digits import NEIGHBORS, neighbor_graph
from oodgat_jax.datasets.source import DATA_DIR_VARIABLE, RawGraph, Source
from oodgat_jax.registry import check_function
from oodgat_jax.types import Dataset, Features, InputError

DIGITS = DATASETS["digits"]


def load(name: str, data_dir: str | Path | None = None) -> Dataset:
    """Loads the data set `name`, a key of DATASETS.

    `data_dir`, or else the environment variable OODGAT_DATA_DIR, names a folder that
    already holds the raw files (planetoid/, gnn-benchmark/, lastfm-asia/,
    facebook-pages/, wiki-cs/): then no network is touched. Otherwise the files are
    downloaded once and cached; OODGAT_CACHE_DIR moves the cache.
    """
    source = DATASETS[name]
    data_dir = data_dir or os.environ.get(DATA_DIR_VARIABLE)
    if not isinstance(source, Source):
        loaded = source(Path(data_dir) if data_dir else None)
        if not isinstance(loaded, Dataset):
            raise InputError(
                f"The data set '{name}' must load a Dataset, not "
                f"{type(loaded).__name__}: make one with from_arrays."
            )
        return loaded
    if not source.files:
        return assemble(source, source.read(Path(), source))
    if data_dir:
        return _load_given(source, Path(data_dir))
    return _load_cached(source, download.cache_dir())


def is_available(name: str, data_dir: str | Path | None = None) -> bool:
    """Returns whether `load` would find all files of a data set without a download."""
    source = DATASETS[name]
    if not isinstance(source, Source):
        return True
    data_dir = data_dir or os.environ.get(DATA_DIR_VARIABLE)
    folder = Path(data_dir) if data_dir else download.cache_dir()
    return all((folder / source.folder / file).is_file() for file in source.files)


def register_dataset(name: str, load: Callable[[Path | None], Dataset]) -> None:
    """Adds a data set to the table, so that flags and `run` can name it.

    Args:
      name: of the data set.
      load: gets the folder of raw files, None if none is given, and returns the data
        set, for example from `from_arrays`.
    """
    check_function("data set", name, load)
    DATASETS.register(name, load)


def digits(
    k: int = NEIGHBORS,
    id_classes: Sequence[int] = DIGITS.id_classes,
    test_size: int = DIGITS.test_size,
) -> Dataset:
    """Returns digits with another number of neighbors, ID classes or test size."""
    known = set(range(DIGITS.classes))
    if not id_classes or not set(id_classes) < known:
        raise InputError(
            f"The ID classes {list(id_classes)} of digits must be some, and not all, "
            f"of 0..9."
        )
    source = DIGITS._replace(
        id_classes=tuple(sorted(set(id_classes))), test_size=test_size
    )
    return assemble(source, neighbor_graph(k))


def _load_given(source: Source, data_dir: Path) -> Dataset:
    """Loads from a folder the user filled; its files are never changed."""
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
    """Loads from the cache, downloading what is missing there.

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


def tidy_edges(
    senders: np.ndarray, receivers: np.ndarray, num_nodes: int, directed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Drops self-loops and duplicates, symmetrizes unless `directed`.

    The result is sorted by (receiver, sender), so that equal graphs give equal
    arrays whatever the order in the file.
    """
    senders, receivers = senders.astype(np.int64), receivers.astype(np.int64)
    if not directed:
        senders, receivers = (
            np.concatenate([senders, receivers]),
            np.concatenate([receivers, senders]),
        )
    keep = senders != receivers
    keys = np.unique(receivers[keep] * num_nodes + senders[keep])
    return (keys % num_nodes).astype(np.int32), (keys // num_nodes).astype(np.int32)


def divide_by_row_sums(features: Features) -> Features:
    """Scales rows to sum to one; a row that sums to zero stays as it is."""
    sums = np.asarray(features.sum(axis=1), dtype=np.float64).reshape(-1)
    scale = (1.0 / np.where(sums == 0, 1.0, sums)).astype(np.float32)
    if scipy.sparse.issparse(features):
        per_entry = np.repeat(scale, np.diff(features.indptr))
        return scipy.sparse.csr_array(
            (features.data * per_entry, features.indices, features.indptr),
            shape=features.shape,
        )
    return features * scale[:, None]


def _check_counts(source: Source, raw: RawGraph, num_edges: int) -> None:
    """Refuses a graph that is not the published one."""
    known = raw.labels[raw.labels >= 0]
    found = {
        "nodes": raw.features.shape[0],
        "edges": num_edges,
        "features": raw.features.shape[1],
        "classes": np.unique(known).size,
    }
    for what, count in found.items():
        expected = getattr(source, what)
        if expected is not None and count != expected:
            raise InputError(
                f"The files of {source.name} hold {count} {what} where {expected} "
                f"were published; replace them with the published files."
            )


def assemble(source: Source, raw: RawGraph) -> Dataset:
    """Returns the Dataset of a source from what its reader found."""
    senders, receivers = tidy_edges(
        raw.senders, raw.receivers, raw.features.shape[0], source.directed
    )
    # A directed graph is published with its links as stored, loops included.
    _check_counts(source, raw, raw.senders.size if source.directed else senders.size)
    features = raw.features.astype(np.float32)
    if source.row_normalize:
        features = divide_by_row_sums(features)
    return Dataset(
        name=source.name,
        features=features,
        senders=senders,
        receivers=receivers,
        labels=raw.labels.astype(np.int32),
        id_classes=source.id_classes,
        test_size=source.test_size,
        num_public_train=source.num_public_train,
    )
