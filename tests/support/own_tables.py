"""The command oodgat in this process, and small tables in the current folder."""

import csv

from absl import flags

from oodgat_jax.cli import predict, predict_flags
from support import synthetic

TABLES = ("--nodes=nodes.csv", "--edges=edges.csv")
FIT = (*TABLES, "--set=max_steps=21", "--members=1", "--method=mlp")


def run(command, *arguments):
    """`predict.main` with fresh flags; no command means the flags alone."""
    values = flags.FlagValues()
    given = predict_flags.define(command, values)
    values(["oodgat", *arguments])
    predict.main(given)


def write(path, columns, rows):
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(rows)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def rows(num_features):
    """Rows (id, label, features) of 60 nodes, every other labeled, and their edges."""
    made = synthetic.generate(60, 240, num_features, signal=2.0, seed=3)
    nodes = [
        [f"n{n}", f"k{c}" if c < 3 and n % 2 == 0 else "", *row.tolist()]
        for n, (c, row) in enumerate(zip(made.labels, made.features, strict=True))
    ]
    ends = zip(made.senders, made.receivers, strict=True)
    return nodes, [(f"n{a}", f"n{b}") for a, b in ends]
