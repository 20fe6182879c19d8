"""GNNSafe's shifts between graphs: Twitch by region, ogbn-arxiv by year.

The files are read from a folder that the user has filled; nothing is downloaded. Known
nodes of the first graph are split 10 % / 10 % / 80 % as elsewhere in this protocol, and
all nodes of another region, or of later years, are OOD.
"""

from pathlib import Path

import numpy as np

from oodgat_jax.datasets import streaming
from oodgat_jax.datasets.joined import join
from oodgat_jax.datasets.loading import tidy_edges
from oodgat_jax.datasets.readers import ogb, twitch
from oodgat_jax.splits import shares
from oodgat_jax.splits.gnnsafe import draw_gnnsafe
from oodgat_jax.splits.shift import Shift
from oodgat_jax.types import Dataset, InputError

LEARNED, EXPOSED, TESTED = "DE", "EN", ("ES", "FR", "RU")  # of Twitch
LAST_KNOWN, LAST_EXPOSED = 2015, 2017  # of ogbn-arxiv
TEST_YEARS = (2018, 2019, 2020)


def under_twitch(folder: str | Path, tested: str) -> Shift:
    """Returns Twitch: DE is learned from, EN exposed, ES, FR or RU is OOD.

    Args:
      folder: holds DE.npz and so on, as PyTorch Geometric's Twitch has them.
      tested: the region to tell from DE.
    """
    if tested not in TESTED:
        raise InputError(f"There is no test region '{tested}': take {_or(TESTED)}.")
    known = _region(Path(folder), LEARNED)
    return Shift(
        learned=known,
        exposed=join(known, _region(Path(folder), EXPOSED), exposed=True),
        scored=join(known, _region(Path(folder), tested)),
        draw=draw_gnnsafe,
    )


def under_arxiv(folder: str | Path, tested: int) -> Shift:
    """Returns ogbn-arxiv: papers up to 2015 are known, 2016 and 2017 exposed, one later
    year is OOD.

    Each graph has the papers up to its year and the citations among them, one way as
    stored. Papers of years that are neither known nor asked for have no label.

    Args:
      folder: holds `raw` in OGB's layout, with node_year.csv.gz.
      tested: 2018, 2019 or 2020.
    """
    if tested not in TEST_YEARS:
        raise InputError(f"There is no test year {tested}: take {_or(TEST_YEARS)}.")
    opened = ogb.open_folder(folder, directed=True)
    whole = streaming.in_memory(opened)
    years = ogb.years(folder)
    known = _until(whole, years, 0, LAST_KNOWN)
    known = shares.leave_out(known, range(shares.num_all_classes(whole)))
    exposed = _until(whole, years, LAST_KNOWN, LAST_EXPOSED)
    return Shift(
        learned=known,
        exposed=join(known, exposed, exposed=True),
        scored=join(known, _until(whole, years, tested - 1, tested)),
        draw=draw_gnnsafe,
    )


def _region(folder: Path, region: str) -> Dataset:
    raw = twitch.read(folder / f"{region}.npz")
    ends = raw.senders, raw.receivers
    senders, receivers = tidy_edges(*ends, len(raw.labels), directed=False)
    return Dataset(
        name="twitch",
        features=_from_zero(raw.features),
        senders=senders,
        receivers=receivers,
        labels=raw.labels.astype(np.int32),
        id_classes=(0, 1),
        test_size=1,
    )


def _from_zero(features: np.ndarray) -> np.ndarray:
    """Returns features less their minimum, each row over its sum if that is above 1:
    PyTorch Geometric's NormalizeFeatures."""
    shifted = features - features.min()
    scale = np.maximum(shifted.sum(1, keepdims=True), 1.0)
    return (shifted / scale).astype(np.float32)


def _until(whole: Dataset, years: np.ndarray, after: int, last: int) -> Dataset:
    """Returns the papers up to a year; those not after the other have no label."""
    kept = years <= last
    place = np.cumsum(kept) - 1
    inside = kept[whole.senders] & kept[whole.receivers]
    return whole._replace(
        features=whole.features[kept],
        senders=place[whole.senders[inside]].astype(np.int32),
        receivers=place[whole.receivers[inside]].astype(np.int32),
        labels=np.where(years > after, whole.labels, -1)[kept].astype(np.int32),
    )


def _or(values: tuple) -> str:
    return " or ".join(map(str, values))
