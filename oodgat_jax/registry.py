"""Tables by name, and the one sentence that a wrong name gets."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from oodgat_jax.types import InputError

Entry = TypeVar("Entry")


class Registry(dict[str, Entry]):
    """A table of things by name whose missing names are explained.

    Args:
      kind: what an entry is, as in "There is no KIND 'x'".
      entries: the first ones.
    """

    def __init__(self, kind: str, entries: Mapping[str, Entry] | None = None):
        super().__init__(entries or {})
        self.kind = kind

    def __missing__(self, name: str) -> Entry:
        raise no_such(self.kind, name, self)

    def register(self, name: str, entry: Entry) -> None:
        """Adds an entry, or replaces the one of that name.

        Raises:
          InputError: the name cannot be given in a flag or a record.
        """
        if not isinstance(name, str) or not name or set(name) & set(" ,=/\\\n\t"):
            raise InputError(
                f"A {self.kind} cannot be called {name!r}: use letters, digits, '-', "
                "'_', '+' and '.', without spaces."
            )
        self[name] = entry


def no_such(kind: str, name: object, known: Iterable[str]) -> InputError:
    """Returns the error for a name that is not among those known."""
    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return InputError(
        f"There is no {kind} '{name}': choose from {', '.join(known)}.{hint}"
    )


def check_name(kind: str, name: str, known: Collection[str]) -> None:
    """Raises InputError unless the name is known."""
    if not isinstance(name, str) or name not in known:
        raise no_such(kind, name, known)


def check_function(kind: str, name: str, given: object) -> None:
    """Raises InputError unless it can be called."""
    if not callable(given):
        raise InputError(
            f"The {kind} '{name}' must be a function, not {type(given).__name__}."
        )


def check_names(kind: str, names: Sequence[str], known: Collection[str]) -> None:
    """Raises InputError unless all names are known and each is given once."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"The {kind}s must be a list of names, not {names!r}.")
    for name in names:
        check_name(kind, name, known)
    repeated = {name for name in names if list(names).count(name) > 1}
    if repeated:
        raise InputError(f"The {kind} '{min(repeated)}' is given twice: give it once.")


def check_needs(
    kind: str, name: str, needs: Sequence[str], known: Sequence[str]
) -> None:
    """Raises InputError unless all that something needs is known."""
    words = () if isinstance(needs, str) or not isinstance(needs, Iterable) else needs
    if words is not needs or any(word not in known for word in words):
        raise InputError(
            f"needs of {kind} '{name}' must be a tuple with any of "
            f"{', '.join(known)}, not {needs!r}."
        )
