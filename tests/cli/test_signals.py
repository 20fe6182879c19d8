"""detect under signals and beside itself: a checkpoint, a sentence, an exit code."""

import signal
import subprocess

import pytest
from support import binaries, forking

LONG = (
    *("--method=mlp", "--splits=1", "--seeds=1", "--set=hidden=8"),
    *("--set=max_steps=301", "--set=patience=301", "--plugin=paced"),
)
SIGNALS = {signal.SIGTERM: (143, "Terminated"), signal.SIGINT: (130, "Interrupted")}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def start(cache):
    """Starts detect in a folder that has the plug-in, with an --out of its own."""
    (cache / "paced.py").write_text(binaries.PACED)

    def start(out, *more):
        flags = *LONG, f"--out={out}", *more
        return binaries.start("detect", *flags, cache=cache, cwd=cache)

    return start


def wait_for_checkpoint(process, out):
    """Until there is one, made every call to the devices."""
    for _ in range(1200):
        if any(out.glob("checkpoints/*/[0-9]*/commit_success.txt")):
            return
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(process.communicate()[1])


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_saves_a_checkpoint_and_says_how_to_continue(tmp_path, start, number):
    process = start(tmp_path, "--checkpoint_seconds=0")
    with process:
        wait_for_checkpoint(process, tmp_path)
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
    code, word = SIGNALS[number]
    assert process.returncode == code, err
    last = err.splitlines()[-1]
    assert last.startswith(
        f"{word}: stopped before the end. The same command continues"
    )
    assert "Traceback" not in err
    assert not (tmp_path / "results.jsonl").exists()
    with start(tmp_path) as again:
        _, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert "Continuing from the last checkpoint" in err
    assert [p.name for p in sorted(tmp_path.iterdir())] == [
        "digits-mlp.npz",
        "results.jsonl",
    ]


def test_the_same_command_beside_itself_is_refused(tmp_path, start):
    with start(tmp_path, "--checkpoint_seconds=0") as first:
        wait_for_checkpoint(first, tmp_path)
        first.send_signal(signal.SIGSTOP)  # it has the lock, whatever the time
        with start(tmp_path, "--checkpoint_seconds=0") as second:
            _, err = second.communicate(timeout=300)
        assert second.returncode == 2, err
        assert "Another process trains the same into" in err.splitlines()[-1]
        assert "Traceback" not in err
        first.send_signal(signal.SIGCONT)
        _, err = first.communicate(timeout=300)
    assert first.returncode == 0, err
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--splits=1000000", "at most 100000 splits times seeds"),
        ("--mesh=runs:1000000", "at most 256 devices, not 1000000"),
        ("--set=hidden=2000000000", "TB of memory"),
        ("--dataset=generated-1000-2000000000", "at most 999000 edges"),
        ("--dataset=generated-10-5", "at least 480"),
        ("--detectors=", "at least one detector"),
        ("--max_unpacked_mb=0", "--max_unpacked_mb=0 is wrong"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(tmp_path, cache, flag, sentence):
    few = "--method=mlp", "--splits=1", "--seeds=1"
    code, _, err = binaries.call("detect", *few, flag, f"--out={tmp_path}", cache=cache)
    assert code == 2, err
    assert sentence in err.splitlines()[-1]
    assert "Traceback" not in err


def test_help_shows_zero_and_false(cache, tmp_path):
    process = forking.run("-m", "oodgat_jax.cli.predict", "--help")
    assert "--seed (default: 0)" in process.stdout
    assert "--directed (default: false)" in process.stdout
    assert "--escape (default: true)" in process.stdout
    assert "--save (default: none)" in process.stdout
    assert "--ignore (default: none)" in process.stdout
