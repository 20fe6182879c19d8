"""What does not fit is said before anything starts."""

import jax
import numpy as np
import pytest

from oodgat_jax import experiment
from oodgat_jax.datasets import streaming
from oodgat_jax.training import capacity
from oodgat_jax.types import InputError


def test_a_network_of_terabytes_is_refused():
    with pytest.raises(InputError, match=r"needs about .* TB .* make hidden, heads"):
        experiment.run("digits", "mlp", settings={"hidden": 2_000_000_000})


def test_too_many_runs_are_refused_before_splits_are_drawn():
    with pytest.raises(InputError, match="at most 100000 splits times seeds"):
        experiment.run("digits", "mlp", splits=1_000_000)
    with pytest.raises(InputError, match=r"100000 runs needs .* about \d+ runs would"):
        capacity.check_runs(100_000, 10**7, 5, 2)


def test_the_runs_that_would_fit_are_said():
    state = {"w": jax.ShapeDtypeStruct((1 << 30,), np.float32)}
    with pytest.raises(InputError, match=r"training of 1000 runs needs about 4\."):
        capacity.check_states(state, 1000, 1)
    capacity.check_states({"w": jax.ShapeDtypeStruct((8,), np.float32)}, 1000, 2)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("generated-1000-2000000000", "at most 999000 edges"),
        ("generated-10-5", "too few .* at least 480"),
        ("generated-99999999999-5", "at most 2147483647 nodes"),
    ],
)
def test_a_generated_graph_out_of_reach_is_refused(name, sentence):
    with pytest.raises(InputError, match=sentence):
        streaming.open_streamed(name, None)


def test_a_generated_graph_too_large_for_memory_is_refused():
    with pytest.raises(InputError, match=r"about \d+ edges would fit"):
        experiment.run(f"generated-1000000-{10**12 - 10**6}", "mlp", splits=1, seeds=1)


def test_a_mesh_of_a_million_devices_is_refused():
    with pytest.raises(InputError, match="at most 256 devices, not 1000000"):
        capacity.check_devices(1_000_000)
