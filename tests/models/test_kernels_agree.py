"""The sparse and the segment kernel are the same function.

`kernels/test_kernels.py` compares all kernels on real graphs.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oodgat_jax import datasets, experiment, graphs
from oodgat_jax.methods import recipes
from oodgat_jax.models import attention

HEADS, WIDTH = 2, 8


def outputs_and_gradients(dataset, path, edge_logit):
    graph = graphs.build(
        dataset._replace(features=np.zeros((dataset.num_nodes, 1))), path
    )
    random, shape = np.random.default_rng(0), (dataset.num_nodes, HEADS)
    w = np.float32(random.random(shape))
    h, weights = np.float32(random.normal(size=(2, *shape, WIDTH)))
    dropout = attention.EdgeDropout(jax.random.key(1), 0.6)

    @jax.jit
    def both(graph, w, h):
        def value(w, h):
            out = attention.attend(graph, edge_logit, w, w, h, dropout)
            return jnp.sum(weights * out), out

        gradients, out = jax.grad(value, (0, 1), has_aux=True)(w, h)
        return out, *gradients

    return both(graph, w, h)


def assert_kernels_agree(dataset, edge_logit):
    sparse = outputs_and_gradients(dataset, "sparse", edge_logit)
    segment = outputs_and_gradients(dataset, "segment", edge_logit)
    for ours, theirs in zip(sparse, segment, strict=True):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        error = np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs))
        assert error < 1e-5


@pytest.mark.parametrize("edge_logit", [attention.OOD_LOGIT, attention.GAT_LOGIT])
def test_kernels_agree_on_digits(edge_logit):
    assert_kernels_agree(datasets.load("digits"), edge_logit)


def test_a_whole_training_agrees_within_the_spread_of_seeds():
    """On the CPU's default kernel, native where there is a compiler."""
    dataset = datasets.load("digits")
    recipe = recipes.recipe("digits", "oodgat") | {"max_steps": 21, "hidden": 8}
    usual, segment = (
        experiment.execute(dataset, "oodgat", recipe, (123,), range(2), kernel=kernel)
        for kernel in ("auto", "segment")
    )
    ours, theirs = (o.metrics["ATT"]["auroc"] for o in (usual, segment))
    spread = np.ptp(theirs)
    assert abs(ours.mean() - theirs.mean()) <= max(spread, 0.01)
    # Same keys, same dropout: the first losses differ by rounding alone.
    np.testing.assert_allclose(
        usual.states.losses[:, :2], segment.states.losses[:, :2], rtol=1e-3
    )
