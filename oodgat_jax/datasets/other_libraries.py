"""One graph of PyTorch Geometric, DGL or networkx -> features, edges and labels.

None of them is imported: their objects are known by what they have.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from oodgat_jax.datasets.arrays import as_array
from oodgat_jax.types import InputError


def unpack(graph: Any) -> tuple[Any, Any, Any]:
    """Returns features, edges and labels of a PyTorch Geometric or DGL graph."""
    if all(hasattr(graph, name) for name in ("x", "edge_index", "y")):
        for name in ("edge_weight", "edge_attr"):
            if getattr(graph, name, None) is not None:
                warnings.warn(
                    f"{name} is not used: edges have no weights here.", stacklevel=3
                )
        return graph.x, as_array(graph.edge_index), graph.y
    if hasattr(graph, "ndata") and callable(getattr(graph, "edges", None)):
        missing = [name for name in ("feat", "label") if name not in graph.ndata]
        if missing:
            raise InputError(
                f"The DGL graph has no node data '{missing[0]}': give features, edges "
                "and labels instead."
            )
        ends = [as_array(end) for end in graph.edges()]
        return graph.ndata["feat"], np.stack(ends, 1), graph.ndata["label"]
    if is_networkx(graph):
        return from_attributes(graph)
    raise InputError(
        "Give features, edges and labels, or one graph of PyTorch Geometric (x, "
        "edge_index, y), DGL (ndata feat and label) or networkx (node attributes)."
    )


def is_networkx(graph: Any) -> bool:
    """Returns whether it looks like a networkx graph."""
    return hasattr(graph, "nodes") and hasattr(graph, "adj")


def from_attributes(graph: Any) -> tuple[Any, Any, list]:
    """Returns features, edges and labels of a networkx graph's node attributes.

    The attribute `label` is the label, None where there is none; `x`, if there, holds
    all features of a node, else every other attribute is one of them.
    """
    nodes = list(graph.nodes)
    if set(nodes) == set(range(len(nodes))):
        nodes.sort()  # they are row numbers, as for `arrays.as_pairs`
    facts = [dict(graph.nodes[node]) for node in nodes]
    labels = [fact.pop("label", None) for fact in facts]
    if all("x" in fact for fact in facts):
        return np.array([fact["x"] for fact in facts]), graph, labels
    names = list(dict.fromkeys(name for fact in facts for name in fact))
    if not names:
        raise InputError(
            "The networkx graph has no node attributes to take for features: give "
            "features, edges and labels."
        )
    return AttributeTable(names, facts), graph, labels


class AttributeTable:
    """Attributes of nodes as a table with named columns, None where one lacks it."""

    def __init__(self, names: Sequence[str], facts: Sequence[dict]):
        self.columns = [str(name) for name in names]
        self.shape = (len(facts), len(self.columns))
        self._names, self._facts = dict(zip(self.columns, names, strict=True)), facts

    def __getitem__(self, name: str) -> list:
        return [fact.get(self._names[name]) for fact in self._facts]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        rows = [
            [fact.get(name) for name in self._names.values()] for fact in self._facts
        ]
        return np.array(rows, dtype)
