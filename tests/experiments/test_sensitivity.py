"""Curves over a hyper-parameter: from records, and trained as one more axis."""

import pytest
from support.binaries import call
from support.example_records import record

from experiments import sensitivity
from oodgat_jax.records import read_records

BASE = {"lr": 0.01, "consistency": 2.0, "entropy": 0.05}


def point(auroc, detector="ATT", **changed):
    keys = {"hyperparameters": BASE | changed, "base": BASE}
    return record("cora", detector, auroc, **keys)


RECORDS = [
    point((0.9, 0.9), consistency=4.0),
    point((0.5, 0.7), consistency=0.0),
    point((0.8, 0.8)),
    point((0.7, 0.7), entropy=0.1),
]


def test_the_base_is_a_point_of_every_curve():
    found = sensitivity.curves(RECORDS, "cora", "oodgat")
    assert list(found) == ["consistency", "entropy"]
    values = {
        name: [r["hyperparameters"][name] for r in detectors["ATT"]]
        for name, detectors in found.items()
    }
    assert values == {"consistency": [0.0, 2.0, 4.0], "entropy": [0.05, 0.1]}


def test_another_base_does_not_mix():
    old = point((0.1, 0.1), consistency=3.0) | {"base": BASE | {"lr": 0.1}}
    found = sensitivity.curves([old, *RECORDS], "cora", "oodgat")
    assert len(found["consistency"]["ATT"]) == 3


def test_points_of_fewer_runs_do_not_mix():
    """As while a study is made anew with more seeds."""
    more = [point((0.6, 0.6, 0.6), consistency=0.0), point((0.7, 0.7, 0.7))]
    found = sensitivity.curves([*RECORDS, *more], "cora", "oodgat")
    assert [len(r["model_seeds"]) for r in found["consistency"]["ATT"]] == [3, 3]
    assert [len(r["model_seeds"]) for r in found["entropy"]["ATT"]] == [2, 2]
    assert len(sensitivity.draw_figures([*RECORDS, *more])) == 1
    assert "over 2 to 3 runs" in sensitivity.STUDY.note([*RECORDS, *more])
    assert "over 3 runs" in sensitivity.STUDY.note([*RECORDS[:3], *more])


def test_table_and_figure():
    assert len(sensitivity.draw(RECORDS).rows) == 5
    ((name, figure),) = sensitivity.draw_figures(RECORDS).items()
    assert name == "cora-oodgat"
    left, _ = figure.axes
    assert [text.get_text() for text in left.get_xticklabels()] == ["0", "2", "4"]
    assert left.lines[1].get_ydata() == pytest.approx([60.0, 80.0, 90.0])


def test_three_curves_leave_no_empty_axes():
    records = [*RECORDS, point((0.6, 0.6), lr=0.1)]
    ((_, figure),) = sensitivity.draw_figures(records).items()
    assert sum(axis.get_visible() for axis in figure.axes) == 3


def test_values_are_an_axis_of_the_runs(tmp_path, cache):
    tiny = ["--splits=1", "--seeds=2", "--set=max_steps=11", "--set=hidden=8"]
    tiny += ["--set=heads=1", "--values=consistency=0,5", f"--out={tmp_path}"]
    code, _, err = call("sensitivity", *tiny, cache=cache)
    assert code == 0, err
    assert "4/4 runs done" in err
    found = read_records(tmp_path / sensitivity.STUDY.file)
    values = [r["hyperparameters"]["consistency"] for r in found]
    assert values == [0.0, 0.0, 5.0, 5.0]
    assert found[0]["metrics"] != found[2]["metrics"]
    assert (tmp_path / "sensitivity-digits-oodgat.png").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--values=heads=1,2"], "no float hyper-parameter of oodgat 'heads'"),
        (["--method=gcn"], "no float hyper-parameter of gcn 'consistency'"),
    ],
)
def test_wrong_input_is_one_sentence(arguments, sentence, tmp_path, cache):
    arguments = ["--dataset=digits", *arguments, f"--out={tmp_path}"]
    code, out, err = call("sensitivity", *arguments, cache=cache)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
