"""Makes everything the paper shows, in order, and goes on where it was stopped.

  python -m experiments.paper --quick
  python -m experiments.paper --plan
  python -m experiments.paper --out=experiments/records
  python -m experiments.paper --out=experiments/records --check

Homophily; tuning of every method of the main table on every data set by successive
halving; the main table with the authors' settings and with the tuned ones; OODGAT+ on
the same splits; post-hoc detectors; edges removed and their roles; hidden layers,
histograms of scores and entropies; ablation; sensitivity; the comparison with GKDE; no
OOD labels.
Three splits with three seeds each. Data sets are the paper's whose files are present,
and digits; those that are missing are named.

Before it starts, it says what is recorded already and how long the rest takes, by the
seconds of past records. Records go to OUT, a line each, as each study's own binary
writes them. Records of other code (`code` in them) count as missing unless
--accept_stale. At its end OUT/report.html is drawn; if OUT is the project's
experiments/records, all tables and figures of README and docs are, and the report goes
to results.

--quick is a first look: one split, one seed, digits and Cora; tuning over two cells and
OODGAT+ are on digits alone.
--check lists what is stale or missing and exits with 1 if anything is.
"""

import pathlib
import sys
import time
from collections.abc import Sequence

import jax
from absl import flags

from experiments import readme, report
from experiments.support import paper_plan, paper_state, study_flags, trainings
from experiments.support.paper_plan import Step
from experiments.support.paper_state import State
from oodgat_jax import atomic_files, tables
from oodgat_jax.cli import app
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
SHARED = ("out", "data_dir", "kernel", "set")
OWN: app.Definitions = {
    "only": (
        flags.DEFINE_list,
        None,
        "Studies to make, if not all: homophily, tune, end_to_end, robust, post_hoc, "
        "edge_removal, edge_roles, visualize, ablation, sensitivity, gkde, "
        "no_ood_labels.",
        {},
    ),
    "datasets": (
        flags.DEFINE_list,
        None,
        "Of {DATASETS}; by default the paper's whose files are present, and digits.",
        {},
    ),
    "quick": (flags.DEFINE_bool, False, "One split, one seed, digits and Cora.", {}),
    "plan": (flags.DEFINE_bool, False, "Only say what there is to do.", {}),
    "check": (flags.DEFINE_bool, False, "Only list what is stale or missing.", {}),
    "accept_stale": (
        flags.DEFINE_bool,
        False,
        "Take records of other code for what they say.",
        {},
    ),
}
REPORT_FOLDER = "results"  # of the project's own records


def main() -> int | None:
    """Says what there is to do and does it."""
    folder = pathlib.Path(FLAGS.out)
    own = folder.resolve() == study_flags.RECORDS.resolve()
    if FLAGS.quick and own:
        raise InputError(
            f"--quick is a first look, and {folder} holds the project's records: "
            "choose another --out."
        )
    names = paper_plan.data_sets(FLAGS.datasets, FLAGS.quick)
    steps = paper_plan.steps(names, folder, FLAGS.quick)
    steps = paper_plan.choose(steps, FLAGS.only)
    if names.missing:
        print(
            f"Left out, since their files are missing: {', '.join(names.missing)} "
            "(give their folder with --data_dir).",
            file=sys.stderr,
        )
    states = paper_state.survey(steps, folder)
    if FLAGS.check:
        return _check(states)
    print(tables.as_text(paper_state.table(states)), flush=True)
    if FLAGS.plan:
        return None
    app.out_folder(FLAGS.out)
    failed = run(steps, states, folder)
    rebuild(folder, own)
    for title in failed:
        print(f"Every run failed: {title}.", file=sys.stderr)
    return 1 if failed else None


def _check(states: Sequence[State]) -> int | None:
    text = paper_state.listed(states)
    print(text or f"All {sum(s.wanted for s in states)} records are of this code.")
    return 1 if text else None


def run(
    steps: Sequence[Step], states: Sequence[State], folder: pathlib.Path
) -> list[str]:
    """Trains what is missing, step by step; returns what failed in every run."""
    failed, number, began = [], 0, time.monotonic()
    spent = 0.0  # by past records, on what is done
    for step in steps:
        log, beside = folder / step.study.file, folder / step.study.copies
        for training in step.trainings():
            left = states[number:]
            number += 1
            if trainings.lacking(log, training):
                rate = (time.monotonic() - began) / spent if spent else 1.0
                print(_progress(number, states, left, rate), file=sys.stderr)
            if trainings.complete(log, [training], beside):
                failed.append(f"{step.study.name}, {training.title}")
            spent += left[0].seconds or 0.0 if left else 0.0
        jax.clear_caches()  # of one study's programs; they stay on the disk
    return failed


def _progress(
    number: int, states: Sequence[State], left: Sequence[State], rate: float
) -> str:
    """Returns where all of it is; `rate` is the time taken by that of past records."""
    scaled = [s._replace(seconds=s.seconds and rate * s.seconds) for s in left]
    time_left = paper_state.time_left(scaled)
    return f"[{number} of {len(states)} trainings, {time_left} left]"


def rebuild(folder: pathlib.Path, own: bool) -> None:
    """Draws the report and, from the project's own records, all documents."""
    if own:
        readme.rebuild(readme.pages(), folder)
    place = app.out_folder(REPORT_FOLDER) if own else folder
    atomic_files.text(place / report.FILE, report.draw(folder))
    print(f"Written: {place / report.FILE}")


if __name__ == "__main__":
    app.run(main, SHARED, OWN, goes_on=True)
