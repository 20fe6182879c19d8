"""Mutated raw files against the readers: no exception but InputError, and no hang.

  python tests/support/fuzz_readers.py --count=10000
  python tests/support/fuzz_readers.py --count=1000 --readers=wiki-cs --seed=7

Every input is a tiny graph's files in the real format with one of them mutated: bytes
changed, cut, repeated, removed, or swapped with those of another place. CI runs a fixed
number (`test_readers.py`).
"""

import argparse
import collections
import faulthandler
import pathlib
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from oodgat_jax import datasets
from oodgat_jax.types import InputError
from support import raw_files

SECONDS = 20  # for one input
WRITERS = {
    "cora": raw_files.write_planetoid,
    "amazon-photo": raw_files.write_npz,
    "facebook-pages": raw_files.write_facebook,
    "wiki-cs": raw_files.write_wiki_cs,
}
TOKENS = (b"", b"\0", b"-1", b"1e999", b"NaN", b"[", b"}", b'"', b"\xff\xfe", b"9" * 30)


def mutate(whole: bytes, random: np.random.Generator) -> bytes:
    """One to four changes of one kind each."""
    for _ in range(random.integers(1, 5)):
        start, end = sorted(random.integers(0, len(whole) + 1, size=2))
        end = min(end, start + int(2 ** random.uniform(0, 8)))
        middle = whole[start:end]
        token = TOKENS[random.integers(len(TOKENS))]
        other = bytes(random.integers(256, size=len(middle), dtype=np.uint8))
        where = int(random.integers(0, len(whole) + 1))
        kinds = (
            whole[:start] + other + whole[end:],
            whole[:start] + token + whole[end:],
            whole[:start] + middle + middle + whole[end:],
            whole[:start],
            whole[:where] + middle + whole[where:],
        )
        whole = kinds[random.integers(len(kinds))] or b"\0"
    return whole


def fuzz(
    name: str, count: int, seed: int, load: Callable, folder: pathlib.Path
) -> collections.Counter:
    """Reads `count` mutated inputs and counts how they ended."""
    source = WRITERS[name](folder)
    random = np.random.default_rng(seed)
    files = [folder / source.folder / file for file in source.files]
    wholes = [path.read_bytes() for path in files]
    ended = collections.Counter()
    for number in range(count):
        at = int(random.integers(len(files)))
        files[at].write_bytes(mutate(wholes[at], random))
        signal.alarm(SECONDS)
        try:
            load(source)
            ended["read"] += 1
        except InputError:
            ended["refused"] += 1
        except Exception as error:
            kept = pathlib.Path(tempfile.mkdtemp()) / files[at].name
            kept.write_bytes(files[at].read_bytes())
            raise AssertionError(
                f"Input {number} of {name} (seed {seed}, {kept}) ended in {error!r}."
            ) from error
        finally:
            signal.alarm(0)
        files[at].write_bytes(wholes[at])
    return ended


def main() -> None:
    """Fuzzes every reader and prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--readers", default=",".join(WRITERS))
    chosen = parser.parse_args()
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, all_threads=False, chain=True)
    warnings.simplefilter("ignore")
    for name in chosen.readers.split(","):
        with tempfile.TemporaryDirectory() as folder:
            data_dir = pathlib.Path(folder)

            def load(source, name=name, folder=folder):
                datasets.DATASETS[name] = source
                return datasets.load(name, folder)

            ended = fuzz(name, chosen.count, chosen.seed, load, data_dir)
        print(f"{name}: {dict(ended)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
