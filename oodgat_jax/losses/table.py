"""Regularizers by name, and the objective that they make with cross-entropy."""

import math
import numbers
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jraph
import optax

from oodgat_jax.losses.bounded import bounded_energy, bounded_energy_exposed
from oodgat_jax.losses.exposure import (
    energy_margin,
    energy_margin_propagated,
    outlier_exposure,
)
from oodgat_jax.losses.node_values import cross_entropy
from oodgat_jax.losses.paper import (
    consistency,
    consistency_printed,
    discrepancy,
    discrepancy_printed,
    entropy,
    entropy_printed,
)
from oodgat_jax.losses.robust import anchor, consistency_led
from oodgat_jax.losses.unknown_class import unknown_class, unknown_class_pseudo
from oodgat_jax.registry import Registry, check_function, check_needs
from oodgat_jax.types import Array, Hyper, InputError, Outputs, Regularizer, Split

# Eq. 12's a^(b t) with a = 0.9 and b = 0.01.
DECAY = optax.exponential_decay(1.0, transition_steps=100, decay_rate=0.9)

# From a run's hyper-parameters to the factor of all regularizers at a step.
WeightSchedule = Callable[[Hyper], optax.Schedule]

# What a regularizer gets by keyword if it says that it needs it.
GIVEN = ("graph", "step")


class Term(NamedTuple):
    """An entry of REGULARIZERS: a function and what it wants to know."""

    function: Regularizer
    weight: str  # the hyper-parameter that weighs it
    hyper: Mapping[str, float]  # defaults of all it uses, the weight among them
    needs: tuple[str, ...] = ()  # what is not always there; see register_regularizer

    def value(
        self,
        outputs: Outputs,
        split: Split,
        hyper: Hyper,
        step: Array | int,
        graph: jraph.GraphsTuple | None,
    ) -> Array:
        """Computes the term, unweighted, with those arguments that it needs."""
        given = {"graph": graph, "step": step}
        wanted = {name: given[name] for name in GIVEN if name in self.needs}
        return self.function(outputs, split, hyper, **wanted)


def paper_decay(hyper: Hyper) -> optax.Schedule:
    """Returns the paper's schedule of the regularizers' weights, for all runs alike."""
    del hyper
    return DECAY


def constant(hyper: Hyper) -> optax.Schedule:
    """Returns the schedule of weights that stay what they are."""
    del hyper
    return optax.constant_schedule(1.0)


# Weights where neither the paper nor experience says better; see also `recipes`.
_CONSISTENCY = {"consistency": 2.0}
_ENTROPY = {"entropy": 0.05, "threshold": 0.5}
_DISCREPANCY = {"discrepancy": 0.005}
_MARGIN = {"energy_margin": 1.0, "m_in": -5.0, "m_out": -1.0}
_BOUNDED = {"bounded_energy": 1.0, "bounded_share": 0.999}
_UNKNOWN = {"unknown_class": 1.0, "complement": 0.1}
_NEEDS = ("attention",)

REGULARIZERS: Registry[Term] = Registry(
    "regularizer",
    {
        "anchor": Term(anchor, "anchor", {"anchor": 0.2, "known_share": 0.5}, _NEEDS),
        "bounded_energy": Term(
            bounded_energy,
            "bounded_energy",
            {**_BOUNDED, "bounded_after": 20.0},
            ("step",),
        ),
        "bounded_energy_exposed": Term(
            bounded_energy_exposed,
            "bounded_energy",
            {**_BOUNDED, "uniform_after": 120.0},
            ("exposure", "step"),
        ),
        "consistency": Term(consistency, "consistency", _CONSISTENCY, _NEEDS),
        "consistency_led": Term(
            consistency_led,
            "consistency",
            {**_CONSISTENCY, "led_steps": 100.0},
            ("attention", "step"),
        ),
        "consistency_printed": Term(
            consistency_printed, "consistency", _CONSISTENCY, _NEEDS
        ),
        "discrepancy": Term(discrepancy, "discrepancy", _DISCREPANCY, _NEEDS),
        "discrepancy_printed": Term(
            discrepancy_printed, "discrepancy", _DISCREPANCY, _NEEDS
        ),
        "energy_margin": Term(energy_margin, "energy_margin", _MARGIN, ("exposure",)),
        "energy_margin_propagated": Term(
            energy_margin_propagated, "energy_margin", _MARGIN, ("exposure", "graph")
        ),
        "entropy": Term(entropy, "entropy", _ENTROPY, _NEEDS),
        "entropy_printed": Term(entropy_printed, "entropy", _ENTROPY, _NEEDS),
        "outlier_exposure": Term(
            outlier_exposure,
            "outlier_exposure",
            {"outlier_exposure": 0.5},
            ("exposure",),
        ),
        "unknown_class": Term(
            unknown_class, "unknown_class", _UNKNOWN, ("attention", "exposure")
        ),
        "unknown_class_pseudo": Term(
            unknown_class_pseudo,
            "unknown_class",
            {**_UNKNOWN, "pseudo_share": 0.1, "pseudo_after": 50.0},
            ("attention", "step"),
        ),
    },
)


def register_regularizer(
    name: str,
    function: Regularizer,
    *,
    hyper: Mapping[str, float] = MappingProxyType({}),
    needs: tuple[str, ...] = (),
) -> None:
    """Adds a regularizer to the table, so that methods and --regularizers can name it.

    Args:
      name: of the regularizer and of the hyper-parameter that weighs it.
      function: (outputs, split, hyper) -> scalar, lower is better.
      hyper: defaults of the hyper-parameters it uses; its weight is 1 unless given.
      needs: what it reads that is not always there: "attention" of the backbone, nodes
        in `split.exposure`; "graph" and "step" are given to it by keyword.
    """
    check_function("regularizer", name, function)
    check_needs("regularizer", name, needs, (*_NEEDS, "exposure", *GIVEN))
    try:
        values = {name: 1.0} | {key: float(value) for key, value in hyper.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"hyper of regularizer '{name}' must map names to numbers."
        ) from error
    if not all(map(math.isfinite, values.values())):
        raise InputError(f"hyper of regularizer '{name}' must hold finite numbers.")
    REGULARIZERS.register(name, Term(function, name, values, tuple(needs)))


def compose(
    terms: Mapping[str, Term], schedule: WeightSchedule = paper_decay
) -> Callable[..., Array]:
    """Returns cross-entropy plus the given regularizers, weighted and scheduled.

    Eq. 12: L = CE + schedule(t) sum_k weight_k term_k, as a function of (outputs,
    split, hyper, step) and of the graph where a regularizer needs it.
    """

    def objective(
        outputs: Outputs,
        split: Split,
        hyper: Hyper,
        step: Array,
        graph: jraph.GraphsTuple | None = None,
    ) -> Array:
        total = cross_entropy(outputs, split)
        for name, term in terms.items():
            weight = schedule(hyper)(step) * hyper[term.weight]
            value = term.value(outputs, split, hyper, step, graph)
            _check_scalar(name, value)
            total += weight * value
        return total

    return objective


def _check_scalar(name: str, value: Any) -> None:
    shape = getattr(value, "shape", None)
    if shape == () or isinstance(value, numbers.Number):
        return
    found = type(value).__name__ if shape is None else f"an array {list(shape)}"
    raise InputError(f"Regularizer '{name}' must return a scalar, not {found}.")
