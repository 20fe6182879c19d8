"""The speed of training beside the authors' code: the table and its note."""

import itertools
from collections.abc import Sequence

from experiments.support import paper_results
from oodgat_jax import tables
from oodgat_jax.types import InputError

NOTE = (
    "A step of one run, validation included, while {runs} runs go on {cores} cores "
    "(`experiments.benchmark`, variant sparse). The authors' PyTorch code takes its "
    "runs one at a time; its figures were taken on another machine of two cores."
)
GENERATED = " Generated graphs were measured with {runs} runs."

HEADER = (
    "Graph",
    "ms",
    "authors' ms",
    "times faster",
    "GB",
    "compile s",
    "ns / edge",
)


def draw(records: Sequence[dict]) -> tables.Table:
    """Real data sets from their latest measurements, then generated graphs by size."""
    return tables.Table(HEADER, [_row(record) for record in _chosen(records)])


def note(records: Sequence[dict]) -> str:
    """What the table's figures are."""
    chosen = _chosen(records)
    real = [r for r in chosen if not _generated(r)] or chosen
    runs, cores = (max(r[name] for r in real) for name in ("runs", "devices"))
    text = NOTE.format(runs=runs, cores=cores)
    others = {r["runs"] for r in filter(_generated, chosen)} - {runs}
    return text + GENERATED.format(runs=min(others)) if others else text


def markdown(records: Sequence[dict]) -> str:
    """The table and its note."""
    return tables.with_note(draw(records), note(records))


def _chosen(records: Sequence[dict]) -> list[dict]:
    """The latest measurements of variant sparse.

    Raises:
      InputError: there is none.
    """
    sparse = {r["dataset"]: r for r in records if r["variant"] == "sparse"}
    if not sparse:
        raise InputError("There is no measurement of variant sparse.")
    ordered = [sparse[name] for name in paper_results.in_order(sparse)]
    made = filter(_generated, ordered)
    real = itertools.filterfalse(_generated, ordered)
    return [*real, *sorted(made, key=lambda r: r["nodes"])]


def _generated(record: dict) -> bool:
    return record["dataset"].startswith("generated")


def _row(record: dict) -> list[str]:
    ms, theirs = record["ms_per_step"], paper_results.authors_ms(record["dataset"])
    name = record["dataset"]
    if _generated(record):
        name = f"generated, {record['nodes']:,} nodes, {record['edges']:,} edges"
    return [
        name,
        f"{ms:,.1f}",
        f"{theirs:,.0f}" if theirs else "",
        f"{theirs / ms:.1f}" if theirs else "",
        f"{record['peak_memory_gb']:.1f}",
        f"{record['compile_seconds']:.0f}",
        f"{1e6 * ms / record['edges']:,.0f}",
    ]
