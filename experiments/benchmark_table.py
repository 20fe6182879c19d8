"""The speed of training beside the authors' code: the table and its note."""

from collections.abc import Sequence

from experiments import published, tables

NOTE = (
    "A step of one run, validation included, while {runs} runs go on {cores} cores "
    "(`experiments.benchmark`, variant sparse). The authors' PyTorch code takes its "
    "runs one at a time; its figures were taken on another machine of two cores."
)


def markdown(records: Sequence[dict]) -> str:
    """Real data sets from their latest measurements, then generated graphs by size."""
    sparse = {r["dataset"]: r for r in records if r["variant"] == "sparse"}
    real = [sparse[name] for name in published.datasets() if name in sparse]
    made = [r for name, r in sparse.items() if name.startswith("generated")]
    rows = [_row(r) for r in [*real, *sorted(made, key=lambda r: r["nodes"])]]
    header = [
        "Graph",
        "ms",
        "authors' ms",
        "times faster",
        "GB",
        "compile s",
        "ns / edge",
    ]
    note = NOTE.format(
        runs=max(r["runs"] for r in real or made),
        cores=max(r["devices"] for r in real or made),
    )
    return f"{tables.as_markdown(tables.Table(header, rows))}\n{note}\n"


def _row(record: dict) -> list[str]:
    ms, theirs = record["ms_per_step"], published.authors_ms(record["dataset"])
    name = record["dataset"]
    if name.startswith("generated"):
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
