"""Chooses hyper-parameters by validation, over a grid, as the paper does.

  python -m experiments.tune --dataset=cora --method=gat
  python -m experiments.tune --grid=lr=0.01,0.03 --grid=heads=1,4 --set max_steps=300
  python -m experiments.tune --datasets=cora,digits --methods=gcn,gat,oodgat --halving

Every cell of the grid is trained on all splits and seeds; the one with the best mean
validation score (accuracy + AUROC) is chosen, and test figures are looked at after
that. With --halving, all cells are trained with one seed per split and 30 % of the
steps, the best quarter (--keep) with all steps, the best quarter of those and the
method's own settings with all runs, from which validation chooses; which cells were
dropped after which rung follows from the records.

The default grid is the paper's: lr {0.01, 0.1}, dropout {0, 0.5} (input and hidden
layer), weight_decay {0, 5e-5, 5e-4, 5e-3}, heads {1, 4, 8}, as far as the method has
them. As many cells as take about a minute are trained at a time, as runs of one
program, and appended to OUT/tune.jsonl at once: the same command, started again,
continues with the cells that are missing. A cell that the main table's
OUT/end_to_end.jsonl has is taken from there.
"""

import functools
import itertools
import pathlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from absl import flags

from experiments.support import (
    halving,
    main_table,
    paper_results,
    study,
    trainings,
    tuned,
)
from experiments.support.study import Study, single
from experiments.support.trainings import Keys, Load, Seeds, Training
from oodgat_jax import tables
from oodgat_jax.cli import app
from oodgat_jax.datasets import DATASETS
from oodgat_jax.experiment import records as records_of
from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import Record, count_runs, kept_metrics, read_records
from oodgat_jax.registry import check_names
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
    "datasets": (flags.DEFINE_list, None, "Several, instead of --dataset.", {}),
    "methods": (flags.DEFINE_list, None, "Several, instead of --method.", {}),
    "halving": (
        flags.DEFINE_bool,
        False,
        "Train few runs and steps of all cells, more of the best.",
        {},
    ),
    "keep": (
        flags.DEFINE_float,
        halving.KEEP,
        "Share of the cells that goes on to the next rung of --halving.",
        {"lower_bound": 0.01, "upper_bound": 1.0},
    ),
}
BATCH_SECONDS = 60  # about as long as cells are trained before they are recorded
SHOWN = 5  # cells of the table, best validation first
NOTE = (
    "Percent, mean ± standard deviation over the runs of a cell, in parentheses the "
    "paper's figure. The setting is the one with the best mean validation score of all "
    "cells; test nodes play no part in the choice. Where several numbers of cells are "
    "given, they are those of the rungs of successive halving, and the runs are those "
    "of the last."
)

PAPER_GRID: Mapping[str, tuple[float | int, ...]] = {
    "heads": (1, 4, 8),
    "lr": (0.01, 0.1),
    "dropout": (0.0, 0.5),
    "weight_decay": (0.0, 5e-5, 5e-4, 5e-3),
}


def main() -> int | None:
    """Trains the cells that are missing, then reports the best of each grid."""
    log = app.out_folder(FLAGS.out) / STUDY.file
    study.check_lists()
    code = trainings.complete(log, STUDY.trainings(), log.parent / STUDY.copies)
    records = read_records(log)
    for pair in pairs():
        print(report(records, *pair, _cells(*pair)))
    return code


def pairs() -> list[tuple[str, str]]:
    """Returns the data sets and methods of the flags, after checking them."""
    names, methods = FLAGS.datasets or [FLAGS.dataset], FLAGS.methods or [FLAGS.method]
    check_names("method", methods, METHODS)
    check_names("data set", names, DATASETS)
    return list(itertools.product(names, methods))


def every_training() -> Iterator[Training]:
    """Yields the trainings of all grids, rung by rung; a rung is known when its turn
    comes."""
    load = trainings.loader()
    for dataset, method in pairs():
        cells, opened = _cells(dataset, method), functools.partial(load, dataset)
        if not FLAGS.halving:
            yield training(opened, dataset, method, cells)
            continue
        for number in range(1, len(_ladder()) + 1):
            yield _rung(opened, dataset, method, cells, number)


def _rung(
    load: Load,
    dataset: str,
    method: str,
    cells: Sequence[recipes.Recipe],
    number: int,
) -> Training:
    ladder, log = _ladder(), pathlib.Path(FLAGS.out) / STUDY.file
    records, rung = trainings.read(log), ladder[number - 1]
    own = trainings.recipe(dataset, method)
    asked = dataset, method, cells, ladder, number, FLAGS.keep, own
    left = [halving.at(cell, rung) for cell in halving.kept(records, *asked)]
    keys = halving.key(number, len(ladder))
    return training(load, dataset, method, left, rung.numbers, keys)


def _ladder() -> list[halving.Rung]:
    return halving.rungs(FLAGS.splits, FLAGS.seeds)


def _cells(dataset: str, method: str) -> list[recipes.Recipe]:
    recipe = trainings.recipe(dataset, method)
    return grid_cells(recipe, parse_grid(FLAGS.grid, recipe))


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
    load: Load,
    dataset: str,
    method: str,
    cells: Sequence[recipes.Recipe],
    numbers: Seeds | None = None,
    keys: Keys | None = None,
) -> Training:
    """Returns the training of cells, a batch at a time.

    Seeds are those of the flags unless `numbers` gives others; records say `keys` too.

    Batches grow until one takes about BATCH_SECONDS, so that small graphs are trained
    many runs at a time and little is lost of large ones when training is interrupted.
    """
    definition, title = METHODS[method], f"{method} on {dataset}"
    numbers, keys = numbers or trainings.seeds(), keys or {}
    if tuned.KEY in keys:
        title += ", rung {} of {}".format(*keys[tuned.KEY])

    def run(missing: Sequence[Keys]) -> Iterable[list[Record]]:
        settings = [keys["hyperparameters"] for keys in missing]
        left = [cell for cell in cells if cell in settings]
        size, began, count = 1, time.monotonic(), len(left)
        while left:
            batch = first_batch(left, size, method)
            number = len(cells) - len(left) + 1
            which = f"{number} to {number + len(batch) - 1} of {len(cells)}"
            rest = _time_left(began, count - len(left), len(left))
            result = trainings.execute(
                f"{title}, cells {which}{rest}",
                load(),
                method,
                batch[0],
                *numbers,
                hypers=[recipes.floats(cell, definition) for cell in batch],
            )
            yield [record | keys for record in records_of(result)]
            left = left[len(batch) :]
            size = 2 * size if result.seconds < BATCH_SECONDS / 2 else size

    same = dataset, method, *numbers, definition.detectors
    needed = [each for cell in cells for each in trainings.wanted(cell, *same)]
    regularizers = {"regularizers": list(definition.regularizers)}
    return Training(title, [w | keys for w in needed], run, keys, regularizers)


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
    keys: Keys | None = None,
) -> list[tuple[float, list[Record]]]:
    """Returns (validation, records of all detectors) of recorded cells, best first."""
    same, found = (dataset, method, *seeds, METHODS[method].detectors), []
    for cell in cells:
        asked = [w | (keys or {}) for w in trainings.wanted(cell, *same)]
        if mine := trainings.find(records, asked):
            found.append((tuned.validation(mine[0]), mine))
    return sorted(found, key=lambda pair: -pair[0])


def report(
    records: Sequence[Record],
    dataset: str,
    method: str,
    cells: Sequence[recipes.Recipe],
) -> str:
    """Returns the chosen setting, its test figures, and the next best cells."""
    count = len(_ladder())
    keys = halving.key(count, count) if FLAGS.halving else {}
    ranked = best(records, dataset, method, cells, trainings.seeds(), keys)
    varied = [n for n in cells[0] if len({cell[n] for cell in cells}) > 1]
    setting = ranked[0][1][0]["hyperparameters"]
    chosen = ", ".join(f"{name}={setting[name]}" for name in varied)
    header = [*varied, "validation", "detector", *tables.COLUMNS.values()]
    rows = [
        _row(score, record, varied) for score, each in ranked[:SHOWN] for record in each
    ]
    rungs = f" of {len(cells)} by halving" if FLAGS.halving else ""
    return (
        f"{method} on {dataset}, {len(ranked)} cells{rungs}; chosen by validation: "
        f"{chosen}\n\n{tables.as_text(tables.Table(header, rows))}"
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


def draw(records: Sequence[Record]) -> tables.Table:
    """Draws what was chosen, a row per data set, method and score.

    Of a method of the main table these are its scores there, of another one all.
    """
    rows: list[list[tables.Cell | str]] = []
    names = paper_results.in_order([record["dataset"] for record in records])
    found = [record["method"] for record in records]
    known = [row.method for row in main_table.ROWS if row.method in found]
    methods = dict.fromkeys([*known, *found])
    for dataset, method in itertools.product(names, methods):
        mine = tuned.comparable(records, dataset, method)
        if not mine:  # the last rung is not reached yet
            continue
        halved = tuned.KEY in mine[0]
        rungs = halving.by_rung(records, dataset, method) if halved else []
        settings = rungs[0] if rungs else [r["hyperparameters"] for r in mine]
        varied = [n for n in settings[0] if len({s[n] for s in settings}) > 1]
        cells = [len({tuple(s.values()) for s in each}) for each in rungs or [settings]]
        chosen = max(mine, key=tuned.validation)["hyperparameters"]
        text = ", ".join(f"{name} {chosen[name]:g}" for name in varied)
        latest = {r["detector"]: r for r in mine if r["hyperparameters"] == chosen}
        shown = [row.detector for row in main_table.ROWS if row.method == method]
        for detector in [name for name in shown if name in latest] or latest:
            record = latest[detector]
            title = f"{method}-{detector}"
            counts = ", ".join(map(str, cells)), count_runs([record])
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
    trainings=every_training,
    tables=single(draw),
    note=lambda records: NOTE,
    caption="Chosen settings",
)


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
