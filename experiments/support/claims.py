"""Decides claims of the paper by records: one function per kind of claim."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from experiments import (
    ablation,
    edge_removal,
    edge_roles,
    post_hoc,
    sensitivity,
    visualize,
)
from experiments.support import main_table, paired
from experiments.support.study import Records
from oodgat_jax.records import Record, kept_metrics, latest

Check = Callable[[Records], "list[Verdict]"]


CHANCE = 0.65  # an AUROC below this is called near chance


class Verdict(NamedTuple):
    """Says whether a finding holds on a data set."""

    where: str  # data set
    holds: bool
    numbers: str
    p: float | None = None  # of the order of two, where runs are paired


def _mean(record: Record, metric: str = "auroc") -> float:
    return float(np.mean(kept_metrics(record)[metric]))


def _versus(where: str, ahead: float, behind: float) -> Verdict:
    return Verdict(where, ahead > behind, f"{100 * ahead:.1f} / {100 * behind:.1f}")


def _order(where: str, ahead: Record, behind: Record, metric: str = "auroc") -> Verdict:
    """Decides by the means of two records, and tests their order if they are paired."""
    verdict = _versus(where, _mean(ahead, metric), _mean(behind, metric))
    return verdict._replace(p=_p(ahead, behind, metric))


def _p(ahead: Record, behind: Record, metric: str) -> float | None:
    found = paired.compare(ahead, behind, metric)
    return None if found is None else found.p


def _best(records: Sequence[Record], metric: str = "auroc") -> Record:
    return max(records, key=lambda record: _mean(record, metric))


# The main table.


def _main_rows(records: Records, name: str) -> dict[str, Record]:
    """Returns the latest record of each row of the main table, by title."""
    found = {}
    for row in main_table.ROWS:
        if record := main_table.find(records, name, row):
            found[row.title] = record
    return found


def first_in(metric: str) -> Check:
    """Compares the better of OODGAT's scores with the best baseline."""

    def check(records: Records) -> list[Verdict]:
        verdicts = []
        for name in main_table.known(records):
            rows = _main_rows(records, name)
            ours = [r for title, r in rows.items() if "OODGAT" in title]
            others = [r for title, r in rows.items() if "OODGAT" not in title]
            if ours and others:
                sides = _best(ours, metric), _best(others, metric)
                verdicts.append(_order(name, *sides, metric))
        return verdicts

    return check


def graphs_beat_mlp(records: Records) -> list[Verdict]:
    """Compares the worst graph network of the paper's table with the MLP."""
    verdicts = []
    for name in main_table.known(records):
        rows = _main_rows(records, name)
        graph = [rows[t] for t in ("GCN", "GraphSAGE", "GAT", "GATv2") if t in rows]
        if graph and "MLP" in rows:
            verdicts.append(_order(name, min(graph, key=_mean), rows["MLP"]))
    return verdicts


# Edges.


def roles(ahead: str, behind: str) -> Check:
    """Compares the method's curves on two graphs, on each data set."""

    def check(records: Records) -> list[Verdict]:
        verdicts = []
        for name, method in edge_roles.known(records):
            found = edge_roles.find(records, name, method)
            one, two = (found.get((method, t, "ENT")) for t in (ahead, behind))
            if one and two:
                verdicts.append(_order(name, one, two))
        return verdicts

    return check


def removal_helps(records: Records) -> list[Verdict]:
    """Compares accuracy without inter-edges with that on the whole graph."""
    verdicts = []
    for name in dict.fromkeys(record["dataset"] for record in records):
        found = edge_removal.find(records, name, "gcn")
        if {0.0, 1.0} <= found.keys():
            verdicts.append(_order(name, found[1.0], found[0.0], "accuracy"))
    return verdicts


def proposition(records: Records) -> list[Verdict]:
    """Compares the two kinds of homophily, which may be equal."""
    verdicts = []
    for name, record in {record["dataset"]: record for record in records}.items():
        pair = record["identity_homophily"], record["class_homophily"]
        verdicts.append(_versus(name, *pair)._replace(holds=pair[0] >= pair[1]))
    return verdicts


# Regularizers.


def ablated(
    decide: Callable[[dict[str, float]], bool],
    rows: Sequence[str],
    metric: str,
    tested: bool = False,
) -> Check:
    """Decides by the means of rows of the ablation, on every data set that has them.

    If `tested`, the claim is that the first of two rows is ahead.
    """

    def check(records: Records) -> list[Verdict]:
        verdicts = []
        for name, method in ablation.known(records):
            found = ablation.find(records, name, method)
            if all((row, "ATT") in found for row in rows):
                means = {row: _mean(found[row, "ATT"], metric) for row in rows}
                numbers = ", ".join(f"{row} {100 * v:.1f}" for row, v in means.items())
                one, two = found[rows[0], "ATT"], found[rows[-1], "ATT"]
                p = _p(one, two, metric) if tested else None
                verdicts.append(Verdict(name, decide(means), numbers, p))
        return verdicts

    return check


def higher(one: str, two: str, metric: str) -> Check:
    """Compares two rows of the ablation."""
    return ablated(lambda means: means[one] > means[two], (one, two), metric, True)


def curve(
    name: str,
    metric: str,
    decide: Callable[[dict[str, float]], bool],
    tested: tuple[str, str] | None = None,
) -> Check:
    """Decides by three points of a curve: `zero`, the main table's `used`, the `last`.

    `tested` names the two whose order is claimed, the one ahead first.
    """

    def check(records: Records) -> list[Verdict]:
        verdicts = []
        for dataset, method in ablation.known(records):
            curve = sensitivity.curves(records, dataset, method).get(name, {})
            at = {r["hyperparameters"][name]: r for r in curve.get("ATT", ())}
            points = {value: _mean(record, metric) for value, record in at.items()}
            used = next((r["base"][name] for r in curve.get("ATT", ())), None)
            if {0.0, used} <= points.keys() and len(points) > 1:
                chosen = {"zero": 0.0, "used": used, "last": max(points)}
                means = {key: points[value] for key, value in chosen.items()}
                shown = dict.fromkeys(chosen.values())
                numbers = ", ".join(f"{v:g} {100 * points[v]:.1f}" for v in shown)
                p = None
                if tested:
                    one, two = (at[chosen[key]] for key in tested)
                    p = _p(one, two, metric)
                verdicts.append(Verdict(dataset, decide(means), numbers, p))
        return verdicts

    return check


def used_is_better(name: str, metric: str) -> Check:
    """Compares the main table's value of a curve with 0."""
    claim = ("used", "zero")
    return curve(name, metric, lambda means: means["used"] > means["zero"], claim)


# Detectors, GKDE, training.


def beyond_post_hoc(records: Records) -> list[Verdict]:
    """Compares OODGAT's own two scores, not propagated, with all detectors on GAT, each
    by its latest record."""
    verdicts = []
    for name in post_hoc.known(records):
        mine = [r for r in records if r["dataset"] == name]
        chosen = [r for r in mine if r["selection"] in ("fixed", "validation")]
        mine = list({(r["method"], r["detector"]): r for r in chosen}.values())
        plain = [r for r in mine if r["detector"] in ("ENT", "ATT")]
        ours = [r for r in plain if r["method"] == "oodgat"]
        others = [r for r in mine if r["method"] == "gat"]
        if ours and others:
            verdicts.append(_order(name, _best(ours), _best(others)))
    return verdicts


def beyond_gkde(records: Records) -> list[Verdict]:
    """Compares OODGAT's attention with GKDE's vacuity."""
    verdicts = []
    for name in dict.fromkeys(record["dataset"] for record in records):
        ours = latest(records, dataset=name, method="oodgat", detector="ATT")
        gkde = latest(records, dataset=name, method="gkde", detector="vacuity")
        if ours and gkde:
            verdicts.append(_order(name, ours, gkde))
    return verdicts


def wider_gap(records: Records) -> list[Verdict]:
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
