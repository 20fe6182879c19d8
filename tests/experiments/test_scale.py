"""The measurement of sharded graphs: its jobs, its shapes and its table."""

import jax
import numpy as np
import pytest
from support import synthetic

from experiments.support import scale
from oodgat_jax import graphs, tables


def test_every_size_whole_and_on_every_number_of_devices():
    found = [(j.nodes, j.devices) for j in scale.jobs([10, 20], [2, 4], "gcn", 1)]
    assert found == [(10, 0), (10, 2), (10, 4), (20, 0), (20, 2), (20, 4)]


@pytest.mark.parametrize("kernel", ["segment", "sparse", "auto"])
def test_shapes_of_a_whole_graph_are_those_of_a_built_one(kernel):
    graph = graphs.build(synthetic.generate(500, 3000, 7), kernel)
    nodes, edges = graph.nodes.shape[0], graph.senders.shape[0]
    shapes = scale._whole_shapes(nodes, edges, 7, kernel)
    expected = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), graph)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), shapes) == expected


def test_the_table_compares_with_the_whole_graph():
    whole = {
        "nodes": 20_000,
        "edges": 400_000,
        "devices": 0,
        "halo": 0.0,
        "memory": 80_000_000,
        "moved": 0,
        "seconds_per_step": 2.0,
    }
    sharded = whole | {"devices": 8, "memory": 12_000_000, "halo": 1.25}
    sharded |= {"moved": 3_400_000, "seconds_per_step": None}
    lines = tables.as_text(scale.draw([whole, sharded])).splitlines()
    assert "whole" in lines[-2]
    assert "100 %" in lines[-2]
    assert lines[-1].split() == [
        "20,000",
        "400,000",
        "8",
        "sparse",
        "12",
        "15",
        "%",
        "1.25",
        "3.4",
    ]


def test_the_median_step_is_timed(monkeypatch):
    clock = iter([0.0, 5.0, 5.0, 6.0, 6.0, 8.0])
    busy = iter([0.0, 7.0, 7.0, 8.0, 8.0, 11.0])
    monkeypatch.setattr(scale.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(scale.time, "process_time", lambda: next(busy))
    taken = scale._seconds(lambda graph, runs, state: state + 1, 0, 0, np.zeros(1), 3)
    assert taken == (2.0, 3.0)
