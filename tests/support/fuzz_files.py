"""Mutated models, graphs, tables, checkpoints and records: each is read, or refused.

  python tests/support/fuzz_files.py --count=10000
  python tests/support/fuzz_files.py --count=1000 --targets=npz-csr --seed=7

No exception but InputError may come out of a reader, none may take more than five
seconds of the processor, and the process has two gigabytes beyond what it began with.
A file is changed byte by byte, or in its structure, so that the change gets past
checksums: an entry of the JSON, a leaf of the parameters, an array of the npz, is
replaced by something odd.
"""

import argparse
import collections
import contextlib
import faulthandler
import hashlib
import importlib.util
import io
import json
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.serialization
import numpy as np
import scipy.sparse

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from oodgat_jax.datasets import arrays
from oodgat_jax.datasets.readers import tables
from oodgat_jax.estimator import inputs, persistence
from oodgat_jax.records import append_records, read_lines, read_records
from oodgat_jax.training import Checkpoints
from oodgat_jax.types import InputError
from support import example_records, fuzz_readers, fuzz_tables, hammer_saves

SECONDS = 5  # of the processor, for one file
MEMORY = 2 << 30
Random = np.random.Generator
DEEP: list = []
for _ in range(300):
    DEEP = [DEEP]
ODD = (
    *(None, True, False, 0, -1, 1, 2, 7, 10**9, 2**31, 2**63, 10**30, -(10**12)),
    *(0.5, -0.5, 1e308, 1e-308, float("nan"), float("inf"), "", "x", "nan", "mlp"),
    *([], {}, [0], [None], {"a": 1}, ["a", "a"], [[1], [2]], DEEP, "\ud800", "9" * 40),
)


class Target(NamedTuple):
    """A kind of file: how it is made and changed, and what reads it."""

    make: Callable[[pathlib.Path], None]
    change: Callable[[pathlib.Path, Random], None]
    read: Callable[[pathlib.Path], Any]


def odd(random: Random) -> Any:
    """Something that does not belong anywhere."""
    return ODD[int(random.integers(len(ODD)))]


def change_tree(tree: Any, random: Random) -> Any:
    """The tree with one entry replaced, removed or doubled, at any depth."""
    if isinstance(tree, dict) and tree and random.random() < 0.95:
        key = list(tree)[int(random.integers(len(tree)))]
        if random.random() < 0.1:
            return {name: value for name, value in tree.items() if name != key}
        return tree | {key: change_tree(tree[key], random)}
    if isinstance(tree, list) and tree and random.random() < 0.7:
        at = int(random.integers(len(tree)))
        if random.random() < 0.2:
            return tree + tree[at:]
        return [*tree[:at], change_tree(tree[at], random), *tree[at + 1 :]]
    return odd(random)


def change_bytes(path: pathlib.Path, random: Random) -> None:
    """Changes a file as the readers of raw files are tried."""
    path.write_bytes(fuzz_readers.mutate(path.read_bytes(), random))


# --- Models --------------------------------------------------------------------


def make_model(folder: pathlib.Path) -> None:
    """A saved model."""
    persistence.save(folder / "model", hammer_saves.model(3))


def change_facts(folder: pathlib.Path, random: Random) -> None:
    """Changes model.json."""
    path = folder / "model" / "model.json"
    if random.random() < 0.3:
        change_bytes(path, random)
        return
    tree = json.loads(path.read_text())
    for _ in range(random.integers(1, 4)):
        tree = change_tree(tree, random)
    path.write_text(json.dumps(tree), errors="surrogatepass")


def change_parameters(folder: pathlib.Path, random: Random) -> None:
    """Changes the parameters, and writes their digest into model.json."""
    (path,) = (folder / "model").glob("parameters-*")
    if random.random() < 0.5:
        change_bytes(path, random)
    else:
        tree = flax.serialization.msgpack_restore(path.read_bytes())
        with contextlib.suppress(ValueError, TypeError):  # text has no form there
            changed = odd_leaf(tree, random)
            path.write_bytes(flax.serialization.msgpack_serialize(changed))
    facts = json.loads((folder / "model" / "model.json").read_text())
    facts["parameters"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "model" / "model.json").write_text(json.dumps(facts))


def odd_leaf(tree: Any, random: Random) -> Any:
    """The tree with one leaf replaced by an odd array."""
    if isinstance(tree, dict) and tree:
        key = list(tree)[int(random.integers(len(tree)))]
        return tree | {key: odd_leaf(tree[key], random)}
    return odd_array(np.asarray(tree), random)


# --- Graphs --------------------------------------------------------------------


def odd_array(array: np.ndarray, random: Random) -> np.ndarray:
    """An array of another type, shape or content."""
    kinds = ("f4", "f8", "i4", "i8", "u1", "u8", "?", "c8", "U3", "f2")
    choice = random.random()
    with np.errstate(all="ignore"):
        if choice < 0.25:
            return array.astype(kinds[int(random.integers(len(kinds)))])
        if choice < 0.5:
            shapes = ((), (0,), (1,), (2, 0), (0, 2), (array.size,), (1, 1, 1), (3, 5))
            shape = shapes[int(random.integers(len(shapes)))]
            return np.resize(array, shape)
        flat = array.flatten()
        if flat.size and flat.dtype.kind in "fiu":
            info = np.iinfo if flat.dtype.kind in "iu" else np.finfo
            limits = info(flat.dtype)
            values = (limits.max, limits.min, 0, 1, 2**30, 7)
            flat[int(random.integers(flat.size))] = values[int(random.integers(6))]
        if flat.size and flat.dtype.kind == "f" and random.random() < 0.5:
            flat[int(random.integers(flat.size))] = (np.nan, np.inf)[
                int(random.integers(2))
            ]
        return flat.reshape(array.shape)


def make_npz(sparse: bool) -> Callable[[pathlib.Path], None]:
    """A user's graph."""

    def make(folder: pathlib.Path) -> None:
        random = np.random.default_rng(0)
        features = random.normal(size=(20, 4)) * (random.random((20, 4)) < 0.5)
        content: dict[str, Any] = {"features": features}
        if sparse:
            matrix = scipy.sparse.csr_array(features)
            names = ("data", "indices", "indptr", "shape")
            content = {name: np.asarray(getattr(matrix, name)) for name in names}
        content["edges"] = random.integers(20, size=(40, 2))
        content["labels"] = np.repeat([0, 1, -1, 2], 5)
        content["ids"] = np.array([f"n{k}" for k in range(20)])
        content["feature_names"] = np.array(["a", "b", "c", "d"])
        np.savez_compressed(folder / "graph.npz", **content)

    return make


def change_npz(folder: pathlib.Path, random: Random) -> None:
    """Changes the bytes of the file or of a member, or an array in it."""
    path = folder / "graph.npz"
    if random.random() < 0.2:
        change_bytes(path, random)
        return
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(random.integers(1, 3)):
        name = list(members)[int(random.integers(len(members)))]
        if random.random() < 0.4:
            members[name] = fuzz_readers.mutate(members[name], random)
        else:
            with contextlib.suppress(Exception):  # it may be damaged by now
                array = np.load(io.BytesIO(members[name]), allow_pickle=False)
                out = io.BytesIO()
                np.save(out, odd_array(array, random))
                members[name] = out.getvalue()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def read_npz(folder: pathlib.Path) -> None:
    """Reads the graph as far as a fit would look at it."""
    nodes, edges = tables.read_npz(folder / "graph.npz")
    arrays.as_pairs(edges, nodes.features.shape[0])
    if nodes.labels is not None:
        inputs.labels(nodes.labels, nodes.features.shape[0])


# --- Checkpoints ---------------------------------------------------------------


def states() -> dict[int, Any]:
    """States of two runs."""
    return {
        run: {"step": np.int32(10 + run), "params": np.full((3, 2), run, np.float32)}
        for run in range(2)
    }


def make_checkpoints(folder: pathlib.Path) -> None:
    """A folder with two checkpoints."""
    kept = Checkpoints(folder / "kept", 0.0)
    with kept.locked():
        for more in (0, 5):
            now = {r: s | {"step": s["step"] + more} for r, s in states().items()}
            kept.save(_as_states(now), 2)


class _State(NamedTuple):
    step: Any
    params: Any


def _as_states(found: dict[int, Any]) -> dict[int, Any]:
    return {run: _State(**state) for run, state in found.items()}


def change_checkpoints(folder: pathlib.Path, random: Random) -> None:
    """Changes one to three files, or removes one."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for _ in range(random.integers(1, 4)):
        path = files[int(random.integers(len(files)))]
        if not path.exists():
            continue
        if random.random() < 0.1:
            path.unlink()
        else:
            change_bytes(path, random)


def read_checkpoints(folder: pathlib.Path) -> None:
    """Loads the last whole checkpoint."""
    kept = Checkpoints(folder / "kept", 0.0)
    with kept.locked():
        kept.load(_as_states(states())[0], 2)


# --- Records -------------------------------------------------------------------


def make_records(folder: pathlib.Path) -> None:
    """A file of three records."""
    more = {"failed_runs": [{"run": 0, "step": 3}], "best_step": [1, 2]}
    for note in range(3):
        append_records(folder / "a.jsonl", example_records.record(note=note) | more)


def change_records(folder: pathlib.Path, random: Random) -> None:
    """Changes bytes, or an entry of a line."""
    path = folder / "a.jsonl"
    if random.random() < 0.3:
        change_bytes(path, random)
        return
    lines = path.read_text().splitlines()
    at = int(random.integers(len(lines)))
    lines[at] = json.dumps(change_tree(json.loads(lines[at]), random))
    path.write_text("\n".join(lines) + "\n", errors="surrogatepass")


def read_all_records(folder: pathlib.Path) -> None:
    """Reads the file both ways."""
    read_lines(folder / "a.jsonl")
    read_records(folder / "a.jsonl")


def load_model(folder: pathlib.Path) -> None:
    """Loads the model."""
    persistence.load(folder / "model")


def table_target(suffix: str) -> Target:
    """Tables of a format of pyarrow."""
    return Target(
        fuzz_tables.make_arrow(suffix),
        fuzz_tables.change_arrow(suffix),
        fuzz_tables.read_arrow(suffix),
    )


TARGETS = {
    "model": Target(make_model, change_facts, load_model),
    "parameters": Target(make_model, change_parameters, load_model),
    "npz-dense": Target(make_npz(False), change_npz, read_npz),
    "npz-csr": Target(make_npz(True), change_npz, read_npz),
    "checkpoints": Target(make_checkpoints, change_checkpoints, read_checkpoints),
    "records": Target(make_records, change_records, read_all_records),
}
if importlib.util.find_spec("pyarrow"):
    TARGETS |= {
        "csv": Target(
            fuzz_tables.make_csv, fuzz_tables.change_csv, fuzz_tables.read_csv
        ),
        "parquet": table_target(".parquet"),
        "arrow": table_target(".arrow"),
    }


def fuzz(name: str, count: int, seed: int) -> collections.Counter:
    """Reads `count` mutated files and counts how they ended."""
    target, random = TARGETS[name], np.random.default_rng(seed)
    ended: collections.Counter = collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        whole, tried = pathlib.Path(place) / "whole", pathlib.Path(place) / "tried"
        whole.mkdir()
        target.make(whole)
        for number in range(count):
            shutil.rmtree(tried, ignore_errors=True)
            shutil.copytree(whole, tried)
            target.change(tried, random)
            ended[_end(target, tried, f"{name}, seed {seed}, file {number}")] += 1
    return ended


def _end(target: Target, folder: pathlib.Path, where: str) -> str:
    signal.signal(signal.SIGPROF, _too_late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        target.read(folder)
        return "read"
    except InputError:
        return "refused"
    except BaseException as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        kept = pathlib.Path(tempfile.mkdtemp()) / "kept"
        shutil.copytree(folder, kept)
        raise AssertionError(f"{where} ({kept}) ended in {error!r}.") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class _Late(BaseException):
    """No reader may catch it."""


def _too_late(number: int, frame: object) -> None:
    raise _Late(f"more than {SECONDS} s")


def main() -> int:
    """Fuzzes each target in a process of its own and prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", default=",".join(TARGETS))
    given = parser.parse_args()
    names = given.targets.split(",")
    if len(names) > 1:
        rest = [f"--count={given.count}", f"--seed={given.seed}"]
        command = [sys.executable, __file__, *rest]
        ends = [subprocess.call([*command, f"--targets={name}"]) for name in names]
        return max(map(abs, ends))
    faulthandler.enable()
    warnings.simplefilter("ignore")
    fuzz(names[0], 3, given.seed)  # whatever is loaded late is loaded now
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    print(f"{names[0]}: {dict(fuzz(names[0], given.count, given.seed))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
