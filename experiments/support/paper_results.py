"""Reads the paper's figures, to be shown beside ours."""

import functools
import json
import pathlib
from collections.abc import Iterable

from oodgat_jax.registry import check_name

FILE = pathlib.Path(__file__).parent.parent / "paper_results.json"
# The paper's FPR follows its authors' rule; it is shown beside either of ours.
_SAME = {"fpr95_paper": "fpr95"}


@functools.cache
def _read() -> dict:
    return json.loads(FILE.read_text(encoding="utf-8"))


def _tables() -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Returns table -> method -> data set -> metric -> percent."""
    return _read()["tables"]


def figure(table: str, method: str, dataset: str, metric: str) -> float | None:
    """Returns the paper's figure in percent; None if the paper gives none.

    Args:
      table: `end_to_end`, `post_hoc`, `ablation`, `gkde` or `edge_removal`.
      method: its row, such as `gcn`, `oodgat-att`, `ce+con`; for `edge_removal` the
        share of inter-edges removed: `0`, `0.5` or `1`.
      dataset: such as `amazon-photo`.
      metric: as named by `metrics.evaluate`.
    """
    check_name("table of the paper", table, _tables())
    row = _tables()[table].get(method, {}).get(dataset, {})
    return row.get(_SAME.get(metric, metric))


def row(method: str, detector: str) -> tuple[str, str]:
    """Returns (table, row) of the corresponding result in the paper.

    Post-hoc detectors are in the paper on GAT only; there need not be such a row.
    """
    if method in ("oodgat", "oodgat-printed"):
        return "end_to_end", f"oodgat-{detector.removesuffix('_printed').lower()}"
    if detector == "ENT":
        return "end_to_end", method
    return "post_hoc", detector.lower() if method == "gat" else ""


def in_order(names: Iterable[str], table: str = "end_to_end") -> list[str]:
    """Returns data sets, each once: the table's first, in the paper's order."""
    names = list(names)
    ordered = [name for name in datasets(table) if name in names]
    return list(dict.fromkeys([*ordered, *names]))


def datasets(table: str = "end_to_end") -> tuple[str, ...]:
    """Returns the data sets of a table, in the paper's order."""
    return tuple(dict.fromkeys(d for row in _tables()[table].values() for d in row))
