"""Measures how fast training is: ms a step and run, memory, compile time, GFLOP/s.

  python -m experiments.benchmark
  python -m experiments.benchmark --datasets=cora,coauthor-cs --variants=sparse
  python -m experiments.benchmark --sizes=10000,20000,40000
  python -m experiments.benchmark --datasets=cora --peer='python their_train.py cora'
  python -m experiments.benchmark --scale --sizes=100000,1000000 --devices=1,2,4,8

Every measurement runs in its own process, so that its memory and compile time are its
own. "ms" is the time of a step divided by the runs that train at the same time, taken
while all devices are busy with runs under way, validation included. Variants:

  sparse     products in the CSR kernel, runs on one device per core
  segment    segment operations, runs on one device per core
  one        sparse, one device, runs one after the other
  vmap       segment operations, one device, all runs in one `vmap`

The last columns compare with what a plain dense product and a plain copy of memory
reach in the same process: the share of the former's GFLOP/s.

--peer runs your command right after our own measurement of each data set. It must
print `ms_per_step: X`; the ratio is added to the table. Records are appended to
OUT/benchmark.jsonl.

--scale measures instead what a step on a sharded graph costs each device, for every
size and every number of simulated devices: memory, bytes moved and time; see
docs/scale.md. Records are appended to OUT/scale.jsonl.
"""

import datetime
import itertools
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence

from absl import flags

from experiments.support import paper_results, scale, speed
from experiments.support.study import Study, single
from experiments.support.worker import in_process
from oodgat_jax import tables
from oodgat_jax.cli import app
from oodgat_jax.datasets import DATASETS
from oodgat_jax.methods import METHODS
from oodgat_jax.records import Record, append_lines, read_lines, versions
from oodgat_jax.registry import check_name, check_names
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
SHARED = ("datasets", "method", "data_dir", "out")
OWN: app.Definitions = {
    "sizes": (
        flags.DEFINE_list,
        [],
        "Nodes of generated graphs to measure, with 20 edges per node each.",
        {},
    ),
    "variants": (
        flags.DEFINE_list,
        ["sparse", "segment", "one", "vmap"],
        "What to measure; see above.",
        {},
    ),
    "runs": (
        flags.DEFINE_integer,
        9,
        "Runs that train at the same time.",
        {"lower_bound": 1},
    ),
    "seconds": (
        flags.DEFINE_float,
        20.0,
        "About how long to measure each.",
        {"lower_bound": 0.1},
    ),
    "scale": (
        flags.DEFINE_bool,
        False,
        "Measure graphs of the --sizes, sharded over devices.",
        {},
    ),
    "devices": (
        flags.DEFINE_list,
        ["1", "2", "4", "8"],
        "With --scale: numbers of simulated devices.",
        {},
    ),
    "steps": (
        flags.DEFINE_integer,
        3,
        "With --scale: steps to time; 0 only compiles, for shapes of graphs that are "
        "never made.",
        {"lower_bound": 0},
    ),
    "peer": (flags.DEFINE_string, None, "Command that prints ms_per_step: X.", {}),
}

PEER_TIMEOUT = 3600
SMALLEST = 1000  # nodes of a generated graph
NOTE = (
    "A step of one run, validation included, while {runs} runs train on {cores} cores "
    "(`experiments.benchmark`, variant sparse). The authors' PyTorch code takes its "
    "runs one at a time; its figures were taken on another machine of two cores."
)
GENERATED = " Generated graphs were measured with {runs} runs."
# Of the table that is printed, and of the one in documents.
HEADER = (
    "data set",
    "variant",
    "ms",
    "runs/min",
    "GB",
    "compile s",
    "ns/edge",
    "GFLOP/s",
    "of matmul",
)
BESIDE_AUTHORS = (
    "Graph",
    "ms",
    "authors' ms",
    "times faster",
    "GB",
    "compile s",
    "ns / edge",
)


def main() -> None:
    """Measures every data set and size in every variant, then prints the table."""
    folder = app.out_folder(FLAGS.out)
    check_name("method", FLAGS.method, METHODS)
    if FLAGS.scale:
        _scale(folder)
        return
    rows = []
    for job in _jobs():
        print(f"measuring {job.variant} on {job.dataset} ...", file=sys.stderr)
        record = in_process(speed.measure, job, FLAGS.plugin)
        if FLAGS.peer and job.variant == "sparse":
            record["peer_ms_per_step"] = peer_ms(FLAGS.peer)
        _append(folder / STUDY.file, record)
        rows.append(record)
    print(table(rows))


def _scale(folder: pathlib.Path) -> None:
    sizes = _numbers("sizes", scale.SMALLEST) or [scale.SMALLEST]
    devices = _numbers("devices", 1)
    rows = []
    for job in scale.jobs(sizes, devices, FLAGS.method, FLAGS.steps):
        count = job.devices or "one, whole"
        print(f"measuring {job.nodes} nodes, devices: {count} ...", file=sys.stderr)
        rows.append(in_process(scale.measure, job, FLAGS.plugin))
        _append(folder / SCALE.file, rows[-1])
    print(tables.as_text(scale.draw(rows)))


def _numbers(flag: str, lowest: int) -> list[int]:
    texts: list[str] = getattr(FLAGS, flag)
    for text in texts:
        if not text.isdigit() or int(text) < lowest:
            raise InputError(f"--{flag} takes numbers from {lowest}, not '{text}'.")
    return [int(text) for text in texts]


def table(records: list[dict]) -> str:
    """Returns the measurements as aligned text."""
    header: tuple[str, ...] = HEADER
    if any("peer_ms_per_step" in record for record in records):
        header = (*HEADER, "peer ms", "times faster")
    rows = [_row(record, len(header)) for record in records]
    return tables.as_text(tables.Table(header, rows, ("",) * len(header)))


def peer_ms(command: str) -> float:
    """Runs the peer's command and reads `ms_per_step: X` from what it prints."""
    try:
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, timeout=PEER_TIMEOUT
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"--peer took more than {PEER_TIMEOUT} s: {command}"
        ) from error
    found = re.findall(r"ms_per_step:\s*([0-9.eE+-]+)", done.stdout)
    if done.returncode or not found:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise InputError(
            f"--peer must print 'ms_per_step: X' and end with exit code 0, but it "
            f"ended with {done.returncode}: {last[-1]}"
        )
    return float(found[-1])


def _jobs() -> list[speed.Job]:
    check_names("variant", FLAGS.variants, speed.VARIANTS)
    check_names("data set", FLAGS.datasets, DATASETS)
    _numbers("sizes", SMALLEST)
    same = FLAGS.method, FLAGS.runs, FLAGS.seconds, FLAGS.data_dir
    return [
        speed.Job(name, variant, *same)
        for name in [*FLAGS.datasets, *FLAGS.sizes]
        for variant in FLAGS.variants
    ]


def _append(path, record: dict) -> None:
    stamp = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    append_lines(path, {**record, "time": stamp, "versions": versions()})


def _row(record: dict, width: int) -> list[tables.Cell]:
    ms = record["ms_per_step"]
    texts = [
        record["dataset"],
        record["variant"],
        f"{ms:.1f}",
        f"{record['runs_per_minute']:.1f}",
        f"{record['peak_memory_gb']:.1f}",
        f"{record['compile_seconds']:.1f}",
        f"{1e6 * ms / record['edges']:.0f}",
        f"{record['gflops']:.1f}",
        f"{100 * record['gflops'] / record['matmul_gflops']:.0f} %",
    ]
    peer = record.get("peer_ms_per_step")
    if width > len(HEADER):
        texts += [f"{peer:.0f}", f"{peer / ms:.1f}"] if peer else ["", ""]
    return [tables.Cell(text) for text in texts]


def draw(records: Sequence[Record]) -> tables.Table:
    """Draws the latest measurements: real data sets, then generated graphs by size."""
    return tables.Table(
        BESIDE_AUTHORS, [_beside_authors(record) for record in _chosen(records)]
    )


def note(records: Sequence[Record]) -> str:
    """Returns the note below the table."""
    chosen = _chosen(records)
    real = [r for r in chosen if not _generated(r)] or chosen
    runs, cores = (max(r[name] for r in real) for name in ("runs", "devices"))
    text = NOTE.format(runs=runs, cores=cores)
    others = {r["runs"] for r in filter(_generated, chosen)} - {runs}
    return text + GENERATED.format(runs=min(others)) if others else text


def _chosen(records: Sequence[Record]) -> list[Record]:
    """Returns the latest measurements of variant sparse.

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


def _generated(record: Record) -> bool:
    return record["dataset"].startswith("generated")


def _beside_authors(record: Record) -> list[str]:
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


STUDY = Study(
    name="benchmark",
    title="Speed",
    about="The time of a training step beside the authors' code.",
    command="python -m experiments.benchmark --out=experiments/records \\\n"
    "    --variants=sparse \\\n"
    "    --datasets=cora,amazon-computers,amazon-photo,coauthor-cs",
    tables=single(draw),
    note=note,
    caption="Training",
    read=read_lines,
)
SCALE = Study(
    name="scale",
    title="Graphs sharded over devices",
    about="What a training step costs each device when a graph is sharded, on "
    "generated graphs and simulated devices; `whole` is the graph on one device.",
    command="python -m experiments.benchmark --scale --out=experiments/records \\\n"
    "    --sizes=20000,40000,80000\n"
    "python -m experiments.benchmark --scale --out=experiments/records \\\n"
    "    --sizes=1000000 --devices=8 --steps=0",
    tables=single(scale.draw),
    caption="Memory, communication and time of a step",
    read=read_lines,
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN)
