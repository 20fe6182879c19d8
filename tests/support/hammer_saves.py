"""Many processes save models to one folder, some are killed, and a reader reads on.

In the folder of the tests: `python -m support.hammer_saves --saves=1000 --writers=8`.
Ends with an error unless the reader found a whole model every time, and the folder
holds one model and the note of a user at the end.
"""

import argparse
import pathlib
import random
import signal
import tempfile
import time

import numpy as np

from oodgat_jax.estimator import persistence
from oodgat_jax.estimator.answers import Report
from oodgat_jax.methods import recipes
from support import forking


def model(number: int) -> persistence.Model:
    """A small model of two linear layers whose numbers are all `number`."""
    kernels = {"Linear_0": (3, 4), "Linear_1": (4, 2)}
    params = {
        name: {"kernel": np.full((1, *shape), number, np.float32)}
        for name, shape in kernels.items()
    }
    return persistence.Model(
        parameters={"params": params},
        aux=(),
        arguments={"method": "mlp"},
        recipe=recipes.recipe(None, "mlp") | {"hidden": 4},
        classes=["a", "b"],
        num_features=3,
        threshold=float(number),
        report=Report(9, 0, 1.0, 1.0, 5, 0.5, 0)._asdict(),
        labeled={"nodes": [0, 3], "codes": [0, 1], "digest": "none"},
        feature_names=["x", "y", "z"],
        scaling={"mean": [0.0, 1.0, 2.0], "deviation": [1.0, 1.0, 0.5]},
        preparation={"categories": {}, "means": None},
        calibration_scores=[0.1, 0.2],
    )


def write(folder: pathlib.Path, first: int, count: int) -> None:
    """Saves models first, first + 1, ..., one after the other."""
    for number in range(first, first + count):
        persistence.save(folder, model(number))


def read(folder: pathlib.Path) -> None:
    """Loads the model and checks that its two files belong together."""
    found = persistence.load(folder)
    leaf = found.parameters["params"]["Linear_0"]["kernel"]
    assert np.all(leaf == found.threshold)


def hammer(folder: pathlib.Path, saves: int, writers: int, seed: int = 0) -> int:
    """Runs the writers, kills some and starts them again; returns how often it read."""
    persistence.save(folder, model(0))
    (folder / "note.txt").write_text("mine")
    each = -(-saves // writers)
    rng = random.Random(seed)
    going = [_start(folder, each * n, each) for n in range(writers)]
    kills, reads = writers, 0
    deadline = time.monotonic() + 600
    while any(process.poll() is None for process in going):
        assert time.monotonic() < deadline
        read(folder)
        reads += 1
        if kills and rng.random() < 0.2:
            place = rng.randrange(writers)
            if going[place].poll() is None:
                going[place].send_signal(signal.SIGKILL)
                going[place].wait()
                going[place] = _start(folder, each * place, each)
                kills -= 1
    assert all(process.returncode == 0 for process in going)
    persistence.save(folder, model(7))
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == "model.json"
    assert names[1] == "note.txt"
    assert len(names) == 3
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]
    return reads


def _start(folder: pathlib.Path, first: int, count: int) -> forking.Process:
    what = f"--write={folder}", f"--first={first}", f"--saves={count}"
    return forking.start("-m", "support.hammer_saves", *what, cwd=forking.TESTS)


def main() -> None:
    """Reads the arguments and hammers, or is one of the writers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--saves", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    if given.write:
        write(given.write, given.first, given.saves)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "model"
        reads = hammer(folder, given.saves, given.writers)
    print(f"{given.saves} saves by {given.writers} writers, {reads} whole models read.")


if __name__ == "__main__":
    main()
