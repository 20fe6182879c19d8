"""Homophily of the data sets: measured, recorded, drawn; the proposition."""

import pytest
from support.binaries import call

from experiments import homophily
from oodgat_jax.datasets import edge_kinds
from oodgat_jax.records import read_lines


def test_digits(tmp_path, cache):
    code, out, err = call("homophily", f"--out={tmp_path}", cache=cache)
    assert code == 0, err
    assert "cora" in err  # whose files are missing
    (found,) = read_lines(tmp_path / homophily.STUDY.file)
    assert (found["dataset"], found["nodes"]) == ("digits", 1797)
    assert sum(found["edges_by_kind"].values()) == found["edges"]
    assert found["identity_homophily"] >= found["class_homophily"] > 0.9
    assert out.splitlines()[2].split()[:2] == ["digits", "1,797"]


def test_unknown_name_is_one_sentence(tmp_path, cache):
    arguments = ["--datasets=digits,corra", f"--out={tmp_path}"]
    code, out, err = call("homophily", *arguments, cache=cache)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no data set 'corra'" in err
    assert not (tmp_path / homophily.STUDY.file).exists()


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["cora", "citeseer", "amazon-photo"])
def test_the_proposition_on_real_graphs(name, real):
    dataset = real(name)
    found = homophily.measure(dataset)
    assert found["identity_homophily"] >= found["class_homophily"]
    assert found["ood_nodes"] == edge_kinds.is_ood(dataset).sum()
