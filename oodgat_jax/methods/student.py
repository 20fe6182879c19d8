"""A second network that learns from what a trained one says of all nodes.

Few nodes are labeled, but a trained network has an opinion of every node, and is right
about most of those it is sure of. A student learns C + 1 classes from them: the known
ones from nodes that look known, the last from nodes that look unknown. It sees other
things than its teacher, the principal components of the features averaged over
neighbors of neighbors, and so is wrong about other nodes; both together are better
than either. No label of an OOD node is read.
"""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
import optax

from oodgat_jax import graphs
from oodgat_jax.detectors import fitted_fusion, rank_fusion, student_fusion
from oodgat_jax.graphs import reductions
from oodgat_jax.models import Bias, Linear, drop_hidden
from oodgat_jax.training import Params, Run, adam
from oodgat_jax.types import Array, Outputs, Rates, Split

COMPONENTS = 128  # of the features, at most
HOPS = 2  # rounds of averaging; the student sees all of 0..HOPS
ITERATIONS = 4  # of the search for principal components
HIDDEN = 64
LEARNING_RATE, WEIGHT_DECAY = 0.01, 1e-3
# Nodes look known below this share of the held-out known ones, unknown above that.
LOOKS_KNOWN, LOOKS_UNKNOWN = 0.8, 0.97
SHARPNESS = 2.0  # power of the teacher's probabilities
SHARE = 1 / 3  # of the student in predictions; in scores it is a half
_SEED = 0  # of the first guess of the components
_TINY = 1e-12


class Student(NamedTuple):
    """What a model keeps of its student."""

    params: Params
    components: Array  # [F, K] orthonormal
    scales: Array  # [HOPS + 1] that inputs are divided by
    quantiles: Array  # [2, Q] that scores of teacher and student are ranked by
    share: Array  # of the student in predictions: 0 before it has learned


class Classifier(nn.Module):
    """Two layers on inputs that hold the graph already."""

    num_classes: int
    hidden: int = HIDDEN

    @nn.compact
    def __call__(
        self, graph: jraph.GraphsTuple, x: Array, rates: Rates | None = None
    ) -> Array:
        """Maps inputs [N, D] to logits [N, num_classes]."""
        if rates is not None:  # the inputs take the place of a hidden layer
            x = drop_hidden(self, graph, x, rates._replace(hidden=rates.input))
        hidden = nn.relu(Bias()(Linear(self.hidden)(x)))
        hidden = drop_hidden(self, graph, hidden, rates)
        return Bias()(Linear(self.num_classes)(hidden))


def empty(graph: jraph.GraphsTuple, num_classes: int) -> Student:
    """Returns a student of zeros, which has no share, for a graph of such features."""
    width = graph.nodes.shape[1]
    count = min(COMPONENTS, width)
    inputs = jnp.zeros((2, (HOPS + 1) * count))
    shapes = jax.eval_shape(
        lambda: Classifier(num_classes + 1).init(
            {"params": jax.random.key(0)}, graph, inputs
        )
    )
    return Student(
        params=jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes),
        components=jnp.zeros((width, count)),
        scales=jnp.ones(HOPS + 1),
        quantiles=jnp.zeros((2, rank_fusion.QUANTILES)),
        share=jnp.zeros(()),
    )


def teach(teacher: Outputs, graph: jraph.GraphsTuple, run: Run) -> Student:
    """Returns a student that has learned from a teacher for `student_steps` steps.

    Args:
      teacher: outputs of the graph, with the fit of FUSED+fit as reference.
      graph: of the fit.
      run: its dropout rates and `student_steps` are the student's; known validation
        nodes are held out.
    """
    components = principal_components(graph, min(COMPONENTS, graph.nodes.shape[1]))
    blocks = _blocks(graph, components)
    scales = jnp.sqrt(reductions.mean(jnp.sum(blocks**2, -1)))  # [HOPS + 1]
    scales = jnp.maximum(scales, _TINY)
    x = _joined(blocks, scales)
    scores = fitted_fusion.fitted(lambda _: teacher, graph, run.split)
    targets, counted = pseudo_labels(teacher.logits, scores, run.split)
    params = _learn(graph, x, targets, _balanced(targets, counted), run)
    logits: Any = Classifier(targets.shape[1]).apply(params, graph, x)
    both = jnp.stack([scores, student_fusion.unknown_logit(logits)])
    steps = jnp.asarray(run.hyper["student_steps"])
    found = Student(
        params=params,
        components=components,
        scales=scales,
        quantiles=rank_fusion.quantiles(both),
        share=jnp.where(steps > 0, SHARE, 0.0),
    )
    return jax.lax.stop_gradient(found)


def answer(kept: Student, own: Outputs, graph: jraph.GraphsTuple) -> Outputs:
    """Returns the outputs of teacher and student together.

    Logits are the logarithm of the weighted mean of their probabilities; the teacher's
    own stay in `student`, for the scores that are read off them.
    """
    x = _joined(_blocks(graph, kept.components), kept.scales)
    classes = own.logits.shape[1]
    logits: Any = Classifier(classes + 1).apply(kept.params, graph, x)
    known = jax.nn.softmax(logits[:, :classes])
    mean = (1 - kept.share) * jax.nn.softmax(own.logits) + kept.share * known
    return own._replace(
        logits=jnp.where(kept.share > 0, jnp.log(mean + _TINY), own.logits),
        student=(own.logits, logits, kept.quantiles, kept.share),
    )


def pseudo_labels(logits: Array, scores: Array, split: Split) -> tuple[Array, Array]:
    """Returns what a student is to learn of every node, and which nodes count.

    Labeled nodes have their label. Of the others, those whose score is at most that of
    LOOKS_KNOWN of the held-out known nodes have the teacher's sharpened probabilities;
    those with a score of LOOKS_UNKNOWN of them or more are of the last class. Nodes
    between them, and validation nodes with a label, do not count. (Where nobody has OOD
    labels, validation nodes are also all those without any.)

    Args:
      logits: of the teacher, [N, C].
      scores: of the teacher, [N], higher for nodes that look unknown.
      split: labels are read of train nodes and known validation nodes alone.

    Returns:
      Probabilities [N, C + 1], and a mask [N].
    """
    labels, train = jnp.asarray(split.labels), jnp.asarray(split.train)
    val = jnp.asarray(split.val)
    held = val & ~jnp.asarray(split.is_ood) & (labels >= 0)
    known = scores <= _quantile(scores, held, LOOKS_KNOWN)
    unknown = ~known & (scores >= _quantile(scores, held, LOOKS_UNKNOWN))
    classes = logits.shape[1]
    sharp = jax.nn.softmax(SHARPNESS * logits)
    found = jnp.where(known[:, None], sharp, 0.0)
    found = jnp.concatenate([found, unknown[:, None].astype(sharp.dtype)], 1)
    given = jax.nn.one_hot(labels, classes + 1)
    counted = train | (~(val & (labels >= 0)) & (known | unknown))
    return (
        jnp.where(train[:, None], given, found),
        jnp.asarray(reductions.without_padding(counted)),
    )


def _balanced(targets: Array, counted: Array) -> Array:
    """Returns weights of nodes [N], 0 where they do not count: a class that is four
    times as large as another has twice its weight in all."""
    weights = counted.astype(targets.dtype)
    sizes = reductions.add(jnp.sum(targets * weights[:, None], 0))
    return weights * (targets @ jax.lax.rsqrt(jnp.maximum(sizes, 1.0)))


def _quantile(values: Array, mask: Array, share: float) -> Array:
    """Returns the value that a share of the nodes in a mask do not exceed; without any
    of them 1/2, the middle of the ranks."""
    inside = reductions.whole(jnp.asarray(reductions.without_padding(mask)))
    rising = jnp.sort(jnp.where(inside, reductions.whole(values), jnp.inf))
    count = jnp.sum(inside)
    place = jnp.round(share * (count - 1)).astype(jnp.int32)
    return jnp.where(count > 0, rising[jnp.maximum(place, 0)], 0.5)


def _learn(
    graph: jraph.GraphsTuple, x: Array, targets: Array, weights: Array, run: Run
) -> Params:
    """Returns the parameters after `student_steps` steps of Adam."""
    module = Classifier(targets.shape[1])
    first, later = jax.random.split(jax.random.fold_in(run.key, HOPS))
    rates = Rates(run.hyper["input_dropout"], run.hyper["dropout"], 0.0)
    optimizer = adam({"lr": LEARNING_RATE, "weight_decay": WEIGHT_DECAY})
    total = jnp.maximum(reductions.add(jnp.sum(weights)), _TINY)

    def loss(params: Params, key: Array) -> Array:
        logits = module.apply(params, graph, x, rates, rngs={"dropout": key})
        each = optax.softmax_cross_entropy(logits, targets)
        return reductions.add(jnp.sum(weights * each)) / total

    def step(number: Array, now: tuple) -> tuple:
        params, state = now
        gradient = jax.grad(loss)(params, jax.random.fold_in(later, number))
        updates, state = optimizer.update(reductions.average(gradient), state, params)
        return optax.apply_updates(params, updates), state

    params = module.init({"params": first}, graph, x)
    steps = jnp.asarray(run.hyper["student_steps"]).astype(jnp.int32)
    return jax.lax.fori_loop(0, steps, step, (params, optimizer.init(params)))[0]


def principal_components(graph: jraph.GraphsTuple, count: int) -> Array:
    """Returns about the `count` directions in which features are largest: [F, count].

    By subspace iteration, which takes only products with the features; they need not
    fit into memory as a dense matrix.
    """

    def improved(_: int, directions: Array) -> Array:
        rows, transposed = jax.vjp(lambda given: _along(graph, given), directions)
        return jnp.linalg.qr(reductions.add(transposed(_without_padding(rows))[0]))[0]

    guess = jax.random.normal(jax.random.key(_SEED), (graph.nodes.shape[1], count))
    return jax.lax.fori_loop(0, ITERATIONS, improved, jnp.linalg.qr(guess)[0])


def _along(graph: jraph.GraphsTuple, directions: Array) -> Array:
    """Returns the features along some directions: [F, K] -> [N, K]."""
    params = {"params": {"kernel": directions}}
    return jnp.asarray(Linear(directions.shape[1]).apply(params, graph.nodes))


def _without_padding(rows: Array) -> Array:
    real = jnp.asarray(reductions.without_padding(jnp.ones(len(rows), bool)))
    return jnp.where(real[:, None], rows, 0.0)


def _blocks(graph: jraph.GraphsTuple, components: Array) -> Array:
    """Returns the components of the features of every node, of norm 1, after each
    number of rounds: [N, HOPS + 1, K]."""
    x = _along(graph, components)
    x /= jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), 1e-9)
    weights = graphs.symmetric_weights(graph)
    found = [x]
    for _ in range(HOPS):
        found.append(graphs.aggregate(graph, weights, found[-1]))
    return jnp.stack(found, 1)


def _joined(blocks: Array, scales: Array) -> Array:
    return (blocks / scales[:, None]).reshape(blocks.shape[0], -1)
