"""Which step of a run is kept: scores for `Task.validate`, higher is better."""

from collections.abc import Callable

import jax.numpy as jnp
import jraph

from oodgat_jax import losses, metrics
from oodgat_jax.training import Aux, Params, Run, Task
from oodgat_jax.types import Array, Detector, Outputs, Split

Predictor = Callable[[Params, Aux, jraph.GraphsTuple], Outputs]


def paper_validation(predict: Predictor, detector: Detector) -> Callable[..., Array]:
    """Returns accuracy plus AUROC on the validation nodes, as `Task.validate`."""

    def validate(params: Params, aux: Aux, graph: jraph.GraphsTuple, run: Run) -> Array:
        outputs = predict(params, aux, graph)
        scores = detector(lambda _: outputs, graph, run.split)
        return metrics.validation_score(scores, outputs.logits, run.split)

    return validate


def by_validation_loss(task: Task, module: object) -> Task:
    """Returns the task that keeps the step with the lowest cross-entropy on the known
    validation nodes, as GNNSafe, NODESAFE and GPN choose it: no OOD node is looked at.

    A function for `Method.customize`.
    """
    del module
    return task._replace(validate=validation_loss(task.predict))


def by_validation_accuracy(task: Task, module: object) -> Task:
    """Returns the task that keeps the first step with the highest accuracy on the known
    validation nodes, as GRASP chooses it.

    A function for `Method.customize`.
    """
    del module
    predict = task.predict

    def validate(params: Params, aux: Aux, graph: jraph.GraphsTuple, run: Run) -> Array:
        logits = predict(params, aux, graph).logits
        return metrics.accuracy(logits, run.split, run.split.val)

    return task._replace(validate=validate)


def validation_loss(predict: Predictor) -> Callable[..., Array]:
    """Returns minus the mean cross-entropy on known validation nodes, as
    `Task.validate`."""

    def validate(params: Params, aux: Aux, graph: jraph.GraphsTuple, run: Run) -> Array:
        split = run.split
        labels = jnp.asarray(split.labels)
        known = jnp.asarray(split.val) & ~jnp.asarray(split.is_ood) & (labels >= 0)
        chosen: Split = split._replace(train=known)
        return -losses.cross_entropy(predict(params, aux, graph), chosen)

    return validate
