"""Graphs sharded over simulated devices give what the whole graph gives."""

import os

import pytest
from support import forking
from support.binaries import QUICK

from oodgat_jax import evaluation, methods
from oodgat_jax.types import InputError


def run_case(request, *arguments):
    """A case of shard_cases in a process with its own number of devices."""
    command = "-m", "support.shard_cases", *arguments
    tests = request.path.parent.parent
    done = forking.run(*command, cwd=tests, env=os.environ | QUICK)
    assert done.stdout == "same\n", done.stderr


def test_fifty_steps_on_any_mesh(request):
    run_case(request, 8, "steps", 50, "runs:8", "runs:2,graph:4", "graph:8")


def test_losses_gradients_and_validation(request):
    run_case(request, 4, "gradients")


def test_detectors(request):
    run_case(request, 4, "detectors")


def test_a_second_graph_to_score(request):
    run_case(request, 2, "second_graph")


def test_a_stopped_training_goes_on_on_another_mesh(request, tmp_path):
    run_case(request, 2, "checkpoints", tmp_path / "kept")


def test_a_method_that_needs_the_whole_graph_says_so():
    evaluation.check_shardable(methods.METHODS["oodgat"])
    with pytest.raises(InputError, match="--mesh"):
        evaluation.check_shardable(methods.METHODS["gkde"])
