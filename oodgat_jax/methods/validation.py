"""Which step of a run is kept: scores for `Task.validate`, higher is better."""

from collections.abc import Callable

import jraph

from oodgat_jax import metrics
from oodgat_jax.training import Aux, Params, Run
from oodgat_jax.types import Array, Detector, Outputs

Predictor = Callable[[Params, Aux, jraph.GraphsTuple], Outputs]


def paper_validation(predict: Predictor, detector: Detector) -> Callable[..., Array]:
    """Returns accuracy plus AUROC on the validation nodes, as `Task.validate`."""

    def validate(params: Params, aux: Aux, graph: jraph.GraphsTuple, run: Run) -> Array:
        outputs = predict(params, aux, graph)
        scores = detector(lambda _: outputs, graph, run.split)
        return metrics.validation_score(scores, outputs.logits, run.split)

    return validate
