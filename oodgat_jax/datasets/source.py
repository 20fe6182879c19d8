"""Records of the package: where a data set comes from, and what a reader gives."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import scipy.sparse

DATA_DIR_VARIABLE = "OODGAT_DATA_DIR"


class RawGraph(NamedTuple):
    """A graph as its files store it, checked but neither tidied nor scaled."""

    features: np.ndarray | scipy.sparse.csr_array  # [N, F]
    senders: np.ndarray  # [E] integers in 0..N-1
    receivers: np.ndarray  # [E] integers in 0..N-1
    labels: np.ndarray  # [N] integers, -1 where the source gives none


class Source(NamedTuple):
    """One row of the table of data sets: origin, meaning and expected counts.

    `files` maps each raw file's name to its SHA-256 digest, None where the digest
    is not known; such files are checked by structure and counts. With an `archive`
    the files are members of that zip, otherwise each is downloaded by itself.
    """

    name: str
    read: Callable[[Path, "Source"], RawGraph]
    nodes: int
    edges: int | None  # directed edges; as stored if `directed`; None: not checked
    features: int
    classes: int
    id_classes: tuple[int, ...]
    test_size: int
    row_normalize: bool
    directed: bool = False
    num_public_train: int = 0
    folder: str = ""  # below the data folder and below the cache
    base_url: str = ""
    files: Mapping[str, str | None] = MappingProxyType({})
    archive: str | None = None
