"""A method is a backbone, regularizers and detectors; table METHODS; assemble()."""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jraph
import numpy as np
import optax

from oodgat_jax import graphs, losses, models
from oodgat_jax.detectors import DETECTORS, NEEDS, named
from oodgat_jax.losses import (
    REGULARIZERS,
    Term,
    WeightSchedule,
    constant,
    paper_decay,
)
from oodgat_jax.methods.choosing import (
    Predictor,
    by_validation_loss,
    paper_validation,
)
from oodgat_jax.methods.mc_dropout import keep_dropout
from oodgat_jax.methods.plus import (
    PLUS,
    adam_sparing_attention,
    keeping_fit,
    steadied,
)
from oodgat_jax.models import BACKBONES
from oodgat_jax.registry import Registry, check_names
from oodgat_jax.training import Aux, Params, Run, Task, adam
from oodgat_jax.types import Array, Detector, Hyper, InputError, Outputs, Rates, Split


class Method(NamedTuple):
    """Names from the tables, put together, and what no table has.

    `customize` gets the assembled Task and the module and returns the Task to train:
    with it a method can have a teacher, a loss or a start of its own. `validation` gets
    what the returned `predict` is, and the detector, and makes the score that chooses
    the step, unless `validate` is replaced too.
    """

    backbone: str
    regularizers: tuple[str, ...] = ()
    validated_by: str = "ENT"  # detector of the validation score
    detectors: tuple[str, ...] = ("ENT",)  # reported
    optimizer: Callable[[Hyper], optax.GradientTransformation] = adam
    schedule: WeightSchedule = paper_decay  # of the regularizers' weights
    # Further hyper-parameters, or other defaults.
    hyper: Mapping[str, float | int] = MappingProxyType({})
    prepare: Callable[[Any, jraph.GraphsTuple, Run], Any] | None = None  # extras
    customize: Callable[[Task, Any], Task] | None = None
    validation: Callable[[Predictor, Detector], Callable[..., Any]] = paper_validation
    early_stop: bool = True
    keeps: tuple[str, ...] = ()  # detectors whose fit is part of a trained model


_PLAIN = MappingProxyType({"weight_decay": 0.0})
# GNNSafe's settings: every one of 200 steps is checked, and none is the last before.
_FIELD: Mapping[str, float | int] = MappingProxyType(
    {
        "weight_decay": 0.01,
        "dropout": 0.0,
        "max_steps": 200,
        "check_every": 1,
        "patience": 200,
    }
)
_DROPPED = MappingProxyType({**_FIELD, "dropout": 0.5})  # NODESAFE's


def _of_the_field(
    backbone: str,
    regularizers: tuple[str, ...],
    detectors: tuple[str, ...],
    hyper: Mapping[str, float | int] = _FIELD,
) -> Method:
    """Returns a method as GNNSafe's protocol trains it: constant weights, the step
    chosen by the loss on known validation nodes."""
    return Method(
        backbone,
        regularizers,
        detectors[0],
        detectors,
        schedule=constant,
        hyper=hyper,
        customize=by_validation_loss,
    )


METHODS: Registry[Method] = Registry(
    "method",
    {
        "energy-ft": _of_the_field("gcn-bn", ("energy_margin",), ("energy",)),
        "gat": Method("gat"),
        "gatv2": Method("gatv2"),
        "gcn": Method("gcn"),
        "gcn-bn": _of_the_field("gcn-bn", (), ("MSP", "energy")),
        "gcn-unknown": _of_the_field("gcn-unknown", ("unknown_class",), ("unknown",)),
        "gcn-unknown-pseudo": _of_the_field(
            "gcn-unknown", ("unknown_class_pseudo",), ("unknown",)
        ),
        "gnnsafe": _of_the_field("gcn-bn", (), ("GNNSafe_coded",)),
        "gnnsafe++": _of_the_field(
            "gcn-bn", ("energy_margin_propagated",), ("GNNSafe_coded",)
        ),
        "mc-dropout": _of_the_field(
            "gcn-bn", (), ("total", "aleatoric", "epistemic", "energy"), _DROPPED
        )._replace(customize=keep_dropout),
        "mlp": Method("mlp"),
        "nodesafe": _of_the_field(
            "gcn-bn", ("bounded_energy",), ("GNNSafe_coded",), _DROPPED
        ),
        "nodesafe++": _of_the_field(
            "gcn-bn",
            ("energy_margin_propagated", "bounded_energy_exposed"),
            ("GNNSafe_coded",),
            _DROPPED,
        ),
        "oe": _of_the_field("gcn-bn", ("outlier_exposure",), ("maxlogit",)),
        "oodgat": Method(
            "oodgat",
            ("consistency", "entropy", "discrepancy"),
            "ATT",
            ("ENT", "ATT"),
            hyper=_PLAIN,
        ),
        "oodgat-plus": Method(
            "oodgat",
            ("consistency_led", "entropy", "discrepancy", "anchor"),
            "FUSED+student",
            ("ENT", "ATT", "FUSED", "FUSED+prop", "FUSED+fit", "FUSED+student"),
            optimizer=adam_sparing_attention,
            hyper=PLUS,
            customize=steadied,
            validation=keeping_fit,
            keeps=("FUSED+fit", "FUSED+student"),
        ),
        "oodgat-printed": Method(
            "oodgat",
            ("consistency_printed", "entropy_printed", "discrepancy_printed"),
            "ATT_printed",
            ("ENT", "ATT_printed"),
            hyper=_PLAIN,
        ),
        "sage": Method("sage"),
    },
)


def register_method(name: str, method: Method) -> None:
    """Adds a method to the table, so that flags and `run` can name it.

    Raises:
      InputError: it names a backbone, regularizer or detector that is not registered.
    """
    check(method)
    from oodgat_jax.methods import recipes

    recipes.recipe(None, method)  # its settings are checked there
    METHODS.register(name, method)


def check(method: Method) -> None:
    """Raises InputError unless everything that a method names is in the tables."""
    if not isinstance(method, Method):
        raise InputError(f"A method must be a Method, not {type(method).__name__}.")
    check_names("backbone", [method.backbone], BACKBONES)
    check_names("regularizer", method.regularizers, REGULARIZERS)
    check_names("detector", [method.validated_by], DETECTORS)
    check_names("detector", method.detectors, DETECTORS)
    if not method.detectors:
        raise InputError("A method needs at least one detector to report.")
    optional = ("prepare", "customize")
    for name in ("optimizer", "schedule", "validation", *optional):
        given = getattr(method, name)
        if not callable(given) and not (given is None and name in optional):
            raise InputError(f"A method's {name} must be a function, not {given!r}.")
    if not isinstance(method.hyper, Mapping):
        raise InputError(f"A method's hyper must be a dict, not {method.hyper!r}.")


def check_needs(method: Method, module: nn.Module, num_features: int) -> None:
    """Raises InputError if a regularizer or detector reads what the backbone lacks."""
    needs = {name: REGULARIZERS[name].needs for name in method.regularizers}
    names = (*method.detectors, method.validated_by)
    needs |= {name: NEEDS.get(name, ()) for name in names}
    _check_outputs(method.backbone, module, num_features)
    wanting = [name for name, needed in needs.items() if "attention" in needed]
    if wanting and "attention" not in provides(module, num_features):
        raise InputError(
            f"{', '.join(wanting)} needs OOD attention, which the backbone "
            f"'{method.backbone}' does not have."
        )


def check_exposure(method: Method, split: Split) -> None:
    """Raises InputError if a regularizer needs exposed nodes and a split has none.

    Args:
      method: what is to be trained.
      split: of one run [N], or of several [S, N].
    """
    wanting = [n for n in method.regularizers if "exposure" in REGULARIZERS[n].needs]
    if wanting and not np.asarray(split.exposure).any(axis=-1).all():
        raise InputError(
            f"{', '.join(wanting)} learns from nodes that are known to be OOD, but the "
            "split exposes none: give some as `exposure`, or take a protocol that does."
        )


def provides(module: nn.Module, num_features: int) -> set[str]:
    """Returns what a module's outputs hold of the optional fields of Outputs."""
    outputs = _shapes(module, num_features)
    return {name for name in ("attention", "passes") if getattr(outputs, name)}


def _shapes(module: nn.Module, num_features: int) -> Any:
    """Returns the shapes of a module's outputs for a graph of two nodes."""
    ids = np.arange(2)
    graph = graphs.from_edges(np.zeros((2, num_features), np.float32), ids, ids)
    outputs, _ = jax.eval_shape(
        lambda: module.init_with_output({"params": jax.random.key(0)}, graph)
    )
    return outputs


def _check_outputs(name: str, module: Any, num_features: int) -> None:
    outputs = _shapes(module, num_features)
    if not isinstance(outputs, Outputs):
        raise InputError(
            f"The backbone '{name}' must return Outputs, not {type(outputs).__name__}."
        )
    if outputs.logits.shape != (2, module.num_classes):
        raise InputError(
            f"The backbone '{name}' gives logits of shape {outputs.logits.shape} for "
            f"two nodes, but they must be [N, {module.num_classes}]."
        )


def assemble(method: Method, module: nn.Module) -> Task:
    """Returns the pure functions that the trainer needs.

    The same choices give the same Task object, for which `train` compiles once.
    """
    terms = ((name, REGULARIZERS[name]) for name in method.regularizers)
    return _assemble(
        module,
        tuple((name, term.function, term.weight, term.needs) for name, term in terms),
        named(method.validated_by),
        method.optimizer,
        method.schedule,
        method.customize,
        method.validation,
    )


@functools.lru_cache(maxsize=64)
def _assemble(
    module, terms, detector, optimizer, schedule, customize, validation
) -> Task:
    chosen = {
        name: Term(function, weight, {}, needs)
        for name, function, weight, needs in terms
    }
    objective = losses.compose(chosen, schedule)

    def init(run: Run, graph: jraph.GraphsTuple) -> Params:
        return module.init({"params": run.key}, graph)

    def loss(params, aux, graph, run: Run, step: Array, key: Array) -> Array:
        outputs = models.apply(module, params, graph, rates(run.hyper), key)
        return objective(outputs, run.split, run.hyper, step, graph)

    def predict(params: Params, aux: Aux, graph: jraph.GraphsTuple) -> Outputs:
        return models.apply(module, params, graph)

    task = Task(init, loss, validation(predict, detector), predict, optimizer)
    if models.keeps_statistics(module):
        task = _with_statistics(task, module, objective)
        task = task._replace(validate=validation(task.predict, detector))
    if customize is None:
        return task
    found = customize(task, module)
    if found.validate is task.validate:
        return found._replace(validate=validation(found.predict, detector))
    return found


def _with_statistics(
    task: Task, module: nn.Module, objective: Callable[..., Array]
) -> Task:
    """Returns the task with a module's running statistics as its auxiliary state."""

    def loss(params, aux, graph, run: Run, step: Array, key: Array):
        outputs, aux = models.apply_observed(
            module, params, aux, graph, run.split, rates(run.hyper), key
        )
        return objective(outputs, run.split, run.hyper, step, graph), aux

    def predict(params: Params, aux: Aux, graph: jraph.GraphsTuple) -> Outputs:
        return models.apply_running(module, params, aux, graph)

    def init_aux(params: Params, run: Run, graph: jraph.GraphsTuple) -> Aux:
        return models.start_statistics(module, params, graph)

    return task._replace(loss=loss, predict=predict, init_aux=init_aux)


def prepare(
    method: Method, module: nn.Module, graph: jraph.GraphsTuple, runs: Run
) -> Run:
    """Returns the runs [S] with the extras that the method needs, if it needs any."""
    if method.prepare is None:
        return runs
    return runs._replace(extra=method.prepare(module, graph, runs))


def rates(hyper: Hyper) -> Rates:
    """Returns the dropout rates among hyper-parameters."""
    return Rates(hyper["input_dropout"], hyper["dropout"], hyper["attention_dropout"])
