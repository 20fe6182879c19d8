"""ROC curves by edges: their points, the table and the figure."""

import numpy as np
import pytest
from support.binaries import call
from support.example_records import record

from experiments import edge_roles
from oodgat_jax.records import read_records


def curve_record(method, removed, height, detector="ENT"):
    points = np.linspace(height, 1.0, len(edge_roles.FPR)).tolist()
    keys = {"removed_edges": list(removed), "roc_tpr": [points, points]}
    return record("cora", detector, (height, height), method=method, **keys)


RECORDS = [
    curve_record("mlp", (), 0.5),
    *(
        curve_record("gcn", removed, 0.6 + number / 10)
        for number, removed in enumerate(edge_roles.SUBSETS.values())
    ),
]


def test_curve():
    is_ood = np.array([True, True, False, False])
    found = edge_roles.curve(np.array([4.0, 3.0, 2.0, 1.0]), is_ood)
    assert found[0] in (0.0, 1.0)
    assert (found[1:] == 1.0).all()
    tied = edge_roles.curve(np.zeros(4), is_ood)
    np.testing.assert_allclose(tied, edge_roles.FPR)
    area = np.trapezoid(edge_roles.curve(np.array([3.0, 1.0, 2.0, 0.0]), is_ood))
    assert area / 100 == pytest.approx(0.75, abs=0.01)


def test_table():
    rows = [[getattr(c, "text", c) for c in r] for r in edge_roles.draw(RECORDS).rows]
    assert [row[1:3] for row in rows] == [
        ["mlp", "all edges"],
        *(["gcn", title] for title in edge_roles.SUBSETS),
    ]
    assert rows[0][3] == "50.0 ± 0.0"


def test_figure():
    ((name, figure),) = edge_roles.draw_figures(RECORDS).items()
    assert name == "cora-gcn"
    left, right = figure.axes
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert labels == ["mlp (50.0)", "gcn (60.0)"]
    assert len(right.lines) == len(edge_roles.SUBSETS) + 1  # and the diagonal
    assert right.lines[1].get_ydata()[0] == pytest.approx(0.7)


def test_a_call_records_the_points(tmp_path, cache):
    tiny = ["--splits=1", "--seeds=2", "--set=max_steps=11", "--set=hidden=8"]
    arguments = ["--method=mlp", *tiny, f"--out={tmp_path}"]
    code, out, err = call("edge_roles", *arguments, cache=cache)
    assert code == 0, err
    (found,) = read_records(tmp_path / edge_roles.STUDY.file)
    points = np.array(found["roc_tpr"])
    assert points.shape == (2, 101)
    areas = np.trapezoid(points, edge_roles.FPR, axis=1)
    np.testing.assert_allclose(areas, found["metrics"]["auroc"], atol=0.005)
    assert (tmp_path / "edge_roles-digits-mlp.pdf").exists()
    assert "digits" in out
