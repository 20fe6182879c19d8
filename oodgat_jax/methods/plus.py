"""What OODGAT+ has beyond OODGAT, each part a function that other methods can take.

  adam_sparing_attention  no weight decay on attention vectors
  steadied                weight decay that fits the features; averaged parameters
  keeping_fit             what the score FUSED+fit is read off

At the end a student learns from it, see `student`.

The regularizers are in `losses.robust`, the scores in `detectors.rank_fusion` and
`detectors.fitted_fusion`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import optax

from oodgat_jax import models
from oodgat_jax.detectors import fitted_fusion
from oodgat_jax.detectors.fitted_fusion import Fit
from oodgat_jax.graphs import reductions
from oodgat_jax.graphs.sparse import SparseFeatures
from oodgat_jax.methods import student
from oodgat_jax.methods.choosing import Predictor, paper_validation
from oodgat_jax.methods.student import Student
from oodgat_jax.training import Params, Run, Task
from oodgat_jax.types import Array, Detector, Hyper, Outputs

# One setting for all data sets. All steps are taken and the last average is kept: no
# OOD label chooses anything.
PLUS: Mapping[str, float | int] = MappingProxyType(
    {
        "consistency": 2.0,
        "entropy": 0.05,
        "threshold": 0.5,
        "discrepancy": 0.005,
        "weight_decay": 0.0,
        "feature_decay": 0.0045,
        "averaging": 0.99,
        "early_stop": False,
        "max_steps": 501,
        "check_every": 50,
        "student_steps": 200.0,
    }
)
MOST_DECAY = 5e-4  # what `feature_decay` comes to at most


class Kept(NamedTuple):
    """What a run of OODGAT+ has beside its parameters."""

    average: Params  # of the parameters over steps
    averaging: Array  # the weight of the average so far at a step
    scale: Array  # mean squared norm of a node's features
    fit: Fit  # of the score to the graph
    student: Student  # learns at the end


def adam_sparing_attention(hyper: Hyper) -> optax.GradientTransformation:
    """Returns Adam with L2 added to the gradient of all but attention vectors.

    L2 pulls the OOD logit of every node to 0, that is w to 1/2, where attention says
    nothing.
    """
    return optax.chain(
        optax.add_decayed_weights(hyper["weight_decay"], mask=_without_attention),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(hyper["lr"]),
    )


def _without_attention(params: Params) -> Any:
    """Returns where weight decay applies."""

    def decayed(path: tuple, _: Any) -> bool:
        return getattr(path[-1], "key", None) not in models.ATTENTION_VECTORS

    return jax.tree_util.tree_map_with_path(decayed, params)


def steadied(task: Task, module: Any) -> Task:
    """Returns the task with a decay that fits the features, averaged parameters, and a
    student of the result.

    The decay is L2 on the weights of the features, `feature_decay` times the mean
    squared norm of a node's features, at most 5e-4: features of small values need
    large weights, which a fixed decay would not let grow. At step t the average is
    d average + (1 - d) parameters, d = min(averaging, (t + 1) / (t + 10)), so that the
    start is soon forgotten. 0 for `feature_decay`, `averaging` or `student_steps`
    switches each off.
    """
    del module

    def init_aux(params: Params, run: Run, graph: jraph.GraphsTuple) -> Kept:
        shapes = jax.eval_shape(task.predict, params, (), graph)
        return Kept(
            average=params,
            averaging=jnp.asarray(run.hyper["averaging"]),
            scale=_mean_square(graph),
            fit=fitted_fusion.empty(shapes),
            student=student.empty(graph, shapes.logits.shape[1]),
        )

    def loss(params, aux: Kept, graph, run: Run, step: Array, key: Array) -> Array:
        rate = jnp.minimum(run.hyper["feature_decay"] * aux.scale, MOST_DECAY)
        squares = sum(jnp.sum(kernel**2) for kernel in _feature_weights(params, graph))
        return task.loss(params, (), graph, run, step, key) + 0.5 * rate * squares

    def after_step(params: Params, aux: Kept, step: Array) -> Kept:
        new = 1 - jnp.minimum(aux.averaging, (step + 1) / (step + 10))
        return aux._replace(average=optax.incremental_update(params, aux.average, new))

    def alone(aux: Kept, graph: jraph.GraphsTuple) -> Outputs:
        outputs = task.predict(aux.average, (), graph)
        return outputs._replace(reference=aux.fit)

    def predict(params: Params, aux: Kept, graph: jraph.GraphsTuple) -> Outputs:
        return student.answer(aux.student, alone(aux, graph), graph)

    def finish(params: Params, aux: Kept, graph: jraph.GraphsTuple, run: Run) -> Kept:
        return aux._replace(student=student.teach(alone(aux, graph), graph, run))

    return task._replace(
        init_aux=init_aux,
        loss=loss,
        after_step=after_step,
        predict=predict,
        finish=finish,
    )


def _mean_square(graph: jraph.GraphsTuple) -> Array:
    """Returns the mean over nodes of the squared norm of their features."""
    x = graph.nodes
    if isinstance(x, SparseFeatures):
        nodes = reductions.count(jnp.zeros(x.shape[0]))
        return reductions.add(jnp.sum(x.values**2)) / nodes
    return reductions.mean(jnp.sum(x**2, axis=-1))


def _feature_weights(params: Params, graph: jraph.GraphsTuple) -> list[Array]:
    """Returns the matrices of the first layer that take the features: [F, D] each."""
    leaves = jax.tree_util.tree_leaves_with_path(params["params"])
    kernels = [each for each in leaves if each[0][-1].key == "kernel"]
    # Modules of a kind are numbered, and the first of them is the first by name.
    first = min(path[0].key for path, _ in kernels)
    width = graph.nodes.shape[1]
    mine = [leaf for path, leaf in kernels if path[0].key == first]
    return [kernel for kernel in mine if kernel.shape[0] == width]


def keeping_fit(
    predict: Predictor, detector: Detector
) -> Callable[..., tuple[Array, Kept]]:
    """Returns the paper's validation, which also keeps what FUSED+fit is read off."""

    def validate(
        params: Params, aux: Kept, graph: jraph.GraphsTuple, run: Run
    ) -> tuple[Array, Kept]:
        outputs = predict(params, aux, graph)
        kept = aux._replace(fit=fitted_fusion.fit(outputs, graph, run.split))
        judged = outputs._replace(reference=kept.fit)
        validation = paper_validation(lambda *_: judged, detector)
        return validation(params, kept, graph, run), kept

    return validate
