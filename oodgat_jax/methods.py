"""A method is a backbone, regularisers and detectors; table METHODS; assemble()."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jraph

from oodgat_jax import losses, metrics
from oodgat_jax.detectors import DETECTORS
from oodgat_jax.models import BACKBONES
from oodgat_jax.train import Params, Run, Task
from oodgat_jax.types import Array, Hyper, Outputs, Predict, Rates, Split


class Method(NamedTuple):
    """Names from the tables, put together."""

    backbone: str
    terms: tuple[str, ...]  # regularisers
    validated_by: str  # detector of the validation score
    detectors: tuple[str, ...]  # reported


METHODS: dict[str, Method] = {
    "gat": Method("gat", (), "ENT", ("ENT",)),
    "gatv2": Method("gatv2", (), "ENT", ("ENT",)),
    "gcn": Method("gcn", (), "ENT", ("ENT",)),
    "mlp": Method("mlp", (), "ENT", ("ENT",)),
    "oodgat": Method(
        "oodgat",
        ("consistency", "entropy", "discrepancy"),
        "ATT",
        ("ENT", "ATT"),
    ),
    "oodgat-printed": Method(
        "oodgat",
        ("consistency_printed", "entropy_printed", "discrepancy_printed"),
        "ATT_printed",
        ("ENT", "ATT_printed"),
    ),
    "sage": Method("sage", (), "ENT", ("ENT",)),
}


def model(method: Method, num_classes: int, hidden: int = 32, heads: int = 4):
    """The method's backbone as a linen module."""
    return BACKBONES[method.backbone](num_classes, hidden, heads)


def assemble(method: Method, module: nn.Module) -> Task:
    """The pure functions that the trainer needs."""
    objective = losses.compose(method.terms)
    detector = DETECTORS[method.validated_by]

    def init(key: Array, graph: jraph.GraphsTuple) -> Params:
        return module.init({"params": key}, graph)

    def loss(
        params: Params, graph: jraph.GraphsTuple, run: Run, step: Array, key: Array
    ) -> Array:
        outputs = module.apply(params, graph, rates(run.hyper), rngs={"dropout": key})
        return objective(outputs, run.split, run.hyper, step)

    def validate(params: Params, graph: jraph.GraphsTuple, run: Run) -> Array:
        outputs = module.apply(params, graph)
        scores = detector(lambda _: outputs, graph, run.split)
        return metrics.validation_score(scores, outputs.logits, run.split)

    return Task(init, loss, validate)


def rates(hyper: Hyper) -> Rates:
    """Dropout rates from hyper-parameters."""
    return Rates(hyper["input_dropout"], hyper["dropout"], hyper["attention_dropout"])


def predictor(module: nn.Module, params: Params) -> Predict:
    """The trained model as a function of the graph, dropout off."""

    def predict(graph: jraph.GraphsTuple) -> Outputs:
        return module.apply(params, graph)

    return predict


def score_all(
    module: nn.Module,
    params: Params,
    graph: jraph.GraphsTuple,
    splits: Split,
    detectors: tuple[str, ...],
) -> tuple[Array, dict[str, Array]]:
    """Logits [S, N, C] and scores {detector: [S, N]} of all runs, stacked [S]."""

    def one(run):
        params, split = run
        predict = predictor(module, params)
        scores = {name: DETECTORS[name](predict, graph, split) for name in detectors}
        return predict(graph).logits, scores

    return jax.jit(lambda runs: jax.lax.map(one, runs))((params, splits))
