"""The paper's findings: each decided by records, whichever way they fall."""

import numpy as np
import pytest
from support.binaries import call
from support.example_records import record

from experiments import edge_roles, findings
from oodgat_jax.records import append_records

RUNS = np.ones(6)  # as many as an order takes to be tested


def verdict(claim, records):
    """Verdict and figures of the finding that begins with a claim."""
    (finding,) = [f for f in findings.FINDINGS if f.claim.startswith(claim)]
    table = findings.draw({finding.source.name: records})
    (row,) = [row for row in table.rows if row[0] == finding.claim]
    return row[1:]


def ablated(**means):
    names = {"con": "consistency", "ent": "entropy", "dis": "discrepancy"}
    return [
        record(
            "cora",
            "ATT",
            RUNS * mean,
            regularizers=[names[short] for short in row.split("_")[1:]],
        )
        for row, mean in means.items()
    ]


def roles(whole, no_inter, no_id, no_ood):
    aurocs = (whole, no_inter, no_id, no_ood)
    return [
        record("cora", "ENT", RUNS * a, method="gcn", removed_edges=list(removed))
        for a, removed in zip(aurocs, edge_roles.SUBSETS.values(), strict=True)
    ]


def test_nothing_is_claimed_without_records():
    rows = findings.draw({}).rows
    assert {row[1] for row in rows} == {"is not measured"}
    assert rows[0][2] == "python -m experiments.end_to_end"


def test_detectors_on_gat_are_those_of_the_latest_records():
    rows = [
        record("cora", "kNN", RUNS * 0.9, method="gat", selection="validation"),
        record("cora", "ATT", RUNS * 0.8, selection="fixed"),
    ]
    claim = "detectors on GAT"
    assert verdict(claim, rows) == ["does not hold", "cora 80.0 / 90.0"]
    again = {**rows[0], "metrics": {"auroc": (RUNS * 0.7).tolist()}}
    assert verdict(claim, [*rows, again]) == ["holds", "cora 80.0 / 70.0"]
    oracle = {**rows[0], "selection": "oracle"}
    assert verdict(claim, [*rows, again, oracle]) == ["holds", "cora 80.0 / 70.0"]


def test_the_main_table_decides_by_the_better_score():
    rows = [
        record("cora", "ENT", RUNS * 0.7),
        record("cora", "ATT", RUNS * 0.9),
        record("cora", "ENT", RUNS * 0.8, method="gcn"),
        record("cora", "ENT", RUNS * 0.6, method="mlp"),
    ]
    assert verdict("OODGAT is first in AUROC", rows) == ["holds", "cora 90.0 / 80.0"]
    assert verdict("graph networks", rows) == ["holds", "cora 80.0 / 60.0"]
    other = [
        record("digits", "ATT", RUNS * 0.5),
        record("digits", "ENT", RUNS * 0.6, method="gat"),
    ]
    partly = verdict("OODGAT is first in joint F1", rows + other)
    assert partly[0] == "holds on 1 of 2 (not digits)"
    assert verdict("OODGAT is first in AUROC", other)[0] == "does not hold"


def test_orders_that_chance_may_have_made_are_marked():
    ours = record("cora", "ATT", RUNS * 0.9)
    close = 0.9 + 0.01 * np.array([1, -1.5, 1, -1.5, 1, -1.5])
    theirs = record("cora", "ENT", close, method="gcn")
    (held, told) = verdict("OODGAT is first in AUROC", [ours, theirs])
    assert (held, told) == ("holds", "cora 90.0 / 89.8 (n.s.)")
    few = [record("cora", "ATT", [0.9]), record("cora", "ENT", [0.8], method="gcn")]
    assert verdict("OODGAT is first in AUROC", few)[1] == "cora 90.0 / 80.0 (n.s.)"
    note = findings.STUDY.note(*([[ours, theirs]] + [[]] * 8))
    assert "correction for all 2 tests" in note


@pytest.mark.parametrize(
    ("claim", "curves", "expected"),
    [
        ("GCN detects better without", (0.8, 0.9, 0.5, 0.5), "holds"),
        ("GCN detects better without", (0.9, 0.8, 0.5, 0.5), "does not hold"),
        ("edges inside the ID", (0.8, 0.9, 0.5, 0.95), "holds"),
        ("edges inside the OOD", (0.8, 0.9, 0.5, 0.95), "does not hold"),
    ],
)
def test_roles_of_edges(claim, curves, expected):
    assert verdict(claim, roles(*curves))[0] == expected


def test_removal():
    accuracy = [
        record("cora", "ENT", RUNS * a, method="gcn", removed_inter_edges=share)
        for share, a in ((0.0, 0.8), (1.0, 0.85))
    ]
    assert verdict("GCN classifies", accuracy) == ["holds", "cora 85.0 / 80.0"]


def test_homophily():
    line = {"dataset": "a", "identity_homophily": 0.9, "class_homophily": 0.8}
    assert verdict("a graph is no less", [line]) == ["holds", "a 90.0 / 80.0"]
    wrong = line | {"identity_homophily": 0.7}
    assert verdict("a graph is no less", [wrong])[0] == "does not hold"


def test_ablation():
    rows = ablated(
        ce=0.5, ce_con=0.9, ce_ent=0.5, ce_dis=0.55, ce_con_ent=0.95, ce_con_dis=0.8
    )
    assert verdict("cross-entropy alone", rows) == ["holds", "cora ce 50.0"]
    assert verdict("consistency is what", rows)[0] == "holds"
    assert verdict("entropy and discrepancy stay", rows)[0] == "holds"
    assert verdict("entropy improves", rows)[0] == "holds"
    assert verdict("discrepancy improves", rows)[0] == "does not hold"
    assert verdict("all three together", rows)[0] == "is not measured"
    whole = rows + ablated(ce_con_ent_dis=0.97)
    assert verdict("all three together", whole)[0] == "holds"


def curve(name, used, points):
    return [
        record("cora", "ATT", RUNS * a, hyperparameters={name: w}, base={name: used})
        for w, a in points.items()
    ]


def test_sensitivity():
    points = curve("consistency", 2.0, {0.0: 0.5, 2.0: 0.9, 4.0: 0.8})
    wanted = ["holds", "cora 0 50.0, 2 90.0, 4 80.0"]
    assert verdict("a consistency weight of 0", points) == wanted
    points = curve("entropy", 0.1, {0.0: 0.5, 0.1: 0.4})
    assert verdict("the entropy term", points) == [
        "does not hold",
        "cora 0 50.0, 0.1 40.0",
    ]
    assert verdict("a threshold", points)[0] == "is not measured"
    alone = curve("threshold", 0.0, {0.0: 0.5})
    assert verdict("a threshold", alone)[0] == "is not measured"


def test_consistency_must_bring_more_than_the_others_together():
    rows = ablated(ce=0.5, ce_con=0.9, ce_ent=0.7, ce_dis=0.71)
    assert verdict("consistency is what", rows)[0] == "does not hold"
    assert verdict("entropy and discrepancy stay", rows)[0] == "does not hold"


def test_detectors_and_gkde():
    found = [
        record("cora", "ATT", RUNS * 0.9, selection="fixed"),
        record("cora", "ATT+prop", RUNS * 0.95, selection="validation"),
        record("cora", "ODIN", RUNS * 0.8, method="gat", selection="validation"),
        record("cora", "ODIN", RUNS * 0.99, method="gat", selection="oracle"),
    ]
    assert verdict("detectors on GAT", found) == ["holds", "cora 90.0 / 80.0"]
    gkde = [
        record("cora", "ATT", RUNS * 0.9),
        record("cora", "vacuity", RUNS * 0.95, method="gkde"),
    ]
    assert verdict("OODGAT is ahead of GKDE", gkde)[0] == "does not hold"


def test_entropies_over_training():
    def followed(method, gap):
        curves = {"steps": [1], "ID": [[0.5], [0.5]], "OOD": [[0.5 + gap]] * 2}
        return record("cora", "ENT", RUNS * 0.9, method=method, dynamics=curves)

    records = [followed("gcn", 0.1), followed("oodgat", 0.3)]
    assert verdict("OODGAT keeps", records) == ["holds", "cora 0.30 / 0.10 nats"]


def test_the_binary_reads_a_folder(tmp_path, cache):
    rows = [record("cora", "ATT", RUNS * 0.9), record("cora", "ENT", RUNS * 0.8)]
    rows.append(record("cora", "ENT", RUNS * 0.7, method="gcn"))
    append_records(tmp_path / "end_to_end.jsonl", *rows)
    code, out, err = call("findings", f"--records_dir={tmp_path}", cache=cache)
    assert code == 0, err
    assert "cora 90.0 / 70.0" in out
    assert "python -m experiments.ablation" in out
