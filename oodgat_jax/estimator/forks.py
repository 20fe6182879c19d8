"""Refuses to compute in a forked child, where JAX would wait for ever.

JAX has threads of its own, which a fork does not copy.
"""

import os

from oodgat_jax.types import InputError

_users: set[int] = set()  # processes that have computed; a child inherits the set


def check() -> None:
    """Raises InputError in a child of a process that has computed with JAX."""
    here = os.getpid()
    if _users - {here}:
        raise InputError(
            "A model cannot predict in a forked process: start processes with "
            'multiprocessing.get_context("spawn"), and load the model in each.'
        )
    _users.add(here)
