"""The table, assembly, digits, and the counts of the real files."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.datasets
from support import raw_files

from oodgat_jax import datasets
from oodgat_jax.datasets.loading import divide_by_row_sums, tidy_edges
from oodgat_jax.datasets.readers import musae
from oodgat_jax.types import InputError


def edges_of(dataset):
    return list(zip(dataset.senders.tolist(), dataset.receivers.tolist(), strict=True))


# --- the table -----------------------------------------------------------------


@pytest.mark.parametrize("name", datasets.DATASETS)
def test_rows_are_consistent(name):
    source = datasets.DATASETS[name]
    assert source.name == name
    assert list(source.id_classes) == sorted(set(source.id_classes))
    assert set(source.id_classes) < set(range(source.classes))
    assert all(digest is None or len(digest) == 64 for digest in source.files.values())
    assert bool(source.files) == source.base_url.startswith("https://")


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match=r"no data set 'corra'.*cora, citeseer"):
        datasets.load("corra")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"planetoid/ind\.cora\.allx does not exist"):
        datasets.load("cora", tmp_path)


def test_the_environment_names_the_data_folder(monkeypatch, tmp_path):
    source = raw_files.write_npz(tmp_path)
    monkeypatch.setitem(datasets.DATASETS, source.name, source)
    monkeypatch.setenv("OODGAT_DATA_DIR", str(tmp_path))
    assert datasets.load(source.name).num_nodes == 4


def test_an_altered_file_in_the_data_folder_is_refused(tmp_path):
    raw_files.write_npz(tmp_path)
    with pytest.raises(InputError, match=r"photo\.npz is not the published file"):
        datasets.load("amazon-photo", tmp_path)


@pytest.mark.parametrize("count", ["nodes", "edges", "features", "classes"])
def test_wrong_counts_are_refused(load, tmp_path, count):
    source = raw_files.write_npz(tmp_path)
    source = source._replace(**{count: getattr(source, count) + 1})
    with pytest.raises(InputError, match=rf"amazon-photo hold \d {count} where \d"):
        load(source)


# --- edges and features --------------------------------------------------------


def test_edges_are_tidied_and_sorted():
    senders, receivers = np.array([3, 0, 0, 2, 1]), np.array([1, 3, 3, 2, 3])
    sent, received = tidy_edges(senders, receivers, 4, directed=False)
    assert sent.tolist() == [3, 3, 0, 1]
    assert received.tolist() == [0, 1, 3, 3]
    assert sent.dtype == received.dtype == np.int32
    sent, received = tidy_edges(senders, receivers, 4, directed=True)
    assert sent.tolist() == [3, 0, 1]
    assert received.tolist() == [1, 3, 3]


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_rows_sum_to_one_and_zero_rows_stay(form):
    features = form(np.float32([[1, 3, 0], [0, 0, 0]]))
    scaled = divide_by_row_sums(features)
    dense = scaled if isinstance(scaled, np.ndarray) else scaled.toarray()
    assert dense.tolist() == [[0.25, 0.75, 0], [0, 0, 0]]
    assert scaled.dtype == np.float32
    assert features.sum() == 4


# --- digits --------------------------------------------------------------------


def test_digits_links_nearest_neighbors_both_ways():
    dataset = datasets.digits(k=3)
    pixels = sklearn.datasets.load_digits().data
    edges = set(edges_of(dataset))
    assert len(edges) == dataset.senders.size
    assert edges == {(receiver, sender) for sender, receiver in edges}
    for node in (0, 700, 1796):
        distances = ((pixels - pixels[node]) ** 2).sum(axis=1)
        distances[node] = np.inf
        nearest = np.argsort(distances, kind="stable")[:3]
        assert {(int(other), node) for other in nearest} <= edges
    assert 3 * 1797 <= len(edges) < 6 * 1797


def test_digits_defaults_and_choices():
    dataset = datasets.load("digits")
    assert dataset.features.dtype == np.float32
    assert dataset.features.max() == 1
    assert dataset.num_nodes == 1797
    np.testing.assert_array_equal(dataset.senders, datasets.digits().senders)
    other = datasets.digits(k=2, id_classes=(4, 0), test_size=7)
    assert (other.id_classes, other.test_size) == ((0, 4), 7)
    assert other.senders.size < dataset.senders.size


@pytest.mark.parametrize("k", [0, 1797])
def test_digits_with_impossible_k(k):
    with pytest.raises(InputError, match=f"k = {k} "):
        datasets.digits(k=k)


@pytest.mark.parametrize("id_classes", [(), (1, 10), tuple(range(10))])
def test_digits_with_impossible_classes(id_classes):
    with pytest.raises(InputError, match="some, and not all"):
        datasets.digits(id_classes=id_classes)


# --- real files ----------------------------------------------------------------

CLASS_SIZES = {
    "cora": [351, 217, 418, 818, 426, 298, 180],
    "citeseer": [249, 590, 668, 701, 596, 508],
    "pubmed": [4103, 7739, 7875],
    "amazon-photo": [369, 1686, 703, 915, 882, 823, 1941, 331],
    "amazon-computers": [436, 2142, 1414, 542, 5158, 308, 487, 818, 2156, 291],
    "coauthor-cs": [708, 462, 2050, 429, 1394, 2193, 371, 924, 775, 118, 1444, 2033,
                    420, 4136, 876],
    "facebook-pages": [6495, 6880, 5768, 3327],
}  # fmt: skip
NONZEROS = {"cora": 49216, "pubmed": 988031, "coauthor-cs": 1092079}
ISOLATED = {"citeseer": 48, "amazon-photo": 115, "amazon-computers": 281}


@pytest.mark.real_data
@pytest.mark.parametrize("name", CLASS_SIZES)
def test_real_counts(real, name):
    # Nodes, edges, features and classes are compared with the table on loading.
    dataset = real(name)
    known = dataset.labels[dataset.labels >= 0]
    assert np.bincount(known).tolist() == CLASS_SIZES[name]
    assert dataset.features.nnz == NONZEROS.get(name, dataset.features.nnz)
    isolated = dataset.num_nodes - np.unique(dataset.receivers).size
    assert isolated == ISOLATED.get(name, isolated)
    sums = np.asarray(dataset.features.sum(axis=1)).reshape(-1)
    assert np.all((np.abs(sums - 1) < 1e-4) | (sums == 0))
    assert dataset.features.dtype == np.float32


@pytest.mark.real_data
def test_citeseer_has_15_bare_nodes(real):
    dataset = real("citeseer")
    bare = np.flatnonzero(dataset.labels < 0)
    assert bare.size == 15
    assert np.isin(dataset.receivers, bare).sum() == 16
    assert dataset.features[bare].nnz == 0


@pytest.mark.real_data
def test_lastfm_edges_and_targets(data_dir):
    source = datasets.DATASETS["lastfm-asia"]
    folder = data_dir / "lastfm-asia"
    labels = musae._targets(folder / "lastfm_asia_target.csv")
    links = musae._links(folder / "lastfm_asia_edges.csv", len(labels))
    senders, _ = tidy_edges(*links, len(labels), directed=False)
    assert (len(labels), senders.size) == (source.nodes, source.edges)
    assert len(set(labels)) == source.classes
