"""Checks the paper's findings one by one: does each hold in the records?

  python -m experiments.findings
  python -m experiments.findings --records_dir=results

Reads the records of the experiments and trains nothing; takes about two seconds. A
finding without records says which command makes them.
"""

import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from absl import flags

from experiments import (
    ablation,
    edge_removal,
    edge_roles,
    end_to_end,
    gkde,
    homophily,
    post_hoc,
    sensitivity,
    visualize,
)
from experiments.support import main_table, study
from experiments.support.study import Records, Study
from experiments.support.study_flags import RECORDS_DIR
from oodgat_jax import tables
from oodgat_jax.cli import app
from oodgat_jax.records import Record, kept_metrics, latest

FLAGS = flags.FLAGS
CHANCE = 0.65  # an AUROC below this is called near chance
NOTE = (
    "A finding holds on a data set if the means over its runs say so; figures are "
    "percent, the side that the paper claims to be ahead first. Where several methods "
    "or scores are on a side, the one with the best mean on test nodes stands for it. "
    f"An AUROC below {100 * CHANCE:.0f} is called near chance. Of a curve, "
    "the figures at 0, at the main table's value and at the largest are given."
)


class Verdict(NamedTuple):
    """Says whether a finding holds on a data set."""

    where: str  # data set
    holds: bool
    numbers: str


class Finding(NamedTuple):
    """A claim of the paper, and how records decide it."""

    claim: str
    source: Study  # whose records decide
    check: Callable[[Records], list[Verdict]]


def main() -> None:
    """Reads, decides, prints."""
    folder = pathlib.Path(FLAGS.records_dir)
    records = [study.read_source(source, folder) for source in STUDY.sources]
    print(study.text(STUDY, *records))


def draw(records: Mapping[str, Records]) -> tables.Table:
    """Draws a row per finding, from the records of studies by name."""
    rows = [[f.claim, *_summary(f, records.get(f.source.name, ()))] for f in FINDINGS]
    return tables.Table(["The paper finds", "Here it", "Figures"], rows)


def _summary(finding: Finding, records: Records) -> tuple[str, str]:
    verdicts = finding.check(records) if records else []
    if not verdicts:
        return "is not measured", f"python -m experiments.{finding.source.name}"
    numbers = "; ".join(f"{v.where} {v.numbers}" for v in verdicts)
    failing = [verdict.where for verdict in verdicts if not verdict.holds]
    if not failing:
        return "holds", numbers
    held, count = len(verdicts) - len(failing), len(verdicts)
    held_on = f"holds on {held} of {count} (not {', '.join(failing)})"
    return held_on if held else "does not hold", numbers


def _mean(record: Record, metric: str = "auroc") -> float:
    return float(np.mean(kept_metrics(record)[metric]))


def _versus(where: str, ahead: float, behind: float) -> Verdict:
    return Verdict(where, ahead > behind, f"{100 * ahead:.1f} / {100 * behind:.1f}")


# The main table.


def _main_rows(records: Records, name: str) -> dict[str, Record]:
    """Returns the latest record of each row of the main table, by title."""
    found = {}
    for row in main_table.ROWS:
        keys = {"method": row.method, "detector": row.detector}
        if record := latest(records, dataset=name, **keys):
            found[row.title] = record
    return found


def _first_in(metric: str) -> Callable[[Records], list[Verdict]]:
    def check(records: Records) -> list[Verdict]:
        verdicts = []
        for name in main_table.known(records):
            rows = _main_rows(records, name)
            ours = [_mean(r, metric) for t, r in rows.items() if "OODGAT" in t]
            others = [_mean(r, metric) for t, r in rows.items() if "OODGAT" not in t]
            if ours and others:
                verdicts.append(_versus(name, max(ours), max(others)))
        return verdicts

    return check


def _graphs_beat_mlp(records: Records) -> list[Verdict]:
    """Compares the worst graph network of the paper's table with the MLP."""
    verdicts = []
    for name in main_table.known(records):
        rows = _main_rows(records, name)
        graph = [rows[t] for t in ("GCN", "GraphSAGE", "GAT", "GATv2") if t in rows]
        if graph and "MLP" in rows:
            worst = min(_mean(record) for record in graph)
            verdicts.append(_versus(name, worst, _mean(rows["MLP"])))
    return verdicts


# Edges.


def _roles(ahead: str, behind: str) -> Callable[[Records], list[Verdict]]:
    """Compares the method's curves on two graphs, on each data set."""

    def check(records: Records) -> list[Verdict]:
        verdicts = []
        for name, method in edge_roles.known(records):
            found = edge_roles.find(records, name, method)
            one, two = (found.get((method, t, "ENT")) for t in (ahead, behind))
            if one and two:
                verdicts.append(_versus(name, _mean(one), _mean(two)))
        return verdicts

    return check


def _removal_helps(records: Records) -> list[Verdict]:
    verdicts = []
    for name in dict.fromkeys(record["dataset"] for record in records):
        found = edge_removal.find(records, name, "gcn")
        if {0.0, 1.0} <= found.keys():
            none, every = (_mean(found[share], "accuracy") for share in (0.0, 1.0))
            verdicts.append(_versus(name, every, none))
    return verdicts


def _proposition(records: Records) -> list[Verdict]:
    verdicts = []
    for name, record in {record["dataset"]: record for record in records}.items():
        pair = record["identity_homophily"], record["class_homophily"]
        verdicts.append(_versus(name, *pair)._replace(holds=pair[0] >= pair[1]))
    return verdicts


# Regularizers.


def _ablated(
    decide: Callable[[dict[str, float]], bool], rows: Sequence[str], metric: str
) -> Callable[[Records], list[Verdict]]:
    """Decides by the means of rows of the ablation, on every data set that has them."""

    def check(records: Records) -> list[Verdict]:
        verdicts = []
        for name, method in ablation.known(records):
            found = ablation.find(records, name, method)
            if all((row, "ATT") in found for row in rows):
                means = {row: _mean(found[row, "ATT"], metric) for row in rows}
                numbers = ", ".join(f"{row} {100 * v:.1f}" for row, v in means.items())
                verdicts.append(Verdict(name, decide(means), numbers))
        return verdicts

    return check


def _higher(one: str, two: str, metric: str) -> Callable[[Records], list[Verdict]]:
    return _ablated(lambda means: means[one] > means[two], (one, two), metric)


def _curve(
    name: str, metric: str, decide: Callable[[dict[str, float]], bool]
) -> Callable[[Records], list[Verdict]]:
    """Decides by three points of a curve: 0, the main table's, and the last."""

    def check(records: Records) -> list[Verdict]:
        verdicts = []
        for dataset, method in ablation.known(records):
            curve = sensitivity.curves(records, dataset, method).get(name, {})
            points = {
                record["hyperparameters"][name]: _mean(record, metric)
                for record in curve.get("ATT", ())
            }
            used = next((r["base"][name] for r in curve.get("ATT", ())), None)
            if {0.0, used} <= points.keys() and len(points) > 1:
                chosen = {"zero": 0.0, "used": used, "last": max(points)}
                means = {key: points[value] for key, value in chosen.items()}
                shown = dict.fromkeys(chosen.values())
                numbers = ", ".join(f"{v:g} {100 * points[v]:.1f}" for v in shown)
                verdicts.append(Verdict(dataset, decide(means), numbers))
        return verdicts

    return check


def _used_is_better(name: str, metric: str) -> Callable[[Records], list[Verdict]]:
    return _curve(name, metric, lambda means: means["used"] > means["zero"])


# Detectors, GKDE, training.


def _beyond_post_hoc(records: Records) -> list[Verdict]:
    """Compares OODGAT's own two scores, not propagated, with all detectors on GAT."""
    verdicts = []
    for name in post_hoc.known(records):
        mine = [r for r in records if r["dataset"] == name]
        mine = [r for r in mine if r["selection"] in ("fixed", "validation")]
        plain = [r for r in mine if r["detector"] in ("ENT", "ATT")]
        ours = [_mean(r) for r in plain if r["method"] == "oodgat"]
        others = [_mean(r) for r in mine if r["method"] == "gat"]
        if ours and others:
            verdicts.append(_versus(name, max(ours), max(others)))
    return verdicts


def _beyond_gkde(records: Records) -> list[Verdict]:
    verdicts = []
    for name in dict.fromkeys(record["dataset"] for record in records):
        ours = latest(records, dataset=name, method="oodgat", detector="ATT")
        gkde = latest(records, dataset=name, method="gkde", detector="vacuity")
        if ours and gkde:
            verdicts.append(_versus(name, _mean(ours), _mean(gkde)))
    return verdicts


def _wider_gap(records: Records) -> list[Verdict]:
    """Compares the mean gap of the entropies of OOD and ID nodes over the steps."""
    verdicts = []
    for name in dict.fromkeys(record["dataset"] for record in records):
        found = visualize.find(records, name)
        if {"oodgat", "gcn"} <= found.keys():
            ours, gcn = (_gap(found[method].values()) for method in ("oodgat", "gcn"))
            verdicts.append(Verdict(name, ours > gcn, f"{ours:.2f} / {gcn:.2f} nats"))
    return verdicts


def _gap(records: Iterable[Record]) -> float:
    followed = next(r["dynamics"] for r in records if "dynamics" in r)
    return float(np.nanmean(np.subtract(followed["OOD"], followed["ID"])))


FINDINGS = (
    Finding(
        "OODGAT is first in AUROC among methods trained end to end",
        end_to_end.STUDY,
        _first_in("auroc"),
    ),
    Finding(
        "OODGAT is first in joint F1 among methods trained end to end",
        end_to_end.STUDY,
        _first_in("weighted_f1"),
    ),
    Finding(
        "graph networks detect better than an MLP", end_to_end.STUDY, _graphs_beat_mlp
    ),
    Finding("detectors on GAT stay behind OODGAT", post_hoc.STUDY, _beyond_post_hoc),
    Finding("OODGAT is ahead of GKDE under its protocol", gkde.STUDY, _beyond_gkde),
    Finding(
        "a graph is no less homophilic by ID/OOD than by class",
        homophily.STUDY,
        _proposition,
    ),
    Finding(
        "GCN detects better without inter-edges",
        edge_roles.STUDY,
        _roles("no inter-edges", "all edges"),
    ),
    Finding(
        "edges inside the ID nodes help detection",
        edge_roles.STUDY,
        _roles("no inter-edges", "no inter- and ID-ID edges"),
    ),
    Finding(
        "edges inside the OOD nodes help detection",
        edge_roles.STUDY,
        _roles("no inter-edges", "no inter- and OOD-OOD edges"),
    ),
    Finding(
        "GCN classifies better without inter-edges", edge_removal.STUDY, _removal_helps
    ),
    Finding(
        "cross-entropy alone leaves attention near chance",
        ablation.STUDY,
        _ablated(lambda means: means["ce"] < CHANCE, ("ce",), "auroc"),
    ),
    Finding(
        "consistency is what makes detection work",
        ablation.STUDY,
        _ablated(
            # It gains more than the other two together.
            lambda m: m["ce+con"] - m["ce"] > m["ce+ent"] + m["ce+dis"] - 2 * m["ce"],
            ("ce", "ce+con", "ce+ent", "ce+dis"),
            "auroc",
        ),
    ),
    Finding(
        "entropy and discrepancy stay near chance without consistency",
        ablation.STUDY,
        _ablated(lambda m: max(m.values()) < CHANCE, ("ce+ent", "ce+dis"), "auroc"),
    ),
    Finding(
        "entropy improves detection further",
        ablation.STUDY,
        _higher("ce+con+ent", "ce+con", "auroc"),
    ),
    Finding(
        "discrepancy improves classification",
        ablation.STUDY,
        _higher("ce+con+dis", "ce+con", "accuracy"),
    ),
    Finding(
        "all three together have the best joint F1",
        ablation.STUDY,
        _ablated(
            lambda m: m["ce+con+ent+dis"] == max(m.values()),
            ("ce+con+ent+dis", "ce+con+ent", "ce+con+dis", "ce+con"),
            "weighted_f1",
        ),
    ),
    Finding(
        "a consistency weight of 0 leaves attention near chance",
        sensitivity.STUDY,
        _curve("consistency", "auroc", lambda m: m["zero"] < CHANCE < m["used"]),
    ),
    Finding(
        "the entropy term helps detection",
        sensitivity.STUDY,
        _used_is_better("entropy", "auroc"),
    ),
    Finding(
        "a large entropy weight costs accuracy",
        sensitivity.STUDY,
        _curve("entropy", "accuracy", lambda means: means["last"] < means["zero"]),
    ),
    Finding(
        "the discrepancy term helps joint F1",
        sensitivity.STUDY,
        _used_is_better("discrepancy", "weighted_f1"),
    ),
    Finding(
        "a threshold above 0 helps joint F1",
        sensitivity.STUDY,
        _used_is_better("threshold", "weighted_f1"),
    ),
    Finding(
        "OODGAT keeps the entropies of ID and OOD nodes further apart than GCN",
        visualize.STUDY,
        _wider_gap,
    ),
)


def _table(*records: Records) -> tables.Table:
    names = (source.name for source in STUDY.sources)
    return draw(dict(zip(names, records, strict=True)))


STUDY = Study(
    name="findings",
    title="The paper's findings, one by one",
    about="What the paper claims, and whether the records below bear it out.",
    command="python -m experiments.findings",
    tables=study.single(_table),
    note=lambda *records: NOTE,
    caption="Claims and figures",
    read=None,
    beside=tuple(dict.fromkeys(finding.source for finding in FINDINGS)),
)


if __name__ == "__main__":
    app.run(main, own=RECORDS_DIR)
