"""The contract checks: they pass for everything in the tables, and find mistakes."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oodgat_jax as og
from oodgat_jax import graphs
from oodgat_jax.detectors import NEEDS
from oodgat_jax.graphs import reductions
from oodgat_jax.models import Linear
from oodgat_jax.types import Outputs

# A single pass has an epistemic uncertainty of zero, which orders nothing. Without a
# student FUSED+student is FUSED+fit, which `methods/test_student.py` shows.
ELSEWHERE = {"epistemic", "CaGCN", "FUSED+student"}


@pytest.mark.parametrize("name", og.REGULARIZERS)
def test_regularizers_of_the_table_pass(name):
    term = og.REGULARIZERS[name]
    og.testing.check_regularizer(term.function, hyper=term.hyper, needs=term.needs)


@pytest.mark.parametrize("name", sorted({*og.DETECTORS} - ELSEWHERE))
def test_detectors_of_the_table_pass(name):
    og.testing.check_detector(og.DETECTORS[name], needs=NEEDS.get(name, ()))


def test_a_trained_detector_passes():
    from oodgat_jax.detectors import cagcn

    og.testing.check_detector(cagcn(max_steps=5), needs=NEEDS["CaGCN"])


@pytest.mark.parametrize("name", og.BACKBONES)
def test_backbones_of_the_table_pass(name):
    entry = og.BACKBONES[name]
    sizes = {"hidden": 5, "heads": 2}
    fields = {key: sizes[key] for key in entry.options() if key in sizes}
    og.testing.check_backbone(entry.module, **fields)


def logits_of(outputs):
    return outputs.logits.max(-1)


WRONG_REGULARIZERS = {
    "sharded": lambda o, s, h: jnp.mean(logits_of(o)),
    "scalar": lambda o, s, h: logits_of(o),
    "empty mask": lambda o, s, h: (
        reductions.total(logits_of(o), where=s.train) / reductions.total(s.train)
    ),
    "labels": lambda o, s, h: reductions.mean(jnp.where(s.is_ood, logits_of(o), 0.0)),
}


@pytest.mark.parametrize("contract", WRONG_REGULARIZERS)
def test_a_wrong_regularizer_is_found(contract):
    with pytest.raises(AssertionError, match=contract):
        og.testing.check_regularizer(WRONG_REGULARIZERS[contract])


def test_a_right_regularizer_passes():
    og.testing.check_regularizer(
        lambda o, s, h: h["margin"] * reductions.mean(logits_of(o)),
        hyper={"margin": 0.5},
    )


WRONG_DETECTORS = {
    "score higher": lambda p, g, s: p(g).logits.max(-1),
    "is_ood": lambda p, g, s: -p(g).logits.max(-1) + 1.0 * s.is_ood,
    "sharded": lambda p, g, s: jnp.mean(p(g).logits) - p(g).logits.max(-1),
    r"\[N\]": lambda p, g, s: -p(g).logits,
    "finite": lambda p, g, s: -p(g).logits.max(-1) / 0.0,
}


@pytest.mark.parametrize("contract", WRONG_DETECTORS)
def test_a_wrong_detector_is_found(contract):
    with pytest.raises(AssertionError, match=contract):
        og.testing.check_detector(WRONG_DETECTORS[contract])


class Centered(nn.Module):
    """Takes the mean of what one device has: wrong on shards."""

    num_classes: int

    @nn.compact
    def __call__(self, graph, rates=None):
        x = Linear(self.num_classes)(graph.nodes)
        return Outputs(x - x.mean(0), x, ())


class Unmoved(nn.Module):
    """Has a number per node, so that nodes cannot be renumbered."""

    num_classes: int

    @nn.compact
    def __call__(self, graph, rates=None):
        x = Linear(self.num_classes)(graph.nodes)
        x += jnp.arange(graphs.num_nodes(graph))[:, None]
        return Outputs(x, x, ())


class Unkeyed(nn.Module):
    """Draws its dropout outside of JAX, whatever the key."""

    num_classes: int

    @nn.compact
    def __call__(self, graph, rates=None):
        x = Linear(self.num_classes)(graph.nodes)
        if rates is not None:
            x = x * (1 + rates.hidden * np.random.default_rng().random())
        return Outputs(x, x, ())


@pytest.mark.parametrize(
    ("module", "contract"),
    [(Centered, "sharded"), (Unmoved, "renumbering"), (Unkeyed, "same key")],
)
def test_a_wrong_backbone_is_found(module, contract):
    with pytest.raises(AssertionError, match=contract):
        og.testing.check_backbone(module)


def test_the_case_needs_one_device():
    assert og.testing.make_case().shards.senders.shape[0] == og.testing.SHARDS
    assert jax.device_count() >= 1
