"""Gathers all records into one HTML page that opens without a network.

  python -m experiments.report --out=results
  python -m experiments.report --out=results --records_dir=results

Writes OUT/report.html: the tables with the paper's figures beside ours, figures,
settings, seeds and versions, and the command that makes each; and which records are
missing. Its sections are the studies of `experiments.support.studies`. Takes a few
seconds. Exit code 2: the input was wrong, and nothing is written.
"""

import pathlib
from collections.abc import Sequence

from absl import flags

from experiments.support import report_page, report_settings
from experiments.support.studies import STUDIES
from experiments.support.study import Records, Study, read_source
from experiments.support.study_flags import RECORDS_DIR
from oodgat_jax import atomic_files
from oodgat_jax.cli import app
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
FILE = "report.html"
TITLE = "oodgat-jax: results beside the paper"
INTRO = (
    "Node classification on graphs where many nodes belong to classes nobody labeled: "
    "what this implementation of OODGAT and its baselines measures, beside the figures "
    "of the paper (Yu Song and Donglin Wang, Learning on Graphs with "
    "Out-of-Distribution Nodes, KDD 2022).",
    "A score is higher for a node that looks more out-of-distribution (OOD), and OOD "
    "is the positive class. More is better for all metrics but FPR95. Bold marks the "
    "best of a column where methods are compared.",
    "Everything here is drawn from recorded runs by `python -m experiments.report`; no "
    "number is typed by hand.",
)


def main() -> None:
    """Reads all records, draws, writes."""
    folder = app.out_folder(FLAGS.out)
    path = folder / FILE
    atomic_files.text(path, draw(pathlib.Path(FLAGS.records_dir)))
    print(f"Written: {path}")


def draw(folder: pathlib.Path, studies: Sequence[Study] = STUDIES) -> str:
    """Draws the page of all records in a folder.

    Raises:
      InputError: there is no record of any study, or a file cannot be shown.
    """
    sources = {source.name: source for study in studies for source in study.sources}
    records = {name: read_source(s, folder) for name, s in sources.items()}
    found = {s.name: [records[source.name] for source in s.sources] for s in studies}
    shown = [study for study in studies if found[study.name][0]]
    if not shown:
        raise InputError(
            f"The folder {folder} has no records to show: choose another one with "
            f"--records_dir, or make some, for example with {studies[0].command}"
        )
    absent = [
        report_page.Absent(study.title, study.file, study.command)
        for study in studies
        if study not in shown
    ]
    contents = [content(study, *found[study.name]) for study in shown]
    return report_page.page(TITLE, INTRO, contents, absent)


def content(study: Study, *records: Records) -> report_page.Content:
    """Returns what the page shows of a study and its records."""
    try:
        return report_page.Content(
            title=study.title,
            about=study.about,
            command=study.command,
            tables=[(t or study.caption, each) for t, each in study.tables(*records)],
            figures=[
                (study.figure_caption.format(title), figure)
                for title, figure in study.figures(*records).items()
            ],
            note=study.note(*records),
            facts=report_settings.facts(records[0]),
            settings=report_settings.settings(records[0]),
        )
    except InputError as error:
        reason = str(error).rstrip(".")
    except KeyError as error:
        reason = f"a record lacks {error}"
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        reason = f"an entry is of the wrong kind, {error}"
    raise InputError(
        f"The records of {study.file} cannot be shown ({reason}): correct the file, or "
        "move it away."
    )


if __name__ == "__main__":
    app.run(main, ["out"], RECORDS_DIR)
