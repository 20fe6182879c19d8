"""The one place where methods are trained: many runs, scored and recorded."""

from oodgat_jax.experiment.execution import (
    FIRST_SPLIT,
    MOST_RUNS,
    MOST_SEEDS,
    Scored,
    execute,
    keys,
    make_runs,
    score_again,
    split_seeds,
)
from oodgat_jax.experiment.result import (
    Result,
    failures,
    records,
    table,
    without_failed,
)
from oodgat_jax.experiment.run_by_name import (
    as_settings,
    define,
    label,
    open_dataset,
    run,
)

__all__ = [
    "FIRST_SPLIT",
    "MOST_RUNS",
    "MOST_SEEDS",
    "Result",
    "Scored",
    "as_settings",
    "define",
    "execute",
    "failures",
    "keys",
    "label",
    "make_runs",
    "open_dataset",
    "records",
    "run",
    "score_again",
    "split_seeds",
    "table",
    "without_failed",
]
