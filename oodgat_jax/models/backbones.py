"""Backbones: GraphsTuple in, Outputs out; table BACKBONES.

A backbone is a linen module with the field `num_classes`; `hidden`, `heads` and any
further field with a default are hyper-parameters that a recipe or `--set` can choose.
"""

import dataclasses
from typing import Any, NamedTuple

import flax.linen as nn
import jraph

from oodgat_jax import graphs
from oodgat_jax.models.batch_norm import GCNBatchNorm, GCNUnknown
from oodgat_jax.models.layers import (
    Bias,
    GATLayer,
    GATv2Layer,
    Linear,
    OODGATLayer,
    SAGELayer,
    attention_stack,
    drop_features,
    drop_hidden,
)
from oodgat_jax.registry import Registry
from oodgat_jax.types import Array, InputError, Outputs, Rates

RATES = ("input_dropout", "dropout", "attention_dropout")


class OODGAT(nn.Module):
    """The paper's model: two layers of OOD attention."""

    num_classes: int
    hidden: int = 32
    heads: int = 4

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Returns outputs with the OOD logits of both layers."""
        return attention_stack(self, OODGATLayer, graph, rates)


class GAT(nn.Module):
    """Two layers of graph attention, otherwise as OODGAT."""

    num_classes: int
    hidden: int = 32
    heads: int = 4

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Returns outputs without OOD logits."""
        return attention_stack(self, GATLayer, graph, rates)


class GATv2(nn.Module):
    """Two layers of GATv2 attention, otherwise as GAT."""

    num_classes: int
    hidden: int = 32
    heads: int = 4

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Returns outputs without OOD logits."""
        return attention_stack(self, GATv2Layer, graph, rates)


class GCN(nn.Module):
    """Two graph convolutions D^-1/2 (A + I) D^-1/2 X W with ReLU between."""

    num_classes: int
    hidden: int = 32

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Returns outputs without OOD logits; only the hidden layer is dropped."""
        weights = graphs.symmetric_weights(graph)
        x = graphs.aggregate(graph, weights, Linear(self.hidden)(graph.nodes))
        hidden = nn.relu(Bias()(x))
        x = Linear(self.num_classes)(drop_hidden(self, graph, hidden, rates))
        return Outputs(Bias()(graphs.aggregate(graph, weights, x)), hidden, ())


class SAGE(nn.Module):
    """Two GraphSAGE layers with ReLU between."""

    num_classes: int
    hidden: int = 32

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Returns outputs without OOD logits; only the hidden layer is dropped."""
        hidden = nn.relu(SAGELayer(self.hidden)(graph, graph.nodes))
        x = drop_hidden(self, graph, hidden, rates)
        return Outputs(SAGELayer(self.num_classes)(graph, x), hidden, ())


class MLP(nn.Module):
    """Two linear layers without bias: what the features alone can say."""

    num_classes: int
    hidden: int = 32

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, rates: Rates | None = None) -> Outputs:
        """Returns outputs without OOD logits; edges are ignored."""
        x = drop_features(self, graph, rates)
        hidden = nn.relu(Linear(self.hidden)(x))
        x = drop_hidden(self, graph, hidden, rates)
        return Outputs(Linear(self.num_classes)(x), hidden, ())


def apply(
    module: nn.Module,
    params: Any,
    graph: jraph.GraphsTuple,
    rates: Rates | None = None,
    key: Array | None = None,
) -> Outputs:
    """Applies a backbone; with rates and a key as in training, else without dropout."""
    rngs = None if key is None else {"dropout": key}
    outputs: Any = module.apply(params, graph, rates, rngs=rngs)
    return outputs


class Backbone(NamedTuple):
    """An entry of BACKBONES: a module class and the dropout rates it uses."""

    module: type[nn.Module]
    rates: tuple[str, ...] = RATES

    def options(self) -> dict[str, Any]:
        """Returns the settable fields of the module with their defaults."""
        fields = dataclasses.fields(self.module)
        return {
            field.name: field.default
            for field in fields
            if field.init and field.name not in ("num_classes", "parent", "name")
        }

    def build(self, num_classes: int, settings: dict[str, Any]) -> nn.Module:
        """Builds the module with those settings that are fields of it."""
        chosen = {k: settings[k] for k in self.options() if k in settings}
        return self.module(num_classes=num_classes, **chosen)


BACKBONES: Registry[Backbone] = Registry(
    "backbone",
    {
        "gat": Backbone(GAT),
        "gatv2": Backbone(GATv2),
        "gcn": Backbone(GCN, rates=("dropout",)),
        "gcn-bn": Backbone(GCNBatchNorm, rates=("dropout",)),
        "gcn-unknown": Backbone(GCNUnknown, rates=("dropout",)),
        "mlp": Backbone(MLP, rates=("input_dropout", "dropout")),
        "oodgat": Backbone(OODGAT),
        "sage": Backbone(SAGE, rates=("dropout",)),
    },
)


def _is_module_class(given: Any) -> bool:
    if not isinstance(given, type) or not issubclass(given, nn.Module):
        return False
    return "num_classes" in {field.name for field in dataclasses.fields(given)}


def register_backbone(
    name: str, module: type[nn.Module], *, rates: tuple[str, ...] = RATES
) -> None:
    """Adds a backbone to the table, so that methods can name it.

    Args:
      name: as in `Method(backbone=name)`.
      module: a linen module class, `module(num_classes=C)(graph, rates) -> Outputs`.
        Its fields beyond `num_classes` need defaults and become hyper-parameters.
      rates: the dropout rates that it uses, of RATES; others are no settings.
    """
    if not _is_module_class(module):
        raise InputError(
            f"Backbone '{name}' must be a class of linen modules with a field "
            "num_classes."
        )
    entry = Backbone(module, tuple(rates))
    open_fields = [k for k, v in entry.options().items() if v is dataclasses.MISSING]
    if open_fields:
        raise InputError(
            f"Backbone '{name}' has a field without a default, '{open_fields[0]}': "
            "give it one, which --set can change."
        )
    BACKBONES.register(name, entry)
