"""OODGATClassifier: a graph with some labels in, classes and unknown nodes out."""

import pathlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jraph
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from oodgat_jax import graphs, training
from oodgat_jax import report as pages
from oodgat_jax.datasets import other_libraries
from oodgat_jax.estimator import (
    answers,
    arguments,
    forks,
    holding_out,
    inputs,
    inspection,
    known_nodes,
    members,
    persistence,
    preparation,
    saved_state,
    scaling,
    thresholds,
)
from oodgat_jax.estimator.answers import Answer, Labeled
from oodgat_jax.estimator.inputs import UNKNOWN
from oodgat_jax.estimator.thresholds import THRESHOLDS
from oodgat_jax.methods import Method
from oodgat_jax.training import capacity
from oodgat_jax.types import InputError


class OODGATClassifier(BaseEstimator):
    """Finds nodes of unknown classes, and the class of the others.

    No OOD label is needed. Some labeled nodes are held out; training keeps the step
    with the best accuracy on them plus the AUROC of their scores against those of the
    unlabeled nodes. The latter is u A + (1 - u) / 2, where A is the AUROC against the
    unknown nodes alone, which nobody has labeled, and u their share: both are largest
    at the same step. Of enough held-out nodes, half only calibrate: they choose the
    threshold and bound what it does, see `estimator.bounds`.

    A process that was forked from one that has used a model cannot use one; spawn it.

    Args:
      method: a key of `methods.METHODS`: oodgat, gat, gcn, ...
      detector: a key of `detectors.DETECTORS` that scores nodes; by default the one
        that the method is validated by.
      members: networks trained at once from different seeds, and averaged.
      settings: hyper-parameters by name, over those of `recipes.recipe(None, method)`.
      threshold: a key of `thresholds.THRESHOLDS`, or a finite number.
      keep: share of known nodes that the threshold 'quantile' keeps.
      held_out: share of every class's labeled nodes to hold out.
      directed: whether an edge carries information in its direction alone.
      random_state: seed of what is held out and of the members; None for a new one at
        every fit.
      scale: "standard" to center dense features and divide them by their deviation,
        "none" to take them as they are; sparse ones always are.
      missing: a key of `preparation.MISSING`: "refuse" a missing number, or put the
        "mean" of its column or "zero" in its place.
      categorical: columns of text, each encoded as zeros and ones, one per value; only
        features with named columns have them.
    """

    def __init__(
        self,
        method: str = "oodgat-plus",
        detector: str | None = None,
        members: int = 4,
        settings: Mapping[str, float | int | str] | None = None,
        threshold: str | float = "quantile",
        keep: float = 0.95,
        held_out: float = 1 / 3,
        directed: bool = False,
        random_state: int | None = 0,
        scale: str = "standard",
        missing: str = "refuse",
        categorical: Sequence[str] = (),
    ):
        self.method = method
        self.detector = detector
        self.members = members
        self.settings = settings
        self.threshold = threshold
        self.keep = keep
        self.held_out = held_out
        self.directed = directed
        self.random_state = random_state
        self.scale = scale
        self.missing = missing
        self.categorical = categorical

    def fit(
        self,
        features: Any,
        edges: Any = None,
        labels: Any = None,
        *,
        validation: Any = None,
        exposure: Any = None,
        names: Sequence[str] | None = None,
        progress: Callable[[training.Progress], None] | None = None,
    ) -> "OODGATClassifier":
        """Trains the members and chooses the threshold.

        Args:
          features: [N, F], dense or scipy sparse, or a table of pandas, polars or
            Arrow; or one graph with all, see `datasets.other_libraries.unpack`.
          edges: pairs [E, 2], a scipy sparse matrix [N, N] or a networkx graph.
          labels: one per node, of any kind; -1 where there is none.
          validation: [N] bool, labeled nodes to hold out; drawn by default.
          exposure: unlabeled nodes known to be of no class, [N] bool or their numbers,
            for a method that learns from such examples.
          names: of the features; by default the columns of a table like pandas'.
          progress: see `training.train`.
        """
        recipe = arguments.check(self.get_params(deep=False))
        forks.check()
        seed = arguments.seed(self.random_state)
        if edges is None and labels is None:
            features, edges, labels = other_libraries.unpack(features)
        table = preparation.as_table(features, names, self.categorical)
        prepared = preparation.fit(table, self.missing)
        matrix, known = preparation.apply(table, prepared, self.missing)
        scaled = scaling.fit(matrix, self.scale)
        graph = self._graph(matrix, edges, scaled)
        classes, codes = inputs.labels(labels, graphs.num_nodes(graph))
        held_out = holding_out.choose(codes, validation, self.held_out, seed)
        hidden = np.where(held_out.calibration, UNKNOWN, codes)
        exposed = holding_out.known_unknowns(exposure, codes)
        split = holding_out.as_split(hidden, held_out.choosing, exposed)
        keys = jax.random.split(jax.random.key(seed), self.members)
        states = members.train(
            self._method(), recipe, graph, split, len(classes), keys, progress
        )
        self._keep(states, graph, split, recipe, classes)
        self.feature_names_in_, self.scaling_ = known, scaled
        self.preparation_ = prepared
        self._fitted_with = arguments.binding(self)
        self._seen: inspection.Seen | None = inspection.Seen(
            graph, codes, held_out.all, [str(name) for name in classes], is_own=True
        )
        self._decide(codes, held_out, int((states.failed_at >= 0).sum()))
        return self

    def answer(
        self,
        features: Any = None,
        edges: Any = None,
        *,
        names: Sequence[str] | None = None,
    ) -> Answer:
        """Returns everything about the fitted graph, or about another one.

        The other graph may be the same one grown, or any with the same features. If
        both have names for them, they are matched by name; columns that the fit did not
        have are left out with a warning. A detector that compares with labeled nodes
        (kNN, Mahalanobis, GRASP) needs the nodes of the fit to come first.
        """
        self._check_fitted()
        if features is None and edges is None:
            if self._fitted is None:
                raise InputError(
                    "A loaded model does not hold the graph it was fitted to: give "
                    "features and edges."
                )
            return self._fitted
        if features is None or edges is None:
            raise InputError(
                "Features and edges belong together: give both, edges=[] for none."
            )
        return self._answer(self._other_graph(features, edges, names))

    def _other_graph(self, features: Any, edges: Any, names: Any) -> jraph.GraphsTuple:
        arguments.check_unchanged(self, self._fitted_with)
        table = preparation.as_table(features, names, self.categorical)
        table = preparation.match(table, self.feature_names_in_, self.preparation_)
        matrix, _ = preparation.apply(table, self.preparation_, self.missing)
        preparation.check_width(matrix.shape[1], self.n_features_in_)
        return self._graph(matrix, edges, self.scaling_)

    def predict(self, features: Any = None, edges: Any = None) -> np.ndarray:
        """Returns the class of every node, or -1 for unknown: [N]."""
        return self.decide(self.answer(features, edges))

    def predict_proba(self, features: Any = None, edges: Any = None) -> np.ndarray:
        """Returns probabilities of `classes_`, given that it is one of them: [N, C]."""
        return self.answer(features, edges).probabilities

    def ood_score(self, features: Any = None, edges: Any = None) -> np.ndarray:
        """Returns scores, higher = more likely of no known class: [N]."""
        return self.answer(features, edges).score

    def ood_spread(self, features: Any = None, edges: Any = None) -> np.ndarray:
        """Returns how much the members differ in the score: [N]."""
        return self.answer(features, edges).spread

    def decide(self, answer: Answer, threshold: float | None = None) -> np.ndarray:
        """Returns classes, or -1 for unknown, from an answer: [N].

        Args:
          answer: from `answer`.
          threshold: if not the model's own; see `threshold_for`.
        """
        self._check_fitted()
        if threshold is not None:
            arguments.check_number("threshold", threshold)
        above = self.threshold_ if threshold is None else threshold
        return answers.verdicts(answer, self.classes_, above)

    def threshold_for(
        self, answer: Answer, threshold: str | float, keep: float | None = None
    ) -> float:
        """Returns another threshold than the one that was fitted.

        Args:
          answer: what "mixture" is fitted to.
          threshold: a key of `thresholds.THRESHOLDS`, or a number.
          keep: share of known nodes that "quantile" keeps; the model's by default.
        """
        self._check_fitted()
        arguments.check_threshold(threshold)
        keep = self.keep if keep is None else keep
        arguments.check_share("keep", keep)
        if not isinstance(threshold, str):
            return float(threshold)
        return THRESHOLDS[threshold](self.calibration_scores_, answer.score, keep)

    def findings(
        self,
        ids: Any = None,
        features: Any = None,
        edges: Any = None,
        *,
        labels: Any = None,
        names: Sequence[str] | None = None,
        threshold: float | None = None,
    ) -> pages.Findings:
        """Returns what `report` and `review` are made of, as arrays.

        Args:
          ids: names of the nodes; by default their row numbers.
          features: of another graph than the fitted one, as for `answer`.
          edges: of that graph.
          labels: of that graph, if it has any, as for `fit`.
          names: of its features.
          threshold: if not the model's own; see `threshold_for`.
        """
        answer = self.answer(features, edges, names=names)
        seen = self._seen
        if features is not None:
            with warnings.catch_warnings():  # `answer` has said it
                warnings.simplefilter("ignore")
                graph = self._other_graph(features, edges, names)
            seen = inspection.recognize(self, graph, labels, answer.score)
        assert seen is not None
        return inspection.findings(self, seen, answer, ids, threshold)

    def report(self, path: str | pathlib.Path, ids: Any = None, **graph: Any) -> None:
        """Writes one page to look at: scores, a map, groups, what to label next.

        Args:
          path: of an HTML file, which opens from disk and needs no network.
          ids: names of the nodes; by default their row numbers.
          **graph: another graph than the fitted one, or another threshold, see
            `findings`.
        """
        pages.write(pathlib.Path(path), pages.build(self.findings(ids, **graph)))

    def review(
        self, count: int = 30, ids: Any = None, **graph: Any
    ) -> list[pages.Suggestion]:
        """Returns the unlabeled nodes whose label would tell most, the best first.

        Args:
          count: at most so many.
          ids: names of the nodes; by default their row numbers.
          **graph: another graph than the fitted one, or another threshold, see
            `findings`.
        """
        arguments.check_count("count", count)
        found = self.findings(ids, **graph)
        return pages.suggest(found, pages.find_groups(found), count)

    def save(self, folder: str | pathlib.Path) -> None:
        """Writes the model to a folder, whole or not at all."""
        self._check_fitted()
        arguments.check_unchanged(self, self._fitted_with)
        arguments.check(self.get_params(deep=False))
        persistence.save(pathlib.Path(folder), saved_state.as_model(self))

    @classmethod
    def load(cls, folder: str | pathlib.Path) -> "OODGATClassifier":
        """Reads the model that `save` wrote; it predicts for graphs that are given."""
        model = persistence.load(pathlib.Path(folder))
        names = tuple(model.arguments["categorical"])  # JSON has lists alone
        loaded = cls(**model.arguments | {"categorical": names})
        saved_state.restore(loaded, model)
        loaded._fitted, loaded._seen = None, None
        loaded._fitted_with = arguments.binding(loaded)
        return loaded

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parameters_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("Call fit first, or load a saved model.")

    def _graph(
        self, matrix: Any, edges: Any, scaled: scaling.Scaling | None
    ) -> jraph.GraphsTuple:
        capacity.check_features(matrix.shape, is_dense=scaled is not None)
        pairs = inputs.edges(edges, matrix.shape[0], self.directed)
        capacity.check_edges(len(pairs[0]))
        return graphs.from_edges(scaling.apply(matrix, scaled), *pairs)

    def _keep(self, states, graph, split, recipe, classes) -> None:
        """Keeps what the members that did not fail have learned."""
        self.parameters_, self.aux_ = members.learned(states)
        self.classes_ = inputs.class_array(classes)
        self.n_features_in_ = graph.nodes.shape[1]
        self.recipe_ = recipe
        learned = np.flatnonzero(split.train)
        digest = known_nodes.digest(graph, learned)
        self.labeled_ = Labeled(learned, split.labels[learned], digest)
        self._fitted: Answer | None = self._answer(graph)

    def _decide(
        self, codes: np.ndarray, held_out: holding_out.HeldOut, failed: int
    ) -> None:
        """Chooses the threshold, and reports what it does."""
        fitted = self.answer()
        self.calibration_scores_, self.threshold_ = thresholds.choose(
            self.threshold, self.keep, fitted.score, codes, held_out
        )
        self.report_ = answers.report(
            fitted,
            codes,
            held_out.all,
            held_out.calibration,
            self.threshold_,
            self.keep if self.threshold == "quantile" else None,
            failed,
        )

    def _method(self) -> Method:
        return members.validated_by(self.method, self.detector)

    def _answer(self, graph: jraph.GraphsTuple) -> Answer:
        return members.answer(
            self._method(),
            self.recipe_,
            (self.parameters_, self.aux_),
            graph,
            self.labeled_,
            len(self.classes_),
        )
