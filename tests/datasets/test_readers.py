"""Readers, on small files in the formats of the real ones, good and bad."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from support import fuzz_readers, raw_files
from support.fuzz_readers import WRITERS

from oodgat_jax.datasets.readers import musae, planetoid
from oodgat_jax.types import InputError


@pytest.fixture
def lastfm(monkeypatch, tmp_path):
    """Forty nodes, forty artists, reduced to four dimensions."""
    monkeypatch.setattr(musae, "LASTFM_FEATURES", 40)
    monkeypatch.setattr(musae, "LASTFM_DIMENSIONS", 4)
    (tmp_path / "lastfm-asia").mkdir()
    for name, text in raw_files.lastfm_files().items():
        (tmp_path / "lastfm-asia" / name).write_text(text)
    return raw_files.lastfm_row()


def edges_of(dataset):
    return list(zip(dataset.senders.tolist(), dataset.receivers.tolist(), strict=True))


# --- Planetoid -----------------------------------------------------------------


def test_planetoid_places_test_rows_by_index(load, tmp_path):
    dataset = load(raw_files.write_planetoid(tmp_path))
    dense = dataset.features.toarray()
    assert isinstance(dataset.features, scipy.sparse.csr_array)
    assert dense[0].tolist() == [0.5, 0, 0, 0.5]
    assert dense[6].tolist() == [1, 0, 0, 0]
    assert dense[7].tolist() == [0, 0, 0, 0]
    assert dense[8].tolist() == [0, 0, 0.5, 0.5]
    assert dataset.labels.tolist() == [0, 1, 2, 0, 1, 2, 1, -1, 2]
    pairs = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 8), (5, 6), (6, 5), (8, 2)]
    assert sorted(edges_of(dataset)) == pairs
    assert edges_of(dataset) == sorted(pairs, key=lambda edge: (edge[1], edge[0]))
    assert dataset.num_public_train == 3


class Attack:
    """Pickles to an instruction that makes a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


def test_a_malicious_pickle_runs_nothing(load, tmp_path):
    source = raw_files.write_planetoid(tmp_path)
    marker = tmp_path / "marker"

    path = tmp_path / "planetoid" / "ind.cora.graph"
    path.write_bytes(pickle.dumps(Attack(marker), protocol=2))
    pickle.loads(path.read_bytes()).close()
    marker.unlink()  # the attack works on a plain unpickler
    with pytest.raises(InputError, match=r"ind\.cora\.graph cannot be read.*open"):
        load(source)
    assert not marker.exists()


@pytest.mark.parametrize(
    "name",
    ["os system", "__builtin__ eval", "numpy load", "numpy.testing runstring",
     "scipy.sparse.csr _data_matrix", "__builtin__ getattr", "functools partial"],
)  # fmt: skip
def test_other_names_in_a_pickle_are_refused(tmp_path, name):
    path = tmp_path / "file"
    path.write_bytes(b"\x80\x02c" + name.replace(" ", "\n").encode() + b"\n.")
    with pytest.raises(InputError, match="which no Planetoid file needs"):
        planetoid.unpickle(path)


def out_of_range_matrix():
    matrix = raw_files.planetoid_content()["allx"]
    matrix.indices[0] = 9
    return matrix


def test_a_pickle_cannot_ask_for_all_memory(tmp_path):
    """LONG_BINPUT at two billion made the unpickler reserve 32 GB."""
    (tmp_path / "bomb").write_bytes(b"\x80\x02}r\x00\x00\x00\x7f.")
    with pytest.raises(InputError, match="remembers an object at place 2130706432"):
        planetoid.unpickle(tmp_path / "bomb")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("test.index", "8\n8\n"),
        ("test.index", "8\n5\n"),
        ("test.index", "8\n9\n"),
        ("test.index", "8\n"),
        ("test.index", "8\nsix\n"),
        ("graph", {0: [9]}),
        ("graph", {-1: [0]}),
        ("graph", {0: ["1"]}),
        ("graph", {0: 1}),
        ("graph", [[1], [0]]),
        ("ally", np.eye(6, dtype=np.int32)[:5]),
        ("ally", np.full((6, 3), 1)),
        ("ally", np.full((6, 3), 0.5)),
        ("ty", np.array(["a", "b"])),
        ("tx", scipy.sparse.csr_matrix(np.ones((2, 5), np.float32))),
        ("tx", np.ones((2, 4))),
        ("allx", out_of_range_matrix()),
        ("allx", scipy.sparse.csr_matrix(np.full((6, 4), np.nan))),
    ],
)
def test_wrong_planetoid_content_is_refused(load, tmp_path, part, value):
    source = raw_files.write_planetoid(tmp_path, **{part: value})
    with pytest.raises(InputError, match=rf"ind\.cora\.{part}"):
        load(source)


# --- npz -----------------------------------------------------------------------


def test_npz_gives_graph_features_and_labels(load, tmp_path):
    dataset = load(raw_files.write_npz(tmp_path))
    assert edges_of(dataset) == [(1, 0), (0, 1), (3, 2), (2, 3)]
    assert dataset.features.toarray()[:3].tolist() == [
        [0.5, 0.5, 0],
        [0] * 3,
        [0, 0, 1],
    ]
    assert dataset.labels.tolist() == [0, 1, 2, 1]
    assert dataset.id_classes == (0, 2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("labels", None),
        ("labels", np.array([0, 1, 2])),
        ("labels", np.array([0, 1, 2, 3])),
        ("labels", np.array([0, 1, 2, -1])),
        ("labels", np.array([0.5, 1, 2, 1])),
        ("labels", np.array([0, 1, 2, [1]], dtype=object)),
        ("adj_indices", np.array([1, 0, 3, 4])),
        ("adj_indices", np.array([1, 0, 3, -1])),
        ("adj_indices", np.array([1.5, 0, 3, 3])),
        ("adj_indptr", np.array([0, 1, 2, 3])),
        ("adj_indptr", np.array([0, 2, 1, 3, 4])),
        ("adj_shape", np.array([5, 4])),
        ("adj_shape", np.array([4, 5])),
        ("adj_shape", np.array([4])),
        ("attr_data", np.full(6, np.inf)),
        ("attr_data", np.array(["1"] * 6)),
    ],
)
def test_wrong_npz_content_is_refused(load, tmp_path, key, value):
    source = raw_files.write_npz(tmp_path, **{key: value})
    with pytest.raises(InputError, match=r"amazon_electronics_photo\.npz"):
        load(source)


def test_a_pickle_inside_npz_runs_nothing(load, tmp_path):
    marker = tmp_path / "marker"
    labels = np.array([Attack(marker)] * 4, dtype=object)
    source = raw_files.write_npz(tmp_path, labels=labels)
    with pytest.raises(InputError, match="array of type object"):
        load(source)
    assert not marker.exists()


# --- csv and json --------------------------------------------------------------


def test_facebook_pages(load, tmp_path):
    dataset = load(raw_files.write_facebook(tmp_path))
    assert dataset.labels.tolist() == [3, 0, 2, 1]
    assert edges_of(dataset) == [(1, 0), (0, 1), (3, 1), (1, 3)]
    assert isinstance(dataset.features, scipy.sparse.csr_array)
    dense = dataset.features.toarray().tolist()
    assert dense == [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("edges.csv", ""),
        ("edges.csv", "id_1,id_2\n"),
        ("edges.csv", "id_1,id_2\n0,4\n"),
        ("edges.csv", "id_1,id_2\n0,-1\n"),
        ("edges.csv", "id_1,id_2\n0,one\n"),
        ("edges.csv", "id_1,id_2\n0,1\n1"),
        ("edges.csv", "id_1,id_2,id_3\n0,1,2\n"),
        ("target.csv", "id,page_type\n0,a\n2,b\n"),
        ("target.csv", 'id,page_type\n0,"a\n'),
        ("features.json", '{"0": [1], "1": [2'),
        ("features.json", "[[1], [2]]"),
        ("features.json", '{"9": [1]}'),
        ("features.json", '{"0": ["x"]}'),
        ("features.json", '{"0": [0.5]}'),
        ("features.json", '{"0": 3}'),
        ("features.json", "[" * 100_000),
    ],
)
def test_wrong_csv_and_json_are_refused(load, tmp_path, part, text):
    name = f"musae_facebook_{part}"
    source = raw_files.write_facebook(tmp_path, **{name: text})
    with pytest.raises(InputError, match=name):
        load(source)


def test_a_csv_row_cut_short_is_refused(tmp_path):
    path = tmp_path / "target.csv"
    path.write_text("id,target\n1,1\n0")
    with pytest.raises(InputError, match=r"target\.csv has 1 fields in row 2"):
        musae._targets(path)


def test_lastfm_features_are_reduced_the_same_every_time(load, lastfm):
    dataset = load(lastfm)
    again = load(lastfm)
    assert isinstance(dataset.features, np.ndarray)
    assert dataset.features.shape == (40, 4)
    np.testing.assert_array_equal(dataset.features, again.features)
    # Not scaled: what the SVD keeps of unit-length rows is not a distribution.
    assert np.abs(dataset.features.sum(axis=1) - 1).max() > 0.1
    assert dataset.labels.tolist() == [i % 3 for i in range(40)]


def test_lastfm_svd_keeps_what_it_can():
    low_rank = scipy.sparse.csr_array(np.kron(np.eye(3), np.ones((5, 4))))
    reduced = musae.reduce(low_rank, 3)
    dense = low_rank.toarray()
    np.testing.assert_allclose(reduced @ reduced.T, dense @ dense.T, atol=1e-4)


def test_lastfm_with_other_features_is_refused(load, lastfm, monkeypatch):
    monkeypatch.setattr(musae, "LASTFM_FEATURES", 41)
    with pytest.raises(InputError, match=r"features\.json holds 40 features, not 41"):
        load(lastfm)


def test_wiki_cs_stays_directed(load, tmp_path):
    dataset = load(raw_files.write_wiki_cs(tmp_path))
    assert edges_of(dataset) == [(2, 0), (0, 1), (0, 2)]
    assert isinstance(dataset.features, np.ndarray)
    assert dataset.features.tolist() == [[0.5, -1.0], [0, 0], [1, 2]]


@pytest.mark.parametrize(
    "replaced",
    [
        {"links": [[1], [3], [0]]},
        {"links": [[1], [0.5], [0]]},
        {"links": [[1], [0]]},
        {"links": 3},
        {"labels": [0, 1, 2]},
        {"labels": [0, 1]},
        {"labels": None},
        {"features": [[1.0], [1.0, 2.0], [0.0]]},
        {"features": [1.0, 2.0, 3.0]},
        {"features": [[1, 2], [1, float("nan")], [0, 0]]},
        {"features": [["a", "b"]] * 3},
    ],
)
def test_wrong_wiki_cs_is_refused(load, tmp_path, replaced):
    source = raw_files.write_wiki_cs(tmp_path, **replaced)
    with pytest.raises(InputError, match=r"data\.json"):
        load(source)


# --- damage --------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_truncated_files_are_refused(load, tmp_path, name):
    source = WRITERS[name](tmp_path)
    for file_name in source.files:
        path = tmp_path / source.folder / file_name
        whole = path.read_bytes()
        for length in (0, 1, len(whole) // 2, len(whole) - 2):
            path.write_bytes(whole[:length])
            with pytest.raises(InputError):
                load(source)
        path.write_bytes(whole)
    load(source)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRITERS)
def test_random_damage_raises_nothing_but_input_errors(load, tmp_path, name):
    """The first inputs of `fuzz_readers.py`."""
    ended = fuzz_readers.fuzz(name, 200, 0, load, tmp_path)
    assert ended["refused"] > 100
    assert ended.total() == 200
