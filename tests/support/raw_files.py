"""Writers of small files in exactly the formats of the real raw files.

Each `write_*` puts the files of a tiny graph below a data folder, and `tiny` gives
the table row with that graph's counts.
"""

import io
import json
import pickle
import struct
from pathlib import Path
from typing import ClassVar

import numpy as np
import scipy.sparse

from oodgat_jax.datasets import DATASETS, Source

PLANETOID_PARTS = ("allx", "tx", "ally", "ty", "graph", "test.index")


class Python2Pickler(pickle._Pickler):
    """Writes numpy and scipy objects the way Python 2 did."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_text(self, value):
        data = value if isinstance(value, bytes) else value.encode("latin1")
        self.write(pickle.BINSTRING + struct.pack("<i", len(data)) + data)
        self.memoize(value)

    dispatch[bytes] = save_text
    dispatch[str] = save_text


def python2_pickle(value) -> bytes:
    stream = io.BytesIO()
    Python2Pickler(stream, protocol=2).dump(value)
    renamed = {
        b"cscipy.sparse._csr\n": b"cscipy.sparse.csr\n",
        b"cnumpy._core.multiarray\n": b"cnumpy.core.multiarray\n",
    }
    data = stream.getvalue()
    for new, old in renamed.items():
        data = data.replace(new, old)
    return data


def tiny(name: str, **counts) -> Source:
    """The row of a data set with a tiny graph's counts and no digests."""
    source = DATASETS[name]
    return source._replace(files=dict.fromkeys(source.files), **counts)


def planetoid_content() -> dict:
    """Six nodes in allx, test nodes 8 and 6; node 7 is missing, as in Citeseer."""
    one_hot = np.eye(3, dtype=np.int32)
    allx = np.zeros((6, 4), np.float32)
    allx[np.arange(6), [0, 1, 2, 3, 0, 1]] = 1
    allx[0, 3] = 1
    return {
        "allx": scipy.sparse.csr_matrix(allx),
        "tx": scipy.sparse.csr_matrix(np.float32([[0, 0, 2, 2], [5, 0, 0, 0]])),
        "ally": one_hot[[0, 1, 2, 0, 1, 2]],
        "ty": one_hot[[2, 1]],
        "graph": {0: [1, 1, 0], 1: [0, 2], 2: [8], 6: [5], 7: []},
        "test.index": "8\n6\n",
    }


def write_planetoid(folder: Path, name: str = "cora", **replaced) -> Source:
    content = planetoid_content() | replaced
    (folder / "planetoid").mkdir(parents=True, exist_ok=True)
    for part, value in content.items():
        data = value.encode() if part == "test.index" else python2_pickle(value)
        (folder / "planetoid" / f"ind.{name}.{part}").write_bytes(data)
    counts = {"nodes": 9, "edges": 8, "features": 4, "classes": 3}
    return tiny(name, **counts, id_classes=(0, 1), num_public_train=3)


def npz_content() -> dict:
    links = scipy.sparse.csr_array(
        (np.ones(4, np.float32), ([0, 1, 2, 3], [1, 0, 3, 3])), shape=(4, 4)
    )
    features = scipy.sparse.csr_array(
        np.float32([[1, 1, 0], [0, 0, 0], [0, 0, 1], [1, 1, 1]])
    )
    content = {"labels": np.array([0, 1, 2, 1])}
    for prefix, matrix in (("adj", links), ("attr", features)):
        for part in ("data", "indices", "indptr", "shape"):
            content[f"{prefix}_{part}"] = np.asarray(getattr(matrix, part))
    return content


def write_npz(folder: Path, name: str = "amazon-photo", **replaced) -> Source:
    content = npz_content() | replaced
    (folder / "gnn-benchmark").mkdir(parents=True, exist_ok=True)
    (file_name,) = DATASETS[name].files
    arrays = {key: value for key, value in content.items() if value is not None}
    np.savez(folder / "gnn-benchmark" / file_name, **arrays)
    return tiny(name, nodes=4, edges=4, features=3, classes=3, id_classes=(0, 2))


FACEBOOK = {
    "musae_facebook_edges.csv": "id_1,id_2\n0,1\n1,0\n2,2\n1,3\n",
    "musae_facebook_target.csv": (
        "id,facebook_id,page_name,page_type\n"
        '1,11,"News, daily",company\n0,10,Zoë,tvshow\n'
        '3,13,"A ""B""",government\n2,12,P,politician\n'
    ),
    "musae_facebook_features.json": '{"3": [7], "0": [2, 5, 5], "1": [5], "2": []}',
}


def facebook_row() -> Source:
    return tiny("facebook-pages", nodes=4, edges=4, features=3, classes=4)


def write_facebook(folder: Path, **replaced) -> Source:
    (folder / "facebook-pages").mkdir(parents=True, exist_ok=True)
    for name, text in (FACEBOOK | replaced).items():
        (folder / "facebook-pages" / name).write_text(text, encoding="utf-8")
    return facebook_row()


def lastfm_files(num_nodes: int = 40) -> dict[str, str]:
    """A ring whose node i likes artists i and i + 1."""
    nodes = range(num_nodes)
    likes = {str(i): [i, (i + 1) % num_nodes] for i in nodes}
    edges = [f"{i},{(i + 1) % num_nodes}" for i in nodes]
    return {
        "lastfm_asia_edges.csv": "\n".join(["node_1,node_2", *edges]) + "\n",
        "lastfm_asia_target.csv": "\n".join(
            ["id,target", *(f"{i},{i % 3}" for i in nodes)]
        ),
        "lastfm_asia_features.json": json.dumps(likes),
    }


def lastfm_row(num_nodes: int = 40) -> Source:
    counts = {"nodes": num_nodes, "edges": 2 * num_nodes, "features": 4, "classes": 3}
    return tiny("lastfm-asia", **counts)


def wiki_cs_content() -> dict:
    return {
        "features": [[0.5, -1.0], [0.0, 0.0], [1, 2]],
        "labels": [0, 1, 1],
        "links": [[1, 2, 1], [], [2, 0]],
        "train_masks": [[True, False, False]],
        "val_masks": [[False, True, False]],
        "stopping_masks": [[False, False, True]],
        "test_mask": [False, False, True],
    }


def wiki_cs_row() -> Source:
    return tiny("wiki-cs", nodes=3, edges=5, features=2, classes=2)


def write_wiki_cs(folder: Path, **replaced) -> Source:
    (folder / "wiki-cs").mkdir(parents=True, exist_ok=True)
    text = json.dumps(wiki_cs_content() | replaced)
    (folder / "wiki-cs" / "data.json").write_text(text)
    return wiki_cs_row()
