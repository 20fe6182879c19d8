"""Checks the paper's findings one by one: does each hold in the records?

  python -m experiments.findings
  python -m experiments.findings --records_dir=results

Reads the records of the experiments and trains nothing; takes about two seconds. A
finding without records says which command makes them.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
from experiments.support import claims, paired, study
from experiments.support.claims import CHANCE, Check, Verdict
from experiments.support.study import Records, Study
from experiments.support.study_flags import RECORDS_DIR
from oodgat_jax import tables
from oodgat_jax.cli import app

FLAGS = flags.FLAGS
NOTE = (
    "A finding holds on a data set if the means over its runs say so; figures are "
    "percent, the side that the paper claims to be ahead first. Where several methods "
    "or scores are on a side, the one with the best mean on test nodes stands for it. "
    f"An AUROC below {100 * CHANCE:.0f} is called near chance. Of a curve, "
    "the figures at 0, at the main table's value and at the largest are given. Where "
    "two are compared over the same runs, their order is tested by a paired bootstrap "
    "over these; n.s.: not significant at 5 % after Holm's correction for all {count} "
    f"tests of this table, or fewer than {paired.LEAST} runs."
)


class Finding(NamedTuple):
    """A claim of the paper, and how records decide it."""

    claim: str
    source: Study  # whose records decide
    check: Check


def main() -> None:
    """Reads, decides, prints."""
    folder = pathlib.Path(FLAGS.records_dir)
    records = [study.read_source(source, folder) for source in STUDY.sources]
    print(study.text(STUDY, *records))


def draw(records: Mapping[str, Records]) -> tables.Table:
    """Draws a row per finding, from the records of studies by name."""
    decided = _marked(_decided(records))
    rows = [[f.claim, *_summary(f, v)] for f, v in zip(FINDINGS, decided, strict=True)]
    return tables.Table(["The paper finds", "Here it", "Figures"], rows)


def _decided(records: Mapping[str, Records]) -> list[list[Verdict]]:
    """Returns the verdicts of each finding, [] where there are no records."""
    found = [(f, records.get(f.source.name, ())) for f in FINDINGS]
    return [f.check(mine) if mine else [] for f, mine in found]


def _tested(decided: Sequence[Sequence[Verdict]]) -> list[float]:
    return [v.p for verdicts in decided for v in verdicts if v.p is not None]


def _marked(decided: Sequence[Sequence[Verdict]]) -> list[list[Verdict]]:
    """Marks the figures whose order is not significant together with all others."""
    sure = iter(paired.holm(_tested(decided)))

    def mark(verdict: Verdict) -> Verdict:
        if verdict.p is None or next(sure):
            return verdict
        return verdict._replace(numbers=f"{verdict.numbers} (n.s.)")

    return [[mark(verdict) for verdict in verdicts] for verdicts in decided]


def _summary(finding: Finding, verdicts: Sequence[Verdict]) -> tuple[str, str]:
    if not verdicts:
        return "is not measured", f"python -m experiments.{finding.source.name}"
    numbers = "; ".join(f"{v.where} {v.numbers}" for v in verdicts)
    failing = [verdict.where for verdict in verdicts if not verdict.holds]
    if not failing:
        return "holds", numbers
    held, count = len(verdicts) - len(failing), len(verdicts)
    held_on = f"holds on {held} of {count} (not {', '.join(failing)})"
    return held_on if held else "does not hold", numbers


FINDINGS = (
    Finding(
        "OODGAT is first in AUROC among methods trained end to end",
        end_to_end.STUDY,
        claims.first_in("auroc"),
    ),
    Finding(
        "OODGAT is first in joint F1 among methods trained end to end",
        end_to_end.STUDY,
        claims.first_in("weighted_f1"),
    ),
    Finding(
        "graph networks detect better than an MLP",
        end_to_end.STUDY,
        claims.graphs_beat_mlp,
    ),
    Finding(
        "detectors on GAT stay behind OODGAT", post_hoc.STUDY, claims.beyond_post_hoc
    ),
    Finding(
        "OODGAT is ahead of GKDE under its protocol", gkde.STUDY, claims.beyond_gkde
    ),
    Finding(
        "a graph is no less homophilic by ID/OOD than by class",
        homophily.STUDY,
        claims.proposition,
    ),
    Finding(
        "GCN detects better without inter-edges",
        edge_roles.STUDY,
        claims.roles("no inter-edges", "all edges"),
    ),
    Finding(
        "edges inside the ID nodes help detection",
        edge_roles.STUDY,
        claims.roles("no inter-edges", "no inter- and ID-ID edges"),
    ),
    Finding(
        "edges inside the OOD nodes help detection",
        edge_roles.STUDY,
        claims.roles("no inter-edges", "no inter- and OOD-OOD edges"),
    ),
    Finding(
        "GCN classifies better without inter-edges",
        edge_removal.STUDY,
        claims.removal_helps,
    ),
    Finding(
        "cross-entropy alone leaves attention near chance",
        ablation.STUDY,
        claims.ablated(lambda means: means["ce"] < CHANCE, ("ce",), "auroc"),
    ),
    Finding(
        "consistency is what makes detection work",
        ablation.STUDY,
        claims.ablated(
            # It gains more than the other two together.
            lambda m: m["ce+con"] - m["ce"] > m["ce+ent"] + m["ce+dis"] - 2 * m["ce"],
            ("ce", "ce+con", "ce+ent", "ce+dis"),
            "auroc",
        ),
    ),
    Finding(
        "entropy and discrepancy stay near chance without consistency",
        ablation.STUDY,
        claims.ablated(
            lambda m: max(m.values()) < CHANCE, ("ce+ent", "ce+dis"), "auroc"
        ),
    ),
    Finding(
        "entropy improves detection further",
        ablation.STUDY,
        claims.higher("ce+con+ent", "ce+con", "auroc"),
    ),
    Finding(
        "discrepancy improves classification",
        ablation.STUDY,
        claims.higher("ce+con+dis", "ce+con", "accuracy"),
    ),
    Finding(
        "all three together have the best joint F1",
        ablation.STUDY,
        claims.ablated(
            lambda m: m["ce+con+ent+dis"] == max(m.values()),
            ("ce+con+ent+dis", "ce+con+ent", "ce+con+dis", "ce+con"),
            "weighted_f1",
        ),
    ),
    Finding(
        "a consistency weight of 0 leaves attention near chance",
        sensitivity.STUDY,
        claims.curve("consistency", "auroc", lambda m: m["zero"] < CHANCE < m["used"]),
    ),
    Finding(
        "the entropy term helps detection",
        sensitivity.STUDY,
        claims.used_is_better("entropy", "auroc"),
    ),
    Finding(
        "a large entropy weight costs accuracy",
        sensitivity.STUDY,
        claims.curve(
            "entropy",
            "accuracy",
            lambda means: means["last"] < means["zero"],
            ("zero", "last"),
        ),
    ),
    Finding(
        "the discrepancy term helps joint F1",
        sensitivity.STUDY,
        claims.used_is_better("discrepancy", "weighted_f1"),
    ),
    Finding(
        "a threshold above 0 helps joint F1",
        sensitivity.STUDY,
        claims.used_is_better("threshold", "weighted_f1"),
    ),
    Finding(
        "OODGAT keeps the entropies of ID and OOD nodes further apart than GCN",
        visualize.STUDY,
        claims.wider_gap,
    ),
)


def _by_study(records: Sequence[Records]) -> dict[str, Records]:
    names = (source.name for source in STUDY.sources)
    return dict(zip(names, records, strict=True))


def _table(*records: Records) -> tables.Table:
    return draw(_by_study(records))


def _note(*records: Records) -> str:
    return NOTE.format(count=len(_tested(_decided(_by_study(records)))))


STUDY = Study(
    name="findings",
    title="The paper's findings, one by one",
    about="What the paper claims, and whether the records below bear it out.",
    command="python -m experiments.findings",
    tables=study.single(_table),
    note=_note,
    caption="Claims and figures",
    read=None,
    beside=tuple(dict.fromkeys(finding.source for finding in FINDINGS)),
)


if __name__ == "__main__":
    app.run(main, own=RECORDS_DIR)
