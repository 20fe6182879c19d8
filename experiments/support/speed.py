"""Shows measurements of training steps: as a report to paste, and in documents.

A ratio is taken within one record only: both sides of it were measured in alternating
rounds of one run on one machine.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.support import paper_results
from oodgat_jax import tables
from oodgat_jax.records import Record
from oodgat_jax.types import InputError

HEADER = (
    "data set",
    "method",
    "variant",
    "kernel",
    "ms",
    "runs/min",
    "GB",
    "compile s",
    "ns/edge",
    "GFLOP/s",
    "of matmul",
    "GB/s",
    "of gather",
)
PEER_HEADER = ("peer", "peer ms", "times faster", "in CPU time")
BESIDE = (
    "Graph",
    "Method",
    "Beside",
    "ms",
    "their ms",
    "times faster",
    "in CPU time",
    "other work, cores",
)
ALONE = (
    "Graph",
    "Method",
    "Kernel",
    "ms",
    "GB",
    "compile s",
    "ns / edge",
    "of matmul",
    "of gather",
)
SUMMARY = ("Data set", "ours, ms", "theirs, ms", "times faster")
AUTHORS = "authors' code"  # the --peer_name that the documents know
PREFERRED = (AUTHORS, "pyg")
NAMES = {"pyg": "PyG"}
NOTE = (
    "Milliseconds of a step of one run, validation included, while {runs} runs train "
    "on {cores} cores; a peer takes its runs one at a time, on as many threads."
)
BESIDE_NOTE = (
    " Ours and theirs were measured in one run, in {rounds} alternating rounds: "
    "medians, and in parentheses the lowest and the highest ratio of a round."
)
MACHINE = (
    " {processor}, {cores} cores, {first}{last}; other work took {others} "
    "of the cores meanwhile."
)


def report(records: Sequence[Record]) -> str:
    """Returns device, versions and figures, to be pasted into a report."""
    last = records[-1]
    lines = [
        f"{name}: {_listed(last[name])}"
        for name in ("machine", "versions")
        if name in last
    ]
    for record in records:
        if about := record.get("peer", {}).get("about"):
            lines.append(f"{record['peer']['name']}: {about}")
    others = _between([round(r["others_cores"], 1) for r in records])
    stamp = f"time: {last['time']}; other work took {others} cores meanwhile"
    lines = [*dict.fromkeys(lines), stamp]
    return "\n".join([*lines, "", table(records)])


def _listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def table(records: Sequence[Record]) -> str:
    """Returns the measurements as aligned text."""
    beside = any("peer" in record for record in records)
    header = (*HEADER, *PEER_HEADER) if beside else HEADER
    rows = [_row(record, beside) for record in records]
    return tables.as_text(tables.Table(header, rows, ("",) * len(header)))


def _row(record: Record, beside: bool) -> list[tables.Cell]:
    ms = record["ms_per_step"]
    texts = [
        record["dataset"],
        record["method"],
        record["variant"],
        record["kernel"],
        f"{ms:.1f}",
        f"{record['runs_per_minute']:.1f}",
        f"{record['peak_memory_gb']:.1f}",
        f"{record['compile_seconds']:.1f}",
        f"{1e6 * ms / record['edges']:.0f}",
        f"{record['gflops']:.1f}",
        _share(record, "gflops", "matmul_gflops"),
        f"{record['gathered_gbytes']:.1f}" if "gathered_gbytes" in record else "",
        _share(record, "gathered_gbytes", "gather_gbytes"),
    ]
    if beside:
        texts += _peer(record) if "peer" in record else [""] * len(PEER_HEADER)
    return [tables.Cell(text) for text in texts]


def _share(record: Record, reached: str, best: str) -> str:
    """Returns a rate as a share of what the machine can reach, if both are known."""
    if record.get(reached) is None or record.get(best) is None:
        return ""
    return f"{100 * record[reached] / record[best]:.0f} %"


def _peer(record: Record) -> list[str]:
    name, theirs = record["peer"]["name"], record["peer_ms_per_step"]
    ratios = _spread(record["peer"]["ratios"])
    cpu_ratios = _spread(record["peer"]["cpu_ratios"])
    return [NAMES.get(name, name), f"{theirs:,.0f}", ratios, cpu_ratios]


def _spread(ratios: Sequence[float]) -> str:
    """Returns the median of the rounds, with the lowest and the highest."""
    if not ratios:
        return ""
    return f"{np.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})"


def draw(records: Sequence[Record]) -> list[tuple[str, tables.Table]]:
    """Draws the latest measurements beside peers, and those of ours alone.

    Raises:
      InputError: there is none.
    """
    beside, alone = _beside(records), _alone(records)
    if not beside and not alone:
        raise InputError("There is no measurement of speed.")
    found = [
        ("Beside PyTorch", BESIDE, [_beside_row(r) for r in beside]),
        ("Ours alone", ALONE, [_alone_row(r) for r in alone]),
    ]
    return [
        (title, tables.Table(header, rows)) for title, header, rows in found if rows
    ]


def summary(records: Sequence[Record]) -> tables.Table:
    """Draws OODGAT beside the authors' code, or else PyG, a row per data set."""
    chosen: dict[str, Record] = {}
    for name in reversed(PREFERRED):
        found = [r for r in _beside(records) if r["peer"]["name"] == name]
        chosen |= {r["dataset"]: r for r in found if r["method"] == "oodgat"}
    return tables.Table(
        SUMMARY,
        [
            [
                name,
                f"{chosen[name]['ms_per_step']:,.1f}",
                f"{chosen[name]['peer_ms_per_step']:,.0f}",
                f"{np.median(chosen[name]['peer']['ratios']):.1f}",
            ]
            for name in paper_results.in_order(chosen)
        ],
    )


def note(records: Sequence[Record]) -> str:
    """Returns the note below the tables."""
    shown = [*_beside(records), *_alone(records)]
    first, *_ = shown
    text = NOTE.format(runs=first["runs"], cores=first["devices"])
    if beside := _beside(records):
        counts = [len(r["peer"]["ratios"]) for r in beside]
        text += BESIDE_NOTE.format(rounds=_between(counts))
    return text + "".join(_machines([r for r in shown if "machine" in r]))


def _machines(records: Sequence[Record]) -> list[str]:
    """Returns a sentence per processor: when it was measured on, and its load."""
    texts = []
    for name in dict.fromkeys(r["machine"]["processor"] for r in records):
        here = [r for r in records if r["machine"]["processor"] == name]
        days = sorted({r["time"][:10] for r in here})
        texts.append(
            MACHINE.format(
                processor=name,
                cores=here[0]["machine"]["cores"],
                first=days[0],
                last=f" to {days[-1]}" if len(days) > 1 else "",
                others=_between([round(r["others_cores"], 1) for r in here]),
            )
        )
    return texts


def _between(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def _beside(records: Sequence[Record]) -> list[Record]:
    """Returns the latest measurement of each data set, method and peer."""
    latest = {
        (r["dataset"], r["method"], r["peer"]["name"]): r
        for r in records
        if r["variant"] and "peer" in r
    }
    names = paper_results.in_order(name for name, *_ in latest)
    methods = sorted({method for _, method, _ in latest}, key=_oodgat_first)
    return sorted(
        latest.values(),
        key=lambda r: (methods.index(r["method"]), names.index(r["dataset"])),
    )


def _oodgat_first(method: str) -> tuple[bool, str]:
    return method != "oodgat", method


def _alone(records: Sequence[Record]) -> list[Record]:
    """Returns the latest measurement without a peer of each data set and variant.

    Records of before the machine was recorded count only if there are no others.
    """
    without = [r for r in records if r["variant"] and "peer" not in r]
    if any("machine" in r for r in records):
        without = [r for r in without if "machine" in r]
    latest = {(r["dataset"], r["method"], r["variant"]): r for r in without}
    names = paper_results.in_order(name for name, *_ in latest)
    return sorted(
        latest.values(),
        key=lambda r: (
            _generated(r),
            _generated(r) and r["nodes"],
            names.index(r["dataset"]),
        ),
    )


def _generated(record: Record) -> bool:
    return record["dataset"].startswith("generated")


def _graph(record: Record) -> str:
    if not _generated(record):
        return record["dataset"]
    return f"generated, {record['nodes']:,} nodes, {record['edges']:,} edges"


def _beside_row(record: Record) -> list[str]:
    name, *theirs = _peer(record)
    ms = f"{record['ms_per_step']:,.1f}"
    others = f"{record['others_cores']:.1f}"
    return [_graph(record), record["method"], name, ms, *theirs, others]


def _alone_row(record: Record) -> list[str]:
    ms = record["ms_per_step"]
    kernel: str = record.get("kernel") or record["variant"]
    batched = ", vmap" if record["variant"] == "vmap" else ""
    return [
        _graph(record),
        record["method"],
        kernel + batched,
        f"{ms:,.1f}",
        f"{record['peak_memory_gb']:.1f}",
        f"{record['compile_seconds']:.0f}",
        f"{1e6 * ms / record['edges']:,.0f}",
        _share(record, "gflops", "matmul_gflops"),
        _share(record, "gathered_gbytes", "gather_gbytes"),
    ]
