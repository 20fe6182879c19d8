"""A method is a backbone, regularisers and detectors; table METHODS; assemble()."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jraph

from oodgat_jax import gkde, losses, metrics
from oodgat_jax.detectors import DETECTORS, remember
from oodgat_jax.losses import REGULARIZERS
from oodgat_jax.models import BACKBONES, EvidentialGCN
from oodgat_jax.train import Params, Run, Task
from oodgat_jax.types import (
    Array,
    Detector,
    Hyper,
    Outputs,
    Predict,
    Rates,
    Regularizer,
    Split,
)

Loss = Callable[[Params, jraph.GraphsTuple, Run, Array, Array], Array]


class Method(NamedTuple):
    """Names from the tables, put together, and what no table has."""

    backbone: str
    terms: tuple[str, ...]  # regularisers
    validated_by: str  # detector of the validation score
    detectors: tuple[str, ...]  # reported
    loss: Callable[[nn.Module], Loss] | None = None  # instead of a sum of the terms
    prepare: Callable[[nn.Module, jraph.GraphsTuple, Run], Any] | None = None  # extras
    early_stop: bool = True


METHODS: dict[str, Method] = {
    "gat": Method("gat", (), "ENT", ("ENT",)),
    "gatv2": Method("gatv2", (), "ENT", ("ENT",)),
    "gcn": Method("gcn", (), "ENT", ("ENT",)),
    "gkde": Method(
        "evidential-gcn",
        (),
        "vacuity",
        tuple(gkde.MEASURES),
        loss=gkde.loss,
        prepare=gkde.prepare,
        early_stop=False,
    ),
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
    """The pure functions that the trainer needs.

    The same choices give the same Task object, for which `train` compiles once.
    """
    terms = tuple((name, REGULARIZERS[name]) for name in method.terms)
    loss = method.loss(module) if method.loss else _composed(terms, module)
    return _assemble(loss, DETECTORS[method.validated_by], module)


@functools.lru_cache(maxsize=64)
def _composed(terms: tuple[tuple[str, Regularizer], ...], module: nn.Module) -> Loss:
    objective = losses.compose(dict(terms))

    def loss(
        params: Params, graph: jraph.GraphsTuple, run: Run, step: Array, key: Array
    ) -> Array:
        outputs = module.apply(params, graph, rates(run.hyper), rngs={"dropout": key})
        return objective(outputs, run.split, run.hyper, step)

    return loss


@functools.lru_cache(maxsize=64)
def _assemble(loss: Loss, detector: Detector, module: nn.Module) -> Task:
    def init(key: Array, graph: jraph.GraphsTuple) -> Params:
        return module.init({"params": key}, graph)

    def validate(params: Params, graph: jraph.GraphsTuple, run: Run) -> Array:
        outputs = module.apply(params, graph)
        scores = detector(lambda _: outputs, graph, run.split)
        return metrics.validation_score(scores, outputs.logits, run.split)

    return Task(init, loss, validate)


def prepare(
    method: Method, module: nn.Module, graph: jraph.GraphsTuple, runs: Run
) -> Run:
    """The runs [S] with the extras that the method's loss needs, if it needs any."""
    if method.prepare is None:
        return runs
    return runs._replace(extra=method.prepare(module, graph, runs))


def rates(hyper: Hyper) -> Rates:
    """Dropout rates from hyper-parameters."""
    return Rates(hyper["input_dropout"], hyper["dropout"], hyper["attention_dropout"])


def predictor(module: nn.Module, params: Params) -> Predict:
    """The trained model as a function of the graph.

    Dropout is off, but for the evidential network, whose answer is a mean over it.
    """
    if isinstance(module, EvidentialGCN):
        return gkde.posterior(module, params)

    def predict(graph: jraph.GraphsTuple) -> Outputs:
        return module.apply(params, graph)

    return predict


def score_all(
    module: nn.Module,
    params: Params,
    graph: jraph.GraphsTuple,
    splits: Split,
    detectors: Sequence[str],
) -> tuple[Array, dict[str, Array]]:
    """Logits [S, N, C] and scores {detector: [S, N]} of all runs, stacked [S]."""

    chosen = tuple((name, DETECTORS[name]) for name in detectors)
    return _score_all(module, chosen, graph, params, splits)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _score_all(module, detectors, graph, params, splits):
    def one(run):
        params, split = run
        predict = remember(predictor(module, params), graph)
        scores = {name: score(predict, graph, split) for name, score in detectors}
        return predict(graph).logits, scores

    return jax.lax.map(one, (params, splits))
