"""Checkpoints: one training at a time, and an older one if the newest is damaged."""

import signal
import time

import numpy as np
import pytest
from support import forking
from support.fuzz_files import _as_states, states

from oodgat_jax.training import Checkpoints, interrupts
from oodgat_jax.types import InputError


def steps(folder):
    return sorted(int(path.name) for path in folder.iterdir())


@pytest.fixture
def kept(tmp_path):
    """A folder with checkpoints at steps 21 and 31 in all."""
    checkpoints = Checkpoints(tmp_path / "kept", 0.0)
    with checkpoints.locked():
        for more in (0, 5):
            now = {run: s | {"step": s["step"] + more} for run, s in states().items()}
            checkpoints.save(_as_states(now), 2)
    return tmp_path / "kept"


def load(folder, told=None):
    checkpoints = Checkpoints(folder, 0.0, (told if told is not None else []).append)
    with checkpoints.locked():
        found = checkpoints.load(_as_states(states())[0], 2)
        if found:
            later = {
                run: state._replace(step=state.step + 50)
                for run, state in found.items()
            }
            checkpoints.save(later, 2)
        return {run: int(state.step) for run, state in found.items()}


def test_the_newest_is_loaded(kept):
    told = []
    assert load(kept, told) == {0: 15, 1: 16}
    assert told == []


@pytest.mark.parametrize("damage", ["cut", "emptied", "without facts"])
def test_a_damaged_newest_one_gives_way_to_the_older(kept, damage):
    for path in sorted((kept / "31").rglob("*")):
        if path.is_file() and (path.name[0] == "_") == (damage == "without facts"):
            whole = path.read_bytes()
            path.write_bytes(whole[: len(whole) // 2 if damage == "cut" else 0])
    told = []
    assert load(kept, told) == {0: 10, 1: 11}
    (sentence,) = told
    assert "is damaged: continuing from the one before" in sentence
    assert steps(kept) == [21, 121]


def test_if_all_are_damaged_it_is_one_sentence_and_nothing_is_removed(kept):
    for path in kept.rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    with pytest.raises(InputError, match=r"No checkpoint in .* can be read"):
        load(kept)
    assert steps(kept) == [21, 31]


def test_those_of_other_runs_are_refused(kept):
    checkpoints = Checkpoints(kept, 0.0)
    other = _as_states(states())[0]._replace(params=np.zeros((4, 4), np.float32))
    with checkpoints.locked(), pytest.raises(InputError, match="of other runs"):
        checkpoints.load(other, 2)


def test_a_second_training_is_refused_and_the_folder_goes(tmp_path):
    first, second = (Checkpoints(tmp_path / "a" / "b") for _ in range(2))
    with first.locked():
        with (
            pytest.raises(InputError, match="Another process trains the same into"),
            second.locked(),
        ):
            pass
        assert (tmp_path / "a" / "b").is_dir()
    assert not (tmp_path / "a" / "b").exists()
    with second.locked():
        pass


def test_a_path_that_is_a_file_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in ("file", "file/deeper"):
        with (
            pytest.raises(InputError, match="cannot be kept in"),
            Checkpoints(tmp_path / place).locked(),
        ):
            pass
    assert (tmp_path / "file").read_text() == "mine"


HOLDER = """
import sys, time
from oodgat_jax.training import Checkpoints
with Checkpoints(sys.argv[1]).locked():
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_killed_holder_leaves_no_lock(tmp_path):
    with forking.start("-c", HOLDER, tmp_path / "kept") as holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(InputError, match="Another process"),
            Checkpoints(tmp_path / "kept").locked(),
        ):
            pass
        holder.send_signal(signal.SIGKILL)
    with Checkpoints(tmp_path / "kept").locked():
        pass


@pytest.fixture
def handlers():
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.install()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "kind"),
    [(signal.SIGTERM, interrupts.Terminated), (signal.SIGINT, KeyboardInterrupt)],
)
def test_signals_wait_for_the_end_of_the_block(handlers, number, kind):
    reached = []

    def block(signals, sentence=None):
        with interrupts.deferred():
            for _ in range(signals):
                signal.raise_signal(number)
                time.sleep(0.01)
            reached.append(interrupts.noted())
            if sentence:
                interrupts.leave(sentence)

    with pytest.raises(kind):
        block(1)
    assert reached == [True]
    assert not interrupts.noted()
    with pytest.raises(kind, match="do this"):
        block(1, "do this")
    assert not interrupts.noted()
    with pytest.raises(kind):
        block(2)  # the second signal is obeyed at once
    assert len(reached) == 2
    with pytest.raises(kind):
        signal.raise_signal(number)
