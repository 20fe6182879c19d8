"""Protocols of the field: the published draws, shifts, and joined graphs."""

import functools
import hashlib
import json
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.sparse

from oodgat_jax import experiment, graphs, splits
from oodgat_jax.datasets.joined import join
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.types import Dataset, InputError

REFERENCE = json.loads(
    (Path(__file__).parent / "reference" / "protocols.json").read_text()
)


def fact(mask):
    ids = np.flatnonzero(mask).astype("<i8")
    return [ids.size, hashlib.sha256(ids.tobytes()).hexdigest()]


def facts(split):
    known = ~split.is_ood
    return {
        "train": fact(split.train),
        "valid": fact(split.val),
        "test": fact(split.test & known),
    }


@functools.cache
def made(name="cora", sparse=False, public=0) -> Dataset:
    """120 nodes of six classes on a ring with chords."""
    random = np.random.RandomState(2)
    nodes = np.arange(120, dtype=np.int32)
    features = random.rand(120, 5).astype(np.float32)
    pairs = np.stack([nodes, (nodes + 1) % 120])
    return Dataset(
        name=name,
        features=scipy.sparse.csr_array(features) if sparse else features,
        senders=pairs.ravel(),
        receivers=pairs[::-1].ravel(),
        labels=random.permutation(nodes % 6),
        id_classes=(0, 1),
        test_size=10,
        num_public_train=public,
    )


# --- the published draws -------------------------------------------------------


@pytest.mark.real_data
@pytest.mark.parametrize("case", REFERENCE["gnnsafe"])
def test_gnnsafe_draws_the_published_nodes(real, case):
    name, shift = case.split()
    dataset = real(name)
    if shift == "label":
        dataset = splits.label_shift(dataset)
    else:
        dataset = dataset._replace(id_classes=tuple(range(dataset.labels.max() + 1)))
    assert facts(splits.draw_gnnsafe(dataset, 123)) == REFERENCE["gnnsafe"][case]


@pytest.mark.real_data
@pytest.mark.parametrize("case", REFERENCE["grasp"])
def test_grasp_draws_the_published_nodes(real, case):
    name, seed = case.split()
    shift = splits.under_grasp(real(name))
    split = shift.draw(shift.scored, int(seed))
    assert facts(split) == REFERENCE["grasp"][case]
    labels = shift.scored.labels
    np.testing.assert_array_equal(
        split.test & split.is_ood, labels < min(labels[split.train])
    )


@pytest.mark.real_data
@pytest.mark.parametrize("case", REFERENCE["gpn"])
def test_gpn_draws_the_published_nodes(real, case):
    name, number = case.split()
    shift = splits.under_gpn(real(name))
    split = shift.draw(shift.scored, int(number))
    found = facts(split) | {"test_ood": fact(split.test & split.is_ood)}
    assert found == REFERENCE["gpn"][case]


@pytest.mark.real_data
def test_the_public_split_is_planetoids(real):
    for name, sizes in (("cora", (140, 500, 1000)), ("citeseer", (120, 500, 1000))):
        shift = splits.under_gnnsafe(real(name), "feature")
        split = shift.draw(shift.learned, 5)
        assert tuple(m.sum() for m in (split.train, split.val, split.test)) == sizes
    labels = shift.learned.labels
    assert (labels[split.test] >= 0).all()  # Citeseer has test nodes without a label
    assert np.flatnonzero(split.test)[0] == 2312


# --- shifts --------------------------------------------------------------------


@pytest.mark.real_data
def test_blocks_are_those_of_the_published_generator(real):
    expected = {k: np.array(v) for k, v in REFERENCE["structure"]["cora"].items()}
    dataset = real("cora")
    found = {name: [] for name in expected}
    for seed in range(10):
        drawn = splits.structure_shift(dataset, seed)
        ends = np.stack([drawn.senders, drawn.receivers])
        assert (ends[0] != ends[1]).all()
        assert len(np.unique(ends[0] * 2708 + ends[1])) == ends.shape[1]
        block = np.minimum(ends // (2708 // 7), 6)
        degree = np.bincount(ends[1], minlength=2708)
        found["edges"].append(ends.shape[1])
        found["within_blocks"].append((block[0] == block[1]).sum())
        found["isolated"].append((degree == 0).sum())
    for name, values in expected.items():
        gap = abs(np.mean(found[name]) - values.mean())
        assert gap < 4 * values.std() / np.sqrt(5), name


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_mixtures_of_two_nodes(sparse):
    dataset = made(sparse=sparse)
    drawn = splits.feature_shift(dataset, 3)
    mixed, plain = (
        d.features.toarray() if sparse else d.features for d in (drawn, dataset)
    )
    random = np.random.default_rng([3, 1])
    one, other = random.integers(0, 120, (2, 120))
    share = random.random(120)[:, None]
    np.testing.assert_allclose(
        mixed, share * plain[one] + (1 - share) * plain[other], rtol=1e-5
    )
    again = splits.feature_shift(dataset, 4)
    assert abs(again.features - drawn.features).sum() > 1
    np.testing.assert_array_equal(drawn.senders, dataset.senders)


def test_left_out_classes_and_the_exposed_one():
    shift = splits.under_gnnsafe(made(), "label")
    split = shift.draw(shift.scored, 123)
    assert shift.scored.id_classes == (4, 5)
    labels = made().labels
    np.testing.assert_array_equal(split.exposure, labels == 3)
    np.testing.assert_array_equal(split.test & split.is_ood, labels < 3)
    assert (split.train | split.val | split.test | split.exposure).all()
    assert (split.train.sum(), split.val.sum()) == (4, 4)
    assert not (split.train & split.is_ood).any()
    assert not (split.val & split.is_ood).any()


@pytest.mark.parametrize("kind", ["structure", "feature"])
def test_other_graphs_stand_beside_the_one_learned_from(kind):
    shift = splits.under_gnnsafe(made("amazon-photo"), kind)
    learned, exposed, scored = (shift.draw(d, 123) for d in shift[:3])
    assert shift.exposed.components == shift.scored.components == (120, 120)
    for split in (exposed, scored):
        np.testing.assert_array_equal(split.train[:120], learned.train)
        np.testing.assert_array_equal(split.val[:120], learned.val)
        assert not (split.train | split.val)[120:].any()
        assert split.is_ood[120:].all()
    assert exposed.exposure.tolist() == [False] * 120 + [True] * 120
    np.testing.assert_array_equal(exposed.test[:120], learned.test)
    assert scored.test[120:].all()
    assert not scored.exposure.any()
    differ = abs(shift.exposed.features - shift.scored.features).sum() > 0
    assert differ == (kind == "feature")
    other = splits.under_gnnsafe(made("amazon-photo"), kind, seed=7)
    assert not all(
        np.array_equal(a, b)
        for a, b in zip(other.scored[1:4], shift.scored[1:4], strict=True)
    )


def test_protocols_refuse_what_they_do_not_have():
    unknown = made("mine")
    for protocol in (splits.under_grasp, splits.under_gpn, splits.label_shift):
        with pytest.raises(InputError, match="leaves no classes of mine out"):
            protocol(unknown)
    with pytest.raises(InputError, match="There is no shift 'edges'"):
        splits.under_gnnsafe(unknown, "edges")
    with pytest.raises(InputError, match="numbered from 1 on"):
        splits.draw_gpn(made(), 0)
    pubmed = made("pubmed")
    with pytest.raises(InputError, match="left with 1 known class"):
        splits.label_shift(pubmed._replace(labels=pubmed.labels % 3))


# --- joined graphs -------------------------------------------------------------


def test_joined_graphs_are_counted_and_kept_apart():
    joined = join(made(), made()._replace(labels=np.zeros(120, np.int32)))
    graph = graphs.build(joined)
    assert graph.n_node.tolist() == [120, 120]
    assert graph.n_edge.tolist() == [360, 360]
    assert joined.labels[120:].tolist() == [6] * 120
    with pytest.raises(InputError, match="joined graphs to another"):
        graphs.from_edges(
            np.ones((4, 1)), np.array([1]), np.array([2]), components=(2, 2)
        )
    wide = made()._replace(features=np.ones((120, 6), np.float32))
    with pytest.raises(InputError, match="cannot be joined"):
        join(made(), wide)


def score(scored, learned, draw):
    method = METHODS["gcn"]._replace(detectors=("energy", "kNN"))
    recipe = recipes.override(
        recipes.recipe(None, method), ["max_steps=11", "hidden=4"]
    )
    return experiment.execute(
        learned, "gcn", recipe, [123], [0, 1], definition=method, draw=draw,
        scored_on=experiment.Scored(scored, draw),
    )  # fmt: skip


def test_a_second_graph_is_scored_and_changes_no_training():
    """Another test graph gives the same parameters, bit for bit."""
    shift = splits.under_gnnsafe(made("amazon-photo"), "structure")
    first = score(shift.scored, shift.learned, shift.draw)
    other = splits.under_gnnsafe(made("amazon-photo"), "feature").scored
    second = score(other, shift.learned, shift.draw)
    alone = score(shift.learned, shift.learned, shift.draw)
    assert first.scores["energy"].shape == (2, 240)
    for found in (second, alone):
        jax.tree.map(np.testing.assert_array_equal, first.states, found.states)
        for name in ("energy", "kNN"):
            near = found.scores[name][:, :120]
            np.testing.assert_allclose(
                first.scores[name][:, :120], near, rtol=1e-5, atol=1e-6
            )
    assert abs(first.scores["energy"] - second.scores["energy"])[:, 120:].max() > 1e-3
    assert first.split_digest != alone.split_digest
    with pytest.raises(InputError, match="must begin with the nodes learned from"):
        score(shift.learned, shift.scored, shift.draw)
