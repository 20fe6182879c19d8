"""Reader of Wiki-CS's data.json."""

import itertools
import json
from pathlib import Path

import numpy as np

from oodgat_jax.datasets.readers import checks
from oodgat_jax.datasets.source import RawGraph, Source


def _links(lists: list, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns source and target of every link: list i holds what page i links to."""
    targets = list(itertools.chain.from_iterable(lists))
    receivers = checks.integers(targets, path, "links")
    senders = np.repeat(np.arange(len(lists)), [len(links) for links in lists])
    checks.within(receivers, 0, len(lists) - 1, path, "node")
    return senders, receivers


def read(folder: Path, source: Source) -> RawGraph:
    """Reads dense word vectors, labels and directed links, as stored.

    The published masks are not read: the paper draws its own splits.
    """
    path = folder / "data.json"
    with checks.reading(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise checks.bad(path, "is not a json object")
        features = np.array(content["features"], dtype=np.float32)
        checks.finite(features, path)
        labels = checks.integers(content["labels"], path, "labels")
        checks.within(labels, 0, source.classes - 1, path, "label")
        lengths = {len(features), len(labels), len(content["links"])}
        if features.ndim != 2 or len(lengths) != 1:
            raise checks.bad(path, "holds features, labels and links that disagree")
        return RawGraph(features, *_links(content["links"], path), labels)
