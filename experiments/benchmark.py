"""Measures how fast training is: ms a step and run, memory, compile time, GFLOP/s.

  python -m experiments.benchmark
  python -m experiments.benchmark --datasets=cora,coauthor-cs --variants=native,sparse
  python -m experiments.benchmark --sizes=10000,20000,40000
  python -m experiments.benchmark --datasets=cora --peer=pyg --peer_python=PYTHON
  python -m experiments.benchmark --datasets=cora --peer='python their_train.py cora'
  python -m experiments.benchmark --scale --sizes=100000,1000000 --devices=1,2,4,8

Every measurement runs in its own process, so that its memory and compile time are its
own. "ms" is the time of a step divided by the runs that train at the same time, taken
while all devices are busy with runs under way, validation included. Variants:

  auto       what training chooses on this machine
  native     fused CPU kernels, runs on one device per core
  sparse     products in the CSR kernel, runs on one device per core
  segment    segment operations, runs on one device per core
  one        sparse, one device, runs one after the other
  vmap       segment operations, one device, all runs in one `vmap`

The columns GFLOP/s compare with what a plain dense product reaches in the same process,
GB/s (rows of neighbors that a step reads) with what reading as many rows of that width
in a random order reaches there.
The output begins with the device and the versions: paste all of it into a report.

--peer measures another implementation in the same run: rounds of ours and of the
peer's alternate, and the table gets the median ratio with the lowest and the highest.
`pyg` is our own plain PyTorch Geometric version of OODGAT, GAT or GCN, run by the
interpreter --peer_python (pip install 'oodgat-jax[peers]') with as many threads as we
use cores. Anything else is a command that trains and prints `ms_per_step: X`, and if it
likes `cpu_ms_per_step: X`. Other work on the machine slows down threads that wait for
each other most: where there is some, the ratio of CPU time is the safer one. Records
are appended to OUT/benchmark.jsonl.

--scale measures instead what a step on a sharded graph costs each device, for every
size and every number of simulated devices: memory, bytes moved and time; see
docs/scale.md. Records are appended to OUT/scale.jsonl.
"""

import datetime
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from absl import flags

from experiments.support import machine, peers, scale, speed, step_time
from experiments.support.study import Study, single
from experiments.support.worker import Worker, in_process
from oodgat_jax import graphs, tables
from oodgat_jax.cli import app
from oodgat_jax.datasets import DATASETS
from oodgat_jax.methods import METHODS
from oodgat_jax.records import append_lines, made_by, read_lines
from oodgat_jax.registry import check_name, check_names
from oodgat_jax.training import capacity
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
        ["auto"],
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
        "About how long to measure each, or a round of each.",
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
    "kernels": (
        flags.DEFINE_list,
        ["auto"],
        "With --scale: native, sparse, segment, or what auto chooses.",
        {},
    ),
    "steps": (
        flags.DEFINE_integer,
        3,
        "With --scale: steps to time; 0 only compiles, for shapes of graphs that are "
        "never made.",
        {"lower_bound": 0},
    ),
    "peer": (
        flags.DEFINE_string,
        None,
        "What to measure in alternation with ours: pyg, or a command that prints "
        "ms_per_step: X.",
        {},
    ),
    "peer_name": (flags.DEFINE_string, None, "What records call the peer.", {}),
    "peer_python": (
        flags.DEFINE_string,
        sys.executable,
        "With --peer=pyg: the Python that has PyTorch Geometric.",
        {},
    ),
    "rounds": (
        flags.DEFINE_integer,
        3,
        "With --peer: rounds of ours and of the peer's.",
        {"lower_bound": 1},
    ),
}

SMALLEST = 1000  # nodes of a generated graph


def main() -> None:
    """Measures every data set and size in every variant, then prints the report."""
    folder = app.out_folder(FLAGS.out)
    check_name("method", FLAGS.method, METHODS)
    if FLAGS.peer == peers.PYG:
        check_name("method of the peer", FLAGS.method, peers.PYG_METHODS)
    if FLAGS.scale:
        _scale(folder)
        return
    rows = []
    for job in _jobs():
        print(f"measuring {job.variant} on {job.dataset} ...", file=sys.stderr)
        rows.append(_append(folder / STUDY.file, _measure(job)))
    if rows:
        print(speed.report(rows))


def _measure(job: step_time.Job) -> dict[str, Any]:
    """Returns the record of a job, and how busy the machine was besides."""
    others = machine.OtherWork()
    record = _in_rounds(job)
    return record | {"others_cores": others.cores()}


def _in_rounds(job: step_time.Job) -> dict[str, Any]:
    """Returns the record of a job, beside a peer if there is one."""
    with (
        Worker(step_time.Session, job, FLAGS.plugin) as session,
        tempfile.TemporaryDirectory() as folder,
    ):
        ours = _caller(session, "measure")
        if not FLAGS.peer:
            return session.call("record", ours().ms)
        command = _peer_command(session, job, pathlib.Path(folder) / "data.npz")
        rounds = peers.alternate(ours, lambda: peers.ask(command), FLAGS.rounds)
        record = session.call("record", statistics.median(a.ms for a in rounds.ours))
        name = FLAGS.peer_name or (peers.PYG if FLAGS.peer == peers.PYG else "peer")
        return record | rounds.record(name)


def _caller(session: Worker, method: str) -> Callable[[], Any]:
    return lambda: session.call(method)


def _peer_command(session: Worker, job: step_time.Job, path: pathlib.Path) -> str:
    """Returns the peer's command; for ours of PyG, writes what it trains on."""
    if FLAGS.peer != peers.PYG:
        return FLAGS.peer
    session.call("write_for_peer", str(path))
    same = str(path), job.method, capacity.cores(), job.seconds
    return peers.pyg_command(FLAGS.peer_python, *same)


def _scale(folder: pathlib.Path) -> None:
    sizes = _numbers("sizes", scale.SMALLEST) or [scale.SMALLEST]
    devices = _numbers("devices", 1)
    check_names("kernel", FLAGS.kernels, graphs.KERNELS)
    rows = []
    for job in scale.jobs(sizes, devices, FLAGS.method, FLAGS.steps, FLAGS.kernels):
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


def _jobs() -> list[step_time.Job]:
    check_names("variant", FLAGS.variants, step_time.VARIANTS)
    check_names("data set", FLAGS.datasets, DATASETS)
    _numbers("sizes", SMALLEST)
    same = FLAGS.method, FLAGS.runs, FLAGS.seconds, FLAGS.data_dir
    return [
        step_time.Job(name, variant, *same)
        for name in [*FLAGS.datasets, *FLAGS.sizes]
        for variant in FLAGS.variants
    ]


def _append(path: pathlib.Path, record: dict[str, Any]) -> dict[str, Any]:
    """Appends a record with time and versions; returns it."""
    stamp = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    whole = {**record, "time": stamp, **made_by()}
    append_lines(path, whole)
    return whole


STUDY = Study(
    name="benchmark",
    title="Speed",
    about="The time of a training step, beside PyTorch code that was measured in the "
    "same run.",
    command="python -m experiments.benchmark --out=experiments/records --peer=pyg \\\n"
    "    --datasets=cora,amazon-computers,amazon-photo,coauthor-cs",
    tables=speed.draw,
    note=speed.note,
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
