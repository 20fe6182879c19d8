"""A fitted classifier -> what `persistence` writes, and back."""

from typing import Any

import numpy as np

from oodgat_jax.estimator import arguments, inputs, persistence, preparation, scaling
from oodgat_jax.estimator.answers import Labeled, Report


def as_model(classifier: Any) -> persistence.Model:
    """Returns what is kept of a fitted classifier."""
    labeled, scaled = classifier.labeled_, classifier.scaling_
    prepared = classifier.preparation_
    return persistence.Model(
        parameters=classifier.parameters_,
        aux=classifier.aux_,
        arguments=arguments.plain(classifier.get_params()),
        recipe=classifier.recipe_,
        classes=classifier.classes_.tolist(),
        num_features=int(classifier.n_features_in_),
        threshold=float(classifier.threshold_),
        report=classifier.report_._asdict(),
        labeled={
            "nodes": labeled.nodes.tolist(),
            "codes": labeled.codes.tolist(),
            "digest": labeled.digest,
        },
        feature_names=classifier.feature_names_in_,
        scaling=scaled and {k: v.tolist() for k, v in scaled._asdict().items()},
        preparation={
            "categories": prepared.categories,
            "means": None if prepared.means is None else prepared.means.tolist(),
        },
        calibration_scores=classifier.calibration_scores_.tolist(),
    )


def restore(classifier: Any, model: persistence.Model) -> None:
    """Makes a classifier fitted as the model is; it holds no graph."""
    classifier.classes_ = inputs.class_array(model.classes)
    classifier.n_features_in_ = model.num_features
    classifier.recipe_ = model.recipe
    classifier.parameters_, classifier.aux_ = model.parameters, model.aux
    classifier.labeled_ = Labeled(
        np.array(model.labeled["nodes"], int),
        np.array(model.labeled["codes"], int),
        model.labeled["digest"],
    )
    classifier.threshold_ = model.threshold
    classifier.report_ = Report(**model.report)
    classifier.feature_names_in_ = model.feature_names
    classifier.scaling_ = model.scaling and scaling.Scaling(
        **{name: np.array(column) for name, column in model.scaling.items()}
    )
    means = model.preparation["means"]
    classifier.preparation_ = preparation.Preparation(
        model.preparation["categories"], None if means is None else np.array(means)
    )
    classifier.calibration_scores_ = np.array(model.calibration_scores)
