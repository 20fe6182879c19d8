"""The one trainer: what is trained, one run as a pure function, many runs at once."""

from oodgat_jax.training.capacity import use_cores
from oodgat_jax.training.checkpoints import Checkpoints
from oodgat_jax.training.loop import advance, check, start, train_step
from oodgat_jax.training.scheduler import program_on, train
from oodgat_jax.training.task import (
    DEFAULT_SCHEDULE,
    Aux,
    Params,
    Progress,
    Run,
    Schedule,
    State,
    Task,
    adam,
    num_checks,
)

__all__ = [
    "DEFAULT_SCHEDULE",
    "Aux",
    "Checkpoints",
    "Params",
    "Progress",
    "Run",
    "Schedule",
    "State",
    "Task",
    "adam",
    "advance",
    "check",
    "num_checks",
    "program_on",
    "start",
    "train",
    "train_step",
    "use_cores",
]
