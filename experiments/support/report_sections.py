"""The sections of the report, in the order of the page; one entry of SECTIONS each.

A section names its records file and how to make it, and turns the records into tables
and figures with captions. If the file is not there, the page says so instead.
"""

import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from experiments import (
    ablation,
    edge_removal,
    edge_roles,
    findings,
    homophily,
    sensitivity,
    tune,
    visualize,
)
from experiments.support import (
    benchmark_table,
    gkde_table,
    main_table,
    no_ood_labels_table,
    post_hoc_table,
    run_figures,
)
from experiments.support.report_page import Figures, Tables
from oodgat_jax.records import Record, read_lines, read_records
from oodgat_jax.tables import Table

# Files whose lines have keys of their own, as `results.append_line` writes them.
LINES = ("benchmark.jsonl", homophily.FILE)
PAIRED = (
    "OODGAT's AUROC less each baseline's over the same splits and seeds: mean in "
    "points and its 95 % bootstrap interval"
)


class Section(NamedTuple):
    """A part of the page.

    Callables get the records of `file`, then those of each of `beside`.
    """

    title: str
    file: str  # its records; without them the section is left out
    about: str  # a sentence or two; `code` is shown as code
    command: str  # makes the file; may have several lines
    tables: Callable[..., Tables] = lambda *records: ()  # (caption, table)
    figures: Callable[..., Figures] = lambda *records: ()  # (caption, figure)
    note: Callable[..., str] = lambda *records: ""  # under tables and figures
    beside: tuple[str, ...] = ()  # further files; [] for one that is not there


def read(path: pathlib.Path) -> list[Record]:
    """The records of a file, [] if it is not there."""
    if not path.is_file():
        return []
    return (read_lines if path.name in LINES else read_records)(path)


def _rest(table: Table) -> Table:
    """The table without its first column, which the caption tells."""
    rows = [row[1:] for row in table.rows]
    return Table(table.header[1:], rows, table.best[1:])


def _main_tables(records: Sequence[Record]) -> Tables:
    found = [
        (name, main_table.draw(records, name)) for name in main_table.known(records)
    ]
    paired = main_table.comparison_table(records)
    return [*found, (PAIRED, paired)] if paired.rows else found


def _post_hoc_tables(records: Sequence[Record]) -> Tables:
    return [
        (name, _rest(post_hoc_table.draw(records, [name])))
        for name in post_hoc_table.known(records)
    ]


def _gkde_tables(records: Sequence[Record]) -> Tables:
    return [
        (name, _rest(gkde_table.draw(records, [name])))
        for name in gkde_table.known(records)
    ]


def _findings_tables(*records: Sequence[Record]) -> Tables:
    by_source = dict(zip(findings.sources(), records, strict=True))
    return [("Claims and figures", findings.draw(by_source))]


def _edge_role_figures(records: Sequence[Record]) -> Figures:
    return [
        (f"{name}: ROC curves of detection", figure)
        for name, figure in edge_roles.draw_figures(records).items()
    ]


def _sensitivity_figures(records: Sequence[Record]) -> Figures:
    return [
        (f"{name}: over one hyper-parameter at a time", figure)
        for name, figure in sensitivity.draw_figures(records).items()
    ]


def _side_by_side(records: Sequence[Record]) -> Figures:
    return [
        (
            f"{name}: hidden layer, scores of test nodes, mean entropy over training",
            figure,
        )
        for name, figure in visualize.draw_figures(records).items()
    ]


SECTIONS: tuple[Section, ...] = (
    Section(
        title="The paper's findings, one by one",
        file=f"{findings.sources()[0]}.jsonl",
        about="What the paper claims, and whether the records below bear it out.",
        command="python -m experiments.findings",
        tables=_findings_tables,
        note=lambda *records: findings.NOTE,
        beside=tuple(f"{source}.jsonl" for source in findings.sources()[1:]),
    ),
    Section(
        title="The main table: methods trained end to end",
        file=main_table.FILE,
        about="Baselines and OODGAT on the paper's data sets, every method with the "
        "same splits and seeds. Known classes are told apart and OOD nodes are found "
        "by one network. Digits is a demonstration that needs no download; the paper "
        "does not have it.",
        command="python -m experiments.end_to_end --out=experiments/records \\\n"
        "    --datasets=cora,amazon-computers,amazon-photo,coauthor-cs,digits",
        tables=_main_tables,
        figures=lambda records: [
            (run_figures.CAPTION, run_figures.end_to_end(records))
        ],
        note=main_table.note,
    ),
    Section(
        title="Tuning",
        file=tune.FILE,
        about="What a grid of hyper-parameters leads to, on Cora the paper's, chosen "
        "by validation alone.",
        command="python -m experiments.tune --dataset=cora --method=gat \\\n"
        "    --out=experiments/records",
        tables=lambda records: [("Chosen settings", tune.draw(records))],
        note=lambda records: tune.NOTE,
    ),
    Section(
        title="Post-hoc detectors",
        file="post_hoc.jsonl",
        about="Detectors that take a trained GAT as it is, beside OODGAT, which learns "
        "to detect.",
        command="python -m experiments.post_hoc --out=experiments/records \\\n"
        "    --datasets=cora,amazon-computers,amazon-photo,coauthor-cs,digits",
        tables=_post_hoc_tables,
        note=post_hoc_table.note,
    ),
    Section(
        title="Under GKDE's protocol",
        file="gkde.jsonl",
        about="OODGAT beside the evidential baseline GKDE, on the public splits and "
        "with the evaluation draws of GKDE's code.",
        command="python -m experiments.gkde --out=experiments/records",
        tables=_gkde_tables,
        note=gkde_table.note,
    ),
    Section(
        title="Without OOD labels",
        file="no_ood_labels.jsonl",
        about="What `OODGATClassifier` loses by choosing its step and its threshold "
        "without a single OOD label.",
        command="python -m experiments.no_ood_labels --out=experiments/records \\\n"
        "    --datasets=cora,amazon-computers,amazon-photo,coauthor-cs,digits",
        tables=lambda records, labelled: [
            ("Choices with and without", no_ood_labels_table.draw(records, labelled))
        ],
        note=lambda records, labelled: no_ood_labels_table.note(records),
        beside=(main_table.FILE,),
    ),
    Section(
        title="Speed",
        file="benchmark.jsonl",
        about="The time of a training step beside the authors' code.",
        command="python -m experiments.benchmark --out=experiments/records \\\n"
        "    --variants=sparse \\\n"
        "    --datasets=cora,amazon-computers,amazon-photo,coauthor-cs",
        tables=lambda records: [("Training", benchmark_table.draw(records))],
        note=benchmark_table.note,
    ),
    Section(
        title="Homophily",
        file=homophily.FILE,
        about="How alike neighbours are: by class, and by being known or unknown.",
        command="python -m experiments.homophily --out=experiments/records",
        tables=lambda records: [("All data sets", homophily.draw(records))],
        note=lambda records: homophily.NOTE,
    ),
    Section(
        title="The roles of edges in detection",
        file=edge_roles.FILE,
        about="Detection with and without a graph, and on graphs that lack some edges.",
        command="python -m experiments.edge_roles --out=experiments/records",
        tables=lambda records: [("Areas under the curves", edge_roles.draw(records))],
        figures=_edge_role_figures,
        note=edge_roles.note,
    ),
    Section(
        title="Removing inter-edges",
        file=edge_removal.FILE,
        about="Accuracy of a classifier when edges between ID and OOD nodes go.",
        command="python -m experiments.edge_removal --out=experiments/records",
        tables=lambda records: [("Accuracy", edge_removal.draw(records))],
        note=edge_removal.note,
    ),
    Section(
        title="Ablation",
        file=ablation.FILE,
        about="OODGAT trained with some of its regularisers only.",
        command="python -m experiments.ablation --seeds=1 --out=experiments/records",
        tables=lambda records: [("By terms of the loss", ablation.draw(records))],
        note=ablation.note,
    ),
    Section(
        title="Sensitivity",
        file=sensitivity.FILE,
        about="OODGAT over each of its hyper-parameters, the others held.",
        command="python -m experiments.sensitivity --seeds=1 --out=experiments/records",
        tables=lambda records: [("Points of the curves", sensitivity.draw(records))],
        figures=_sensitivity_figures,
        note=sensitivity.note,
    ),
    Section(
        title="Side by side",
        file=visualize.FILE,
        about="What a graph network and OODGAT make of the same graph.",
        command="python -m experiments.visualize --out=experiments/records",
        figures=_side_by_side,
    ),
)
