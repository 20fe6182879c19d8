"""A page to look at: scores, a map, groups of unknown nodes, what to label next.

`build` gathers from `Findings`, which are arrays alone, what one page shows; `write`
makes a file of it that opens from disk and asks nothing of a network.
"""

from oodgat_jax.report.findings import Findings
from oodgat_jax.report.groups import Group, Groups
from oodgat_jax.report.groups import find as find_groups
from oodgat_jax.report.page import Page, build
from oodgat_jax.report.rendering import write
from oodgat_jax.report.review import Suggestion, suggest

__all__ = [
    "Findings",
    "Group",
    "Groups",
    "Page",
    "Suggestion",
    "build",
    "find_groups",
    "suggest",
    "write",
]
