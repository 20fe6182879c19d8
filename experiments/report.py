"""Gathers all records into one HTML page that opens without a network.

  python -m experiments.report --out=results
  python -m experiments.report --out=results --records_dir=results

Writes OUT/report.html: the tables with the paper's figures beside ours, figures,
settings, seeds and versions, and the command that makes each; and which records are
missing. Its sections are those of `experiments.report_sections`. Takes a few seconds.
Exit code 2: the input was wrong, and nothing is written.
"""

import pathlib
from collections.abc import Sequence

from absl import flags

from experiments.support import RECORDS_DIR, report_page, report_settings
from experiments.support.report_sections import SECTIONS, Section, read
from oodgat_jax import atomic_files
from oodgat_jax.cli import app
from oodgat_jax.records import Record
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS
FILE = "report.html"
TITLE = "oodgat-jax: results beside the paper"
INTRO = (
    "Node classification on graphs where many nodes belong to classes nobody labelled: "
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


def draw(folder: pathlib.Path, sections: Sequence[Section] = SECTIONS) -> str:
    """The page of all records in a folder.

    Raises:
      InputError: there is no record of any section, or a file cannot be shown.
    """
    files = dict.fromkeys(name for s in sections for name in (s.file, *s.beside))
    records = {name: read(folder / name) for name in files}
    shown = [s for s in sections if records[s.file]]
    if not shown:
        raise InputError(
            f"The folder {folder} has no records to show: choose another one with "
            f"--records_dir, or make some, for example with {sections[0].command}"
        )
    absent = [
        report_page.Absent(s.title, s.file, s.command)
        for s in sections
        if not records[s.file]
    ]
    contents = [
        content(s, *(records[name] for name in (s.file, *s.beside))) for s in shown
    ]
    return report_page.page(TITLE, INTRO, contents, absent)


def content(
    section: Section, records: Sequence[Record], *beside: Sequence[Record]
) -> report_page.Content:
    """What a section shows of its records."""
    try:
        return report_page.Content(
            title=section.title,
            about=section.about,
            command=section.command,
            tables=section.tables(records, *beside),
            figures=section.figures(records, *beside),
            note=section.note(records, *beside),
            facts=report_settings.facts(records),
            settings=report_settings.settings(records),
        )
    except InputError as error:
        reason = str(error).rstrip(".")
    except KeyError as error:
        reason = f"a record lacks {error}"
    raise InputError(
        f"The records of {section.file} cannot be shown ({reason}): mend the file, or "
        "move it away."
    )


if __name__ == "__main__":
    app.run(main, ["out"], RECORDS_DIR)
