"""What OODGAT+ has beyond OODGAT, each part a function that other methods can take.

  waiting_decay          the paper's decay, after steps without any regularizer
  adam_sparing_attention no weight decay on attention vectors
  averaged               parameters averaged over steps are what is judged and used
  steady_validation      the step is chosen by all unlabeled nodes too, not by few alone

The regularizers are in `losses.robust`, the score in `detectors.rank_fusion`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import optax

from oodgat_jax import metrics, models
from oodgat_jax.detectors import rank_fusion
from oodgat_jax.graphs import reductions
from oodgat_jax.losses import DECAY
from oodgat_jax.methods.choosing import Predictor
from oodgat_jax.training import Params, Run, Task
from oodgat_jax.types import Array, Detector, Hyper, Outputs, Split

# Settings beyond those of the regularizers, one for all data sets.
PLUS: Mapping[str, float] = MappingProxyType(
    {
        "weight_decay": 0.0,
        "wait_steps": 0.0,
        "averaging": 0.99,
        "first_choice": 100.0,
        "unlabeled_weight": 1.0,
    }
)


class Kept(NamedTuple):
    """What a run of OODGAT+ has beside its parameters."""

    average: Params  # of the parameters over steps
    averaging: Array  # the weight of the average so far at a step
    steps: Array  # taken
    reference: Array  # [2, Q] quantiles of ENT and ATT on the graph of the fit


def waiting_decay(hyper: Hyper) -> optax.Schedule:
    """Returns a schedule: 0 for `wait_steps` steps, then the paper's decay."""
    return optax.join_schedules(
        [optax.constant_schedule(0.0), DECAY], [hyper["wait_steps"]]
    )


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


def averaged(task: Task, module: Any) -> Task:
    """Returns the task with averaged parameters in place of the last ones.

    At step t the average is d average + (1 - d) parameters, d = min(averaging,
    (t + 1) / (t + 10)), so that the start is soon forgotten; averaging = 0 is off.
    """
    del module

    def init_aux(params: Params, run: Run, graph: jraph.GraphsTuple) -> Kept:
        empty = jnp.zeros((2, rank_fusion.QUANTILES))
        return Kept(params, jnp.asarray(run.hyper["averaging"]), jnp.array(0), empty)

    def after_step(params: Params, aux: Kept, step: Array) -> Kept:
        new = 1 - jnp.minimum(aux.averaging, (step + 1) / (step + 10))
        average = optax.incremental_update(params, aux.average, new)
        return aux._replace(average=average, steps=step + 1)

    def predict(params: Params, aux: Kept, graph: jraph.GraphsTuple) -> Outputs:
        outputs = task.predict(aux.average, (), graph)
        return outputs._replace(reference=(aux.reference,))

    return task._replace(init_aux=init_aux, after_step=after_step, predict=predict)


def steady_validation(
    predict: Predictor, detector: Detector
) -> Callable[..., tuple[Array, Kept]]:
    """Returns a `Task.validate` that few lucky nodes do not decide.

    Accuracy + AUROC on the validation nodes, as in the paper, + `unlabeled_weight`
    times the AUROC of the known validation nodes against all nodes without a label,
    which needs no OOD label and ranks thousands of nodes; 0 before `first_choice`
    steps. Keeps the quantiles of the scores that it has judged.
    """

    def validate(
        params: Params, aux: Kept, graph: jraph.GraphsTuple, run: Run
    ) -> tuple[Array, Kept]:
        outputs = predict(params, aux, graph)
        kept = aux._replace(reference=rank_fusion.reference(outputs))
        outputs = outputs._replace(reference=(kept.reference,))
        scores = detector(lambda _: outputs, graph, run.split)
        score = metrics.validation_score(scores, outputs.logits, run.split)
        score += run.hyper["unlabeled_weight"] * _against_unlabeled(scores, run.split)
        return jnp.where(aux.steps < run.hyper["first_choice"], 0.0, score), kept

    return validate


def _against_unlabeled(scores: Array, split: Split) -> Array:
    """Returns the AUROC of known validation nodes against nodes without a label."""
    known = jnp.asarray(split.val) & ~jnp.asarray(split.is_ood)
    others = reductions.without_padding(~(jnp.asarray(split.train) | known))
    return metrics.auroc(scores, others, known | others)
