"""Notes below tables: how many runs are behind the figures."""

from collections.abc import Callable, Sequence

from oodgat_jax.records import Record, count_runs


def runs(records: Sequence[Record]) -> str:
    """Returns `9 runs`, `1 run` or `3 to 9 runs`."""
    count = count_runs(records)
    return f"{count} run" if count == "1" else f"{count} runs"


def counted(
    note: str, shown: Callable[[Sequence[Record]], Sequence[Record]] | None = None
) -> Callable[[Sequence[Record]], str]:
    """Returns a function that puts the runs of records into a note's {runs}.

    Args:
      note: the text.
      shown: picks the records that the table shows, if these are not all.
    """
    pick = shown or (lambda records: records)
    return lambda records: note.format(runs=runs(pick(records)))
