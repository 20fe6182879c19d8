"""Study: one analysis, as its binary, the documentation and the report show it."""

import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from absl import flags
from matplotlib.figure import Figure

from experiments.support import figures
from experiments.support.main_table import FILE as MAIN_FILE
from experiments.support.trainings import Training, complete
from oodgat_jax import atomic_files, tables
from oodgat_jax.cli import app
from oodgat_jax.records import Record, read_records
from oodgat_jax.types import InputError

FLAGS = flags.FLAGS

Records = Sequence[Record]
Tables = Sequence[tuple[str, tables.Table]]  # with their titles


def _none(*records: Records) -> tuple[()]:
    return ()


class Study(NamedTuple):
    """An analysis of records.

    `tables`, `page`, `figures` and `note` get the records of the study, then those of
    each study of `beside`. A table that stands alone has the title "".
    """

    name: str  # the records are in NAME.jsonl
    title: str
    about: str  # a sentence or two; `code` is shown as code
    command: str  # makes the records; may have several lines
    trainings: Callable[[], Iterable[Training]] = _none  # from the flags
    tables: Callable[..., Tables] = _none
    page: Callable[..., Tables] | None = None  # for documents, if not `tables`
    figures: Callable[..., Mapping[str, Figure]] = lambda *records: {}
    note: Callable[..., str] = lambda *records: ""
    caption: str = ""  # in the report, of a table without a title
    figure_caption: str = "{}"  # in the report; {} is the figure's title
    read: Callable[[pathlib.Path], list[Record]] | None = read_records  # None: no own
    beside: tuple["Study", ...] = ()
    copies: str = MAIN_FILE  # of records that runs may be copied from

    @property
    def sources(self) -> tuple["Study", ...]:
        """Returns the studies whose records this one shows."""
        return (*((self,) if self.read else ()), *self.beside)

    @property
    def file(self) -> str:
        """Returns the name of the file without which there is nothing to show."""
        return f"{self.sources[0].name}.jsonl"


def run(study: Study, beside: str | None = None) -> int | None:
    """Trains what is not recorded in --out, shows all that is, returns the exit code.

    Args:
      study: with flags of `study_flags.TRAINING`.
      beside: records that runs may be copied from; by default the study's `copies`.
    """
    folder, code = app.out_folder(FLAGS.out), None
    if not FLAGS.from_records:
        check_lists()
        other = pathlib.Path(beside) if beside else folder / study.copies
        code = complete(folder / study.file, study.trainings(), other)
    show(study, folder)
    return code


def check_lists() -> None:
    """Raises InputError if a flag names nothing to train."""
    for name in ("datasets", "methods"):
        if getattr(FLAGS, name, None) == []:
            raise InputError(f"--{name} is empty: name at least one.")


def show(study: Study, folder: pathlib.Path) -> None:
    """Prints the tables, writes them and the figures to the folder, says where."""
    records = read(study, folder)
    if shown := text(study, *records):
        print(shown)
    paths = [folder / study.file]
    if study.tables is not _none:
        paths += [folder / f"{study.name}.md", folder / f"{study.name}.tex"]
        atomic_files.text(paths[1], markdown(study, *records))
        atomic_files.text(paths[2], latex(study, *records))
    for title, figure in study.figures(*records).items():
        paths += figures.save(figure, folder, f"{study.name}-{title}")
    for path in paths:
        print(f"Written: {path}")


def read(study: Study, folder: pathlib.Path) -> list[list[Record]]:
    """Returns the records of each source, [] for a file of `beside` that is missing.

    Raises:
      InputError: the study has no records there.
    """
    found = [read_source(source, folder) for source in study.sources]
    if not found[0]:
        binary = " ".join(study.sources[0].command.split()[:3])
        raise InputError(
            f"There are no records at {folder / study.file}: run {binary}."
        )
    return found


def read_source(study: Study, folder: pathlib.Path) -> list[Record]:
    """Returns the study's own records, [] if there is no file."""
    path = folder / f"{study.name}.jsonl"
    return study.read(path) if study.read and path.is_file() else []


def text(study: Study, *records: Records) -> str:
    """Returns the tables and the note for a terminal."""
    return _join(study.tables(*records), "{}\n\n", tables.as_text, study.note(*records))


def markdown(study: Study, *records: Records) -> str:
    """Returns the tables and the note for a document."""
    shown, note = (study.page or study.tables)(*records), study.note(*records)
    return _join(shown, "**{}**\n\n", tables.as_markdown, f"{note}\n" if note else "")


def latex(study: Study, *records: Records) -> str:
    """Returns the tables for a paper."""
    return _join((study.page or study.tables)(*records), "% {}\n", tables.as_latex)


def single(draw: Callable[..., tables.Table]) -> Callable[..., Tables]:
    """Returns a function that draws one table, without a title."""
    return lambda *records: [("", draw(*records))]


def one_per_dataset(
    draw: Callable[[Records, Sequence[str]], tables.Table],
    known: Callable[[Records], Sequence[str]],
) -> Callable[[Records], Tables]:
    """Returns a function that draws a table per data set.

    Args:
      draw: draws one table of the data sets named, which its first column names.
      known: names all data sets of the records.
    """

    def one(records: Records, name: str) -> tables.Table:
        header, rows, best = draw(records, [name])
        return tables.Table(header[1:], [row[1:] for row in rows], best[1:])

    return lambda records: [(name, one(records, name)) for name in known(records)]


def _join(
    shown: Tables, title: str, render: Callable[[tables.Table], str], note: str = ""
) -> str:
    """Joins tables, below their titles if they have any, and the note."""
    parts = [(title.format(name) if name else "") + render(t) for name, t in shown]
    return "\n".join([*parts, note] if note else parts)
