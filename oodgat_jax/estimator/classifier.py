"""OODGATClassifier: a graph with some labels in, classes and unknown nodes out."""

import hashlib
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jraph
import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from oodgat_jax import evaluation, experiment, graphs, methods, splits, training
from oodgat_jax.datasets import arrays
from oodgat_jax.detectors import DETECTORS, NEEDS
from oodgat_jax.estimator import inputs, persistence
from oodgat_jax.estimator.inputs import UNKNOWN
from oodgat_jax.estimator.thresholds import THRESHOLDS, least_unknown
from oodgat_jax.graphs.sparse import SparseFeatures
from oodgat_jax.methods import METHODS, Method, recipes
from oodgat_jax.registry import check_name
from oodgat_jax.types import InputError, Split


class Labeled(NamedTuple):
    """The nodes that the members learned from, for detectors that compare with them."""

    nodes: np.ndarray  # [L] rows of the fitted graph
    codes: np.ndarray  # [L] class numbers
    digest: str  # of these nodes' features, to recognize them in another graph


class Answer(NamedTuple):
    """What the members say of every node."""

    probabilities: np.ndarray  # [N, C] of the known classes, mean of the members
    member_scores: np.ndarray  # [M, N], higher = more likely unknown

    @property
    def score(self) -> np.ndarray:
        """Mean of the members: [N]."""
        return self.member_scores.mean(0)

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation of the score between the members: [N]."""
        return self.member_scores.std(0)


class Report(NamedTuple):
    """What the fit says of itself; shares are of nodes, without any OOD label."""

    held_out: int  # known nodes kept from training
    accuracy: float  # of the class, among them
    kept: float  # share of them at or below the threshold
    unlabelled: int
    called_unknown: float  # share of them above the threshold
    least_unknown: float  # share of them that is unknown at the least
    failed_members: int  # whose loss stopped being finite; left out


class OODGATClassifier(BaseEstimator):
    """Finds nodes of unknown classes, and the class of the others.

    No OOD label is needed. Some labelled nodes are held out; training keeps the step
    with the best accuracy on them plus the AUROC of their scores against those of the
    unlabelled nodes. The latter is u A + (1 - u) / 2, where A is the AUROC against the
    unknown nodes alone, which nobody has labelled, and u their share: both are largest
    at the same step.

    Args:
      method: a key of `methods.METHODS`: oodgat, gat, gcn, ...
      detector: a key of `detectors.DETECTORS` that scores nodes; by default the one
        that the method is validated by.
      members: networks trained at once from different seeds, and averaged.
      settings: hyper-parameters by name, over those of `recipes.recipe(None, method)`.
      threshold: a key of `thresholds.THRESHOLDS`, or a number.
      keep: share of known nodes that the threshold 'quantile' keeps.
      held_out: share of every class's labelled nodes to hold out.
      directed: whether an edge carries information in its direction alone.
      random_state: seed of what is held out and of the members.
    """

    def __init__(
        self,
        method: str = "oodgat",
        detector: str | None = None,
        members: int = 4,
        settings: Mapping[str, float] | None = None,
        threshold: str | float = "quantile",
        keep: float = 0.95,
        held_out: float = 1 / 3,
        directed: bool = False,
        random_state: int = 0,
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

    def fit(
        self,
        features: Any,
        edges: Any,
        labels: Any,
        *,
        validation: Any = None,
        progress: Callable[[training.Progress], None] | None = None,
    ) -> "OODGATClassifier":
        """Trains the members and chooses the threshold.

        Args:
          features: [N, F], dense or scipy sparse.
          edges: pairs [E, 2], a scipy sparse matrix [N, N] or a networkx graph.
          labels: one per node, of any kind; -1 where there is none.
          validation: [N] bool, labelled nodes to hold out; drawn by default.
          progress: see `training.train`.
        """
        recipe = self._checked()
        graph = self._graph(features, edges)
        num_nodes = graphs.num_nodes(graph)
        classes, codes = inputs.labels(labels, num_nodes)
        held_out = self._held_out(codes, validation)
        split = _split(codes, held_out, len(classes))
        states = self._train(graph, split, recipe, len(classes), progress)
        whole = np.flatnonzero(states.failed_at < 0)
        if not whole.size:
            raise InputError(
                f"The loss of every member stopped being finite by step "
                f"{int(states.failed_at.max())}: choose a smaller lr in settings."
            )
        self.classes_ = np.array(classes)
        self.n_features_in_ = graph.nodes.shape[1]
        self.recipe_ = recipe
        self.parameters_, self.aux_ = jax.tree.map(
            lambda leaf: leaf[whole], evaluation.trained(states)
        )
        learned = np.flatnonzero(split.train)
        digest = _digest(graph, learned)
        self.labeled_ = Labeled(learned, codes[learned], digest)
        self._fitted = self._answer(graph)
        self.threshold_ = self._threshold(held_out, codes < 0)
        self.report_ = self._report(codes, held_out, len(states.step) - len(whole))
        return self

    def answer(self, features: Any = None, edges: Any = None) -> Answer:
        """Returns everything about the fitted graph, or about another one.

        The other graph may be the same one grown, or any with the same features. A
        detector that compares with labeled nodes (kNN, Mahalanobis, GRASP) needs
        the nodes of the fit to come first in it.
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
        graph = self._graph(features, edges)
        width = graph.nodes.shape[1]
        if width != self.n_features_in_:
            raise InputError(
                f"The model was fitted to {self.n_features_in_} features, but these "
                f"have {width}: give the same columns in the same order."
            )
        return self._answer(graph)

    def predict(self, features: Any = None, edges: Any = None) -> np.ndarray:
        """The class of every node, or -1 for unknown: [N]."""
        return self.decide(self.answer(features, edges))

    def predict_proba(self, features: Any = None, edges: Any = None) -> np.ndarray:
        """Probabilities of `classes_`, if the node is of one of them: [N, C]."""
        return self.answer(features, edges).probabilities

    def ood_score(self, features: Any = None, edges: Any = None) -> np.ndarray:
        """Higher = more likely of no known class: [N]."""
        return self.answer(features, edges).score

    def ood_spread(self, features: Any = None, edges: Any = None) -> np.ndarray:
        """How much the members differ in the score: [N]."""
        return self.answer(features, edges).spread

    def decide(self, answer: Answer) -> np.ndarray:
        """Classes, or -1 for unknown, from an answer: [N]."""
        known = self.classes_[answer.probabilities.argmax(1)]
        if not np.issubdtype(known.dtype, np.number):
            known = known.astype(object)
        elif np.issubdtype(known.dtype, np.unsignedinteger):
            known = known.astype(np.int64)
        known[answer.score > self.threshold_] = UNKNOWN
        return known

    def save(self, folder: str | pathlib.Path) -> None:
        """Writes the model to a folder, whole or not at all."""
        self._check_fitted()
        model = persistence.Model(
            parameters=self.parameters_,
            aux=self.aux_,
            arguments=self.get_params(),
            recipe=self.recipe_,
            classes=self.classes_.tolist(),
            num_features=int(self.n_features_in_),
            threshold=float(self.threshold_),
            report=self.report_._asdict(),
            labeled={
                "nodes": self.labeled_.nodes.tolist(),
                "codes": self.labeled_.codes.tolist(),
                "digest": self.labeled_.digest,
            },
        )
        persistence.save(pathlib.Path(folder), model)

    @classmethod
    def load(cls, folder: str | pathlib.Path) -> "OODGATClassifier":
        """The model that `save` wrote, checked; it predicts for given graphs."""
        model = persistence.load(pathlib.Path(folder))
        loaded = cls(**model.arguments)
        loaded.classes_ = np.array(model.classes)
        loaded.n_features_in_ = model.num_features
        loaded.recipe_ = model.recipe
        loaded.parameters_, loaded.aux_ = model.parameters, model.aux
        loaded.labeled_ = Labeled(
            np.array(model.labeled["nodes"], int),
            np.array(model.labeled["codes"], int),
            model.labeled["digest"],
        )
        loaded.threshold_ = model.threshold
        loaded.report_ = Report(**model.report)
        loaded._fitted = None
        return loaded

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parameters_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("Call fit first, or load a saved model.")

    def _checked(self) -> recipes.Recipe:
        """The recipe, after a look at every argument."""
        if not isinstance(self.members, int) or self.members < 1:
            raise InputError(f"members must be at least 1, not {self.members}.")
        for name in ("keep", "held_out"):
            value = getattr(self, name)
            if not 0.0 < value < 1.0:
                raise InputError(f"{name} must be between 0 and 1, not {value}.")
        named = isinstance(self.threshold, str)
        if named and self.threshold not in THRESHOLDS:
            raise InputError(
                f"There is no threshold '{self.threshold}': choose from "
                f"{', '.join(THRESHOLDS)}, or give a number."
            )
        if self.detector is not None:
            check_name("detector", self.detector, DETECTORS)
        settings = experiment.as_settings(self.settings or {})
        return recipes.override(recipes.recipe(None, self.method), settings)

    def _graph(self, features: Any, edges: Any) -> jraph.GraphsTuple:
        matrix = arrays.as_features(features)
        pairs = inputs.edges(edges, matrix.shape[0], self.directed)
        return graphs.from_edges(matrix, *pairs)

    def _held_out(self, codes: np.ndarray, validation: Any) -> np.ndarray:
        """[N] bool."""
        if validation is not None:
            return _checked_validation(np.asarray(validation), codes)
        rng = np.random.default_rng(self.random_state)
        held_out = np.zeros(len(codes), bool)
        for code in range(codes.max() + 1):
            nodes = rng.permutation(np.flatnonzero(codes == code))
            count = np.clip(round(self.held_out * len(nodes)), 1, len(nodes) - 1)
            held_out[nodes[:count]] = True
        return held_out

    def _train(self, graph, split, recipe, num_classes, progress) -> training.State:
        method = self._method()
        module = recipes.module(method, recipe, num_classes)
        methods.check_needs(method, module, graph.nodes.shape[1])
        runs = experiment.make_runs(
            method,
            [recipe] * self.members,
            [split] * self.members,
            jax.random.split(jax.random.key(self.random_state), self.members),
        )
        runs = methods.prepare(method, module, graph, runs)
        task = methods.assemble(method, module)
        schedule = recipes.schedule(method, recipe)
        return training.train(task, graph, runs, schedule, progress=progress)

    def _method(self) -> Method:
        """Returns the method, validated and scored by the detector."""
        method = METHODS[self.method]
        name = self.detector or method.validated_by
        return method._replace(validated_by=name, detectors=(name,))

    def _answer(self, graph: jraph.GraphsTuple) -> Answer:
        method = self._method()
        module = recipes.module(method, self.recipe_, len(self.classes_))
        task = methods.assemble(method, module)
        members = len(jax.tree.leaves(self.parameters_)[0])
        known = self._known_nodes(graph, method.validated_by)
        logits, scores = evaluation.score_all(
            task,
            (self.parameters_, self.aux_),
            graph,
            splits.stack([known] * members),
            [method.validated_by],
        )
        found = np.asarray(scores[method.validated_by])
        if not np.isfinite(found).all():
            raise InputError(
                f"Detector {method.validated_by} gives scores that are not finite: "
                "choose another detector."
            )
        return Answer(
            probabilities=np.asarray(jax.nn.softmax(logits, -1).mean(0)),
            member_scores=found,
        )

    def _known_nodes(self, graph: jraph.GraphsTuple, detector: str) -> Split:
        """Returns a split with the fit's train nodes, if the detector needs them."""
        size = graphs.num_nodes(graph)
        codes, nobody = np.full(size, UNKNOWN), np.zeros(size, bool)
        if "validation" in NEEDS.get(detector, ()):
            raise InputError(
                f"Detector {detector} learns from validation nodes with OOD labels, "
                "which a graph of your own does not have: choose another detector."
            )
        if "labels" in NEEDS.get(detector, ()):
            nodes = self.labeled_.nodes
            same = size > nodes.max() and _digest(graph, nodes) == self.labeled_.digest
            if not same:
                raise InputError(
                    f"Detector {detector} compares with the labeled nodes of the fit, "
                    "which this graph does not begin with: give the fitted graph with "
                    "further nodes behind it, or choose another detector."
                )
            codes[nodes] = self.labeled_.codes
        return _split(codes, nobody, len(self.classes_))

    def _threshold(self, held_out: np.ndarray, unlabelled: np.ndarray) -> float:
        if not isinstance(self.threshold, str):
            return float(self.threshold)
        score = self._fitted.score
        choose = THRESHOLDS[self.threshold]
        return choose(score[held_out], score[unlabelled], self.keep)

    def _report(self, codes: np.ndarray, held_out: np.ndarray, failed: int) -> Report:
        best = self._fitted.probabilities.argmax(1)
        above = self._fitted.score > self.threshold_
        lost, called = above[held_out].mean(), above[codes < 0].mean()
        return Report(
            held_out=int(held_out.sum()),
            accuracy=float((best == codes)[held_out].mean()),
            kept=float(1.0 - lost),
            unlabelled=int((codes < 0).sum()),
            called_unknown=float(called),
            least_unknown=least_unknown(float(called), float(lost)),
            failed_members=failed,
        )


def _split(codes: np.ndarray, held_out: np.ndarray, num_classes: int) -> Split:
    """Unlabelled nodes stand for the unknown ones, in validation alone."""
    unlabelled = codes < 0
    return Split(
        labels=np.where(unlabelled, num_classes, codes).astype(np.int32),
        is_ood=unlabelled,
        train=~unlabelled & ~held_out,
        val=unlabelled | held_out,
        test=np.zeros(len(codes), bool),
    )


def _checked_validation(mask: np.ndarray, codes: np.ndarray) -> np.ndarray:
    if mask.shape != codes.shape or mask.dtype != bool:
        raise InputError(
            f"validation must be {len(codes)} booleans, one per node, not "
            f"{mask.dtype} of shape {mask.shape}."
        )
    if (mask & (codes < 0)).any() or not mask.any():
        raise InputError("validation must name labelled nodes, at least one.")
    if len(np.unique(codes[~mask & (codes >= 0)])) < codes.max() + 1:
        raise InputError("validation must leave a labelled node of every class.")
    return mask


def _digest(graph: jraph.GraphsTuple, nodes: np.ndarray) -> str:
    """Returns the SHA-256 of some nodes' features."""
    features = graph.nodes
    if isinstance(features, SparseFeatures):
        values, pattern = np.asarray(features.values), features.pattern
        parts = (values, np.asarray(pattern.columns), np.asarray(pattern.row_ptr))
        features = scipy.sparse.csr_array(parts, shape=features.shape)[nodes].toarray()
    else:
        features = np.asarray(features)[nodes]
    return hashlib.sha256(np.ascontiguousarray(features).tobytes()).hexdigest()
