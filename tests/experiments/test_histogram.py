"""The figure of score histograms, from arrays like those of experiments.detect."""

import numpy as np
import pytest

from experiments import histogram
from oodgat_jax.types import InputError


@pytest.fixture
def arrays(tmp_path):
    path = tmp_path / "a.npz"
    is_ood = np.arange(40) % 2 == 0
    test = np.stack([np.arange(40) < 30, np.arange(40) >= 30])
    scores = np.stack([is_ood + 0.5, 2.0 * is_ood])
    np.savez(path, is_ood=is_ood, test=test, scores_ENT=scores, scores_ATT=-scores)
    return path


def test_one_runs_test_nodes_are_read(arrays):
    found = histogram.read(arrays, 1)
    assert list(found) == ["is_ood", "scores_ENT", "scores_ATT"]
    assert found["scores_ENT"].tolist() == [2.0, 0.0] * 5
    assert found["is_ood"].tolist() == [True, False] * 5


def test_the_figure_is_the_same_each_time(arrays, tmp_path):
    figures = [tmp_path / name for name in ("one.png", "two.png")]
    for figure in figures:
        histogram.draw(histogram.read(arrays, 0), "title", figure)
    first, second = (figure.read_bytes() for figure in figures)
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_named(arrays, tmp_path):
    with pytest.raises(InputError, match="has 2 runs"):
        histogram.read(arrays, 2)
    with pytest.raises(InputError, match="There is no file"):
        histogram.read(tmp_path / "b.npz", 0)
    for name, content in (("text.npz", b"hello"), ("empty.npz", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="was not written by"):
            histogram.read(tmp_path / name, 0)
    np.savez(tmp_path / "other.npz", test=np.ones((1, 2)))
    with pytest.raises(InputError, match="was not written by"):
        histogram.read(tmp_path / "other.npz", 0)
