"""Chooses hyper-parameters by validation, over a grid, as the paper does.

  python -m experiments.tune --dataset=cora --method=gat
  python -m experiments.tune --grid=lr=0.01,0.03 --grid=heads=1,4 --set max_steps=300

Every cell of the grid is trained on all splits and seeds; the one with the best mean
validation score (accuracy + AUROC) is chosen, and test figures are looked at after
that. The default grid is the paper's: lr {0.01, 0.1}, dropout {0, 0.5} (input and
hidden layer), weight_decay {0, 5e-5, 5e-4, 5e-3}, heads {1, 4, 8}, as far as the method
has them. As many cells as take about a minute are trained at a time, as runs of one
program, and appended to OUT/tune.jsonl at once: the same command, started again,
continues with the cells that are missing. A cell that the main table's
OUT/end_to_end.jsonl has is taken from there.
"""

import functools
import itertools
import time
from collections.abc import Iterable, Mapping, Sequence

from absl import flags

from experiments.support import main_table, paper_results, trainings
from experiments.support.study import Study, single
from experiments.support.trainings import Keys, Load, Seeds, Training
from oodgat_jax import tables
from oodgat_jax.cli import app
from oodgat_jax.experiment import records as records_of
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import Record, count_runs, kept_metrics, read_records
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
SHARED = ("dataset", "method", "splits", "seeds", "set", "out", "data_dir", "kernel")
OWN: app.Definitions = {
    "grid": (
        flags.DEFINE_multi_string,
        [],
        "name=value,value,... for one axis, instead of the paper's grid.",
        {},
    ),
}
BATCH_SECONDS = 60  # about as long as cells are trained before they are recorded
SHOWN = 5  # cells of the table, best validation first
NOTE = (
    "Percent, mean ± standard deviation over the runs of a cell, in parentheses the "
    "paper's figure. The setting is the one with the best mean validation score of all "
    "cells."
)

PAPER_GRID: Mapping[str, tuple[float | int, ...]] = {
    "heads": (1, 4, 8),
    "lr": (0.01, 0.1),
    "dropout": (0.0, 0.5),
    "weight_decay": (0.0, 5e-5, 5e-4, 5e-3),
}


def main() -> int | None:
    """Trains the cells that are missing, then reports the best."""
    recipe = trainings.recipe(FLAGS.dataset, FLAGS.method)
    cells = grid_cells(recipe, parse_grid(FLAGS.grid, recipe))
    log = app.out_folder(FLAGS.out) / STUDY.file
    load = functools.partial(trainings.loader(), FLAGS.dataset)
    work = training(load, FLAGS.dataset, FLAGS.method, cells)
    code = trainings.complete(log, [work], log.parent / main_table.FILE)
    asked = FLAGS.dataset, FLAGS.method, cells, trainings.seeds()
    print(report(read_records(log), *asked))
    return code


def parse_grid(
    axes: Sequence[str], recipe: recipes.Recipe
) -> Mapping[str, tuple[recipes.Value, ...]]:
    """Returns the grid of --grid, or the paper's as far as the recipe has its names."""
    if not axes:
        return {name: axis for name, axis in PAPER_GRID.items() if name in recipe}
    grid: dict[str, tuple[recipes.Value, ...]] = {}
    for axis in axes:
        name, equals, texts = axis.partition("=")
        if not equals or not texts or name in grid:
            raise InputError(
                f"--grid={axis} is not a new axis of the grid: write name=value,value."
            )
        each = [recipes.override(recipe, [f"{name}={v}"]) for v in texts.split(",")]
        grid[name] = tuple(cell[name] for cell in each)
    return grid


def grid_cells(
    recipe: recipes.Recipe, grid: Mapping[str, Sequence[recipes.Value]]
) -> list[recipes.Recipe]:
    """Returns a recipe per cell; dropout is the input's too unless that has an axis.

    Whole numbers change slowest, since they need compiling.
    """
    names = sorted(grid, key=lambda name: isinstance(recipe[name], float))
    cells = []
    for values in itertools.product(*(grid[name] for name in names)):
        cell = recipe | dict(zip(names, values, strict=True))
        if "dropout" in grid and "input_dropout" in cell.keys() - grid.keys():
            cell["input_dropout"] = cell["dropout"]
        cells.append(cell)
    return cells


def training(
    load: Load, dataset: str, method: str, cells: Sequence[recipes.Recipe]
) -> Training:
    """Returns the training of all cells, a batch at a time.

    Batches grow until one takes about BATCH_SECONDS, so that small graphs are trained
    many runs at a time and little is lost of large ones when training is interrupted.
    """
    definition, title = METHODS[method], f"{method} on {dataset}"

    def run(missing: Sequence[Keys]) -> Iterable[list[Record]]:
        settings = [keys["hyperparameters"] for keys in missing]
        left = [cell for cell in cells if cell in settings]
        size, began, count = 1, time.monotonic(), len(left)
        while left:
            batch = first_batch(left, size, method)
            number = len(cells) - len(left) + 1
            numbers = f"{number} to {number + len(batch) - 1} of {len(cells)}"
            rest = _time_left(began, count - len(left), len(left))
            result = trainings.execute(
                f"{title}, cells {numbers}{rest}",
                load(),
                method,
                batch[0],
                *trainings.seeds(),
                hypers=[recipes.floats(cell, definition) for cell in batch],
            )
            yield records_of(result)
            left = left[len(batch) :]
            size = 2 * size if result.seconds < BATCH_SECONDS / 2 else size

    same = dataset, method, *trainings.seeds(), definition.detectors
    needed = [keys for cell in cells for keys in trainings.wanted(cell, *same)]
    regularizers = {"regularizers": list(definition.regularizers)}
    return Training(title, needed, run, elsewhere=regularizers)


def _time_left(began: float, trained: int, left: int) -> str:
    if not trained:
        return ""
    minutes = (time.monotonic() - began) / trained * left / 60
    return f", about {minutes:.0f} min left"


def first_batch(
    cells: Sequence[recipes.Recipe], size: int, method: str
) -> Sequence[recipes.Recipe]:
    """Returns the first cells, at most `size`, that one program can train."""
    traced = recipes.floats(cells[0], METHODS[method])
    fixed = {name: v for name, v in cells[0].items() if name not in traced}
    same = itertools.takewhile(lambda cell: cell == cell | fixed, cells[:size])
    return list(same)


def best(
    records: Sequence[Record],
    dataset: str,
    method: str,
    cells: Sequence[recipes.Recipe],
    seeds: Seeds,
) -> list[tuple[float, list[Record]]]:
    """Returns (validation, records of all detectors) of recorded cells, best first."""
    same, found = (dataset, method, *seeds, METHODS[method].detectors), []
    for cell in cells:
        if mine := trainings.find(records, trainings.wanted(cell, *same)):
            found.append((_validation(mine[0]), mine))
    return sorted(found, key=lambda pair: -pair[0])


def report(
    records: Sequence[Record],
    dataset: str,
    method: str,
    cells: Sequence[recipes.Recipe],
    seeds: Seeds,
) -> str:
    """Returns the chosen setting, its test figures, and the next best cells."""
    ranked = best(records, dataset, method, cells, seeds)
    varied = [n for n in cells[0] if len({cell[n] for cell in cells}) > 1]
    setting = ranked[0][1][0]["hyperparameters"]
    chosen = ", ".join(f"{name}={setting[name]}" for name in varied)
    header = [*varied, "validation", "detector", *tables.COLUMNS.values()]
    rows = [
        _row(score, record, varied) for score, each in ranked[:SHOWN] for record in each
    ]
    return (
        f"{method} on {dataset}, {len(ranked)} cells; chosen by validation: {chosen}\n"
        f"\n{tables.as_text(tables.Table(header, rows))}"
    )


def _row(
    score: float, record: Record, varied: Sequence[str]
) -> list[tables.Cell | str]:
    setting, kept = record["hyperparameters"], kept_metrics(record)
    return [
        *(f"{setting[name]:g}" for name in varied),
        f"{score:.3f}",
        record["detector"],
        *(tables.result(kept[metric]) for metric in tables.COLUMNS),
    ]


def _validation(record: Record) -> float:
    """Returns the mean validation score; a run that failed counts as 0."""
    scores = record["validation"]
    failed = {entry["run"] for entry in record["failed_runs"]}
    whole = [0.0 if run in failed else s or 0.0 for run, s in enumerate(scores)]
    return sum(whole) / len(whole)


def tuned(
    records: Sequence[Record], dataset: str, method: str
) -> recipes.Recipe | None:
    """Returns the best recorded setting of a method on a data set by validation."""
    mine = [r for r in records if (r["dataset"], r["method"]) == (dataset, method)]
    if not mine:
        return None
    return max(mine, key=_validation)["hyperparameters"]


def draw(records: Sequence[Record]) -> tables.Table:
    """Draws what was chosen, a row per data set, method and score."""
    rows = []
    for dataset, method in dict.fromkeys((r["dataset"], r["method"]) for r in records):
        mine = [r for r in records if (r["dataset"], r["method"]) == (dataset, method)]
        settings = [r["hyperparameters"] for r in mine]
        varied = [n for n in settings[0] if len({s[n] for s in settings}) > 1]
        cells = len({tuple(s.values()) for s in settings})
        chosen = max(mine, key=_validation)["hyperparameters"]
        text = ", ".join(f"{name} {chosen[name]:g}" for name in varied)
        latest = {r["detector"]: r for r in mine if r["hyperparameters"] == chosen}
        for detector, record in latest.items():
            title = f"{method}-{detector}"
            counts = str(cells), count_runs([record])
            rows.append([dataset, title, *counts, text, *_beside_paper(record)])
    header = ["Data set", "Method", "Cells", "Runs", "Chosen", *tables.COLUMNS.values()]
    return tables.Table(header, rows)


def _beside_paper(record: Record) -> list[tables.Cell]:
    """Returns a cell per metric, beside the paper's figures of the main table."""
    key = record["method"], record["detector"]
    rows = {(row.method, row.detector): row.paper for row in main_table.ROWS}
    kept, where = kept_metrics(record), (rows.get(key, ""), record["dataset"])
    return [
        tables.result(kept[metric], paper_results.figure("end_to_end", *where, metric))
        for metric in tables.COLUMNS
    ]


STUDY = Study(
    name="tune",
    title="Tuning",
    about="What a grid of hyper-parameters leads to, on Cora the paper's, chosen by "
    "validation alone.",
    command="python -m experiments.tune --dataset=cora --method=gat \\\n"
    "    --out=experiments/records",
    tables=single(draw),
    note=lambda records: NOTE,
    caption="Chosen settings",
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
