"""Groups of unknown nodes, and what to label next."""

import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score, silhouette_samples

from oodgat_jax import report
from oodgat_jax.report import (
    groups,
    neighbors,
    page,
    projection,
    review,
    surroundings,
)


@pytest.fixture(scope="module")
def found(findings):
    return report.find_groups(findings)


def test_groups_are_the_communities_that_nobody_labeled(findings, found):
    blob = np.arange(len(findings.score)) % 5
    called = findings.unknown & (blob > 2)  # a few known nodes are called so too
    assert adjusted_rand_score(blob[called], found.of_node[called]) > 0.95
    assert [group.size for group in found.groups] == sorted(
        np.bincount(found.of_node[found.of_node >= 0]).tolist(), reverse=True
    )
    assert (found.of_node[~findings.unknown] == -1).all()


def test_a_group_says_what_it_is(findings, found):
    for number, group in enumerate(found.groups[:2]):
        inside = found.of_node == number
        assert 0.3 < group.cohesion <= 1
        assert len(group.typical) == 10
        assert inside[list(group.typical)].all()
        center = found.space[inside].mean(0)
        distance = np.linalg.norm(found.space - center, axis=1)
        assert distance[list(group.typical)].max() <= np.sort(distance[inside])[9]
        into = inside[findings.receivers] & (findings.senders != findings.receivers)
        share = inside[findings.senders[into]].mean()
        assert group.edges_inside == pytest.approx(share)
        assert group.nearest_class in findings.classes
        axis = int(findings.features[inside].mean(0).argmax())
        assert group.contrasts[0].name == findings.feature_names[axis]
        assert group.contrasts[0].difference > 0


def test_contrasts_of_sparse_features_are_those_of_dense_ones(findings):
    inside = np.arange(len(findings.score)) % 5 == 3
    dense = groups.contrasts(findings, inside)
    sparse = findings._replace(features=scipy.sparse.csr_array(findings.features))
    for one, other in zip(dense, groups.contrasts(sparse, inside), strict=True):
        assert one.name == other.name
        assert one.difference == pytest.approx(other.difference, rel=1e-4)


def test_there_are_as_many_groups_as_halves_agree_on():
    random = np.random.default_rng(0)
    blob = np.arange(300) % 3
    space = np.eye(3, 6)[blob] + random.normal(scale=0.1, size=(300, 6))
    found, method = groups.cluster(space.astype("f4"))
    assert adjusted_rand_score(blob, found) == 1
    assert method == "k-means; halves of the nodes agree by 100% on 3 groups"
    _, method = groups.cluster(random.normal(size=(300, 6)).astype("f4"))
    assert int(re.search(r"by (\d+)%", method)[1]) < 70


def test_surroundings_are_means_over_walks(findings):
    size = len(findings.features)
    step = np.zeros((size, size))
    np.add.at(step, (findings.receivers, findings.senders), 1)
    step /= step.sum(1, keepdims=True)
    walks = [np.asarray(findings.features, np.float64)]
    for _ in range(surroundings.ROUNDS):
        walks.append(step @ walks[-1])
    own, around = (
        x / np.linalg.norm(x, axis=1, keepdims=True) for x in (walks[0], sum(walks))
    )
    expected = np.hstack([surroundings.OWN * own, around])
    np.testing.assert_allclose(surroundings.space(findings), expected, atol=1e-5)


def test_sparse_features_of_many_columns_are_reduced(findings):
    blob = np.arange(len(findings.score)) % 5
    draw = np.random.default_rng(0).random((len(blob), 200))
    words = draw < np.where(np.arange(200) % 5 == blob[:, None], 0.3, 0.05)
    given = findings._replace(features=scipy.sparse.csr_array(words.astype("f4")))
    space = surroundings.space(given)
    assert space.shape == (len(blob), 2 * surroundings.MOST_COLUMNS)
    assert silhouette_samples(space, blob).mean() > 0.05


def test_few_unknown_nodes_are_not_grouped(findings):
    alone = findings._replace(threshold=float(np.sort(findings.score)[-5]))
    found = report.find_groups(alone)
    assert found.groups == ()
    assert "fewer than 12" in found.method


def test_many_nodes_join_the_nearest_group(monkeypatch, findings):
    monkeypatch.setattr(groups, "MOST_FITTED", 80)
    found = report.find_groups(findings)
    called = findings.unknown & (found.of_node >= 0)
    blob = np.arange(len(called)) % 5
    assert called.sum() > 0.8 * findings.unknown.sum()
    assert adjusted_rand_score(blob[called], found.of_node[called]) > 0.9


def test_reasons_take_turns_and_neighbors_wait(findings, found):
    picked = review.picks(findings, found, 9)
    assert [pick.reason.split()[0] for pick in picked] == 3 * [
        "typical",
        "score",
        "members",
    ]
    nodes = [pick.node for pick in picked]
    assert findings.unlabeled[nodes].all()
    gaps = np.abs(findings.score - findings.threshold)
    gaps[~findings.unlabeled] = np.inf
    assert picked[1].node == gaps.argmin()
    spreads = np.where(findings.unlabeled, findings.spread, -1)
    assert picked[2].node == spreads.argmax()
    edges = set(
        zip(findings.receivers.tolist(), findings.senders.tolist(), strict=True)
    )
    assert not any((a, b) in edges for a in nodes for b in nodes if a != b)
    # In the end, everyone comes.
    everyone = review.picks(findings, found, 10**6)
    nodes = [pick.node for pick in everyone]
    assert sorted(nodes) == np.flatnonzero(findings.unlabeled).tolist()


def test_a_suggestion_is_a_row_to_fill_in(findings, found):
    for row in report.suggest(findings, found, 5):
        node = findings.ids.index(row.id)
        assert row.score == findings.score[node]
        assert row.predicted == findings.classes[findings.probabilities[node].argmax()]
        assert row.called_unknown == (findings.score[node] > findings.threshold)
        assert row.label == ""


def test_one_member_cannot_disagree(findings, found):
    alone = findings._replace(spread=np.zeros_like(findings.spread))
    reasons = {pick.reason for pick in review.picks(alone, found, 30)}
    assert not any("disagree" in reason for reason in reasons)


def test_the_strongest_neighbors_come_first(findings):
    shown = np.arange(0, 600, 2)
    near = neighbors.strongest(findings, shown)
    for row in range(len(shown)):
        here = slice(*near.first[row : row + 2])
        assert (np.diff(near.attention[here]) <= 0).all()
        senders = findings.senders[findings.receivers == shown[row]]
        assert set(shown[near.nodes[here]]) == set(senders) & set(shown)
        assert near.degrees[row] == len(senders) - 1


def test_a_large_graph_is_shown_in_part_and_says_so(monkeypatch, findings, found):
    monkeypatch.setattr(page, "MOST_NODES", 400)
    monkeypatch.setattr(neighbors, "MOST_EACH", 1)
    monkeypatch.setattr(neighbors, "LEAST_EACH", 1)
    made = report.build(findings)
    assert len(made.meta["ids"]) == 400
    labeled = [findings.ids[node] for node in np.flatnonzero(findings.codes >= 0)]
    assert set(labeled) <= set(made.meta["ids"])
    assert made.meta["total"] == 600
    assert len(made.arrays["unlabeledScores"]) == findings.unlabeled.sum()
    assert "Of 600 nodes, the map and the tables hold 400" in made.meta["notes"][0]
    assert "at most" in made.meta["notes"][1]
    for group, known in zip(made.meta["groups"], found.groups, strict=True):
        names = [made.meta["ids"][place] for place in group["typical"]]
        assert names == [findings.ids[node] for node in known.typical]


def test_a_map_keeps_communities_together(findings, monkeypatch):
    blob = np.arange(len(findings.space)) % 5
    monkeypatch.setattr(projection, "TSNE_MOST", 300)
    cases = (300, "t-SNE"), (600, "t-SNE of 300 of the nodes"), (40, "PCA")
    for size, method in cases:
        places = projection.project(findings.space[:size])
        assert places.method == method
        assert np.abs(places.xy).max() <= 1
        assert silhouette_samples(places.xy, blob[:size]).mean() > 0.1
    assert projection.project(np.zeros((3, 1), "f4")).xy.shape == (3, 2)


def test_nodes_that_are_not_placed_go_beside_their_nearest():
    placed = np.array([[0.0, 0], [1, 0], [9, 9], [9, 8]])
    places = np.array([[0.0, 0], [0, 2], [5, 5], [7, 7]])
    found = projection._beside(np.array([[9.0, 9], [0.5, 0]]), placed, places)
    np.testing.assert_allclose(found[0], places[2], atol=1e-6)
    np.testing.assert_allclose(found[1], [0, 1], atol=0.4)


def test_only_directions_count():
    random = np.random.default_rng(0)
    hidden = random.normal(size=(50, 6))
    longer = hidden * random.uniform(1, 9, size=(50, 1))
    one, other = map(projection.member_space, (hidden, longer))
    np.testing.assert_allclose(np.abs(one), np.abs(other), atol=1e-5)  # signs are free
