"""`np.unique` as it was before numpy 2.3: by sorting.

A hash table takes sixteen times as long for the edges of a real graph, which the tests
build often. What is returned is the same.
"""

from numpy.lib import _arraysetops_impl


def use() -> None:
    """Finds distinct numbers by sorting from now on; a no-op before numpy 2.3."""
    _arraysetops_impl._unique_hash = lambda *_, **__: NotImplemented
