"""The directive `command`: what a binary is for and all its flags, from its code.

```{command} experiments.detect
```
"""

import importlib
import inspect
import runpy
import sys
import textwrap
import warnings
from unittest import mock

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from oodgat_jax.cli import app as binaries
from oodgat_jax.cli import predict, shared_flags

OODGAT = "oodgat"


def describe(name: str) -> tuple[str, shared_flags.Definitions]:
    """Returns the text of a binary's --help and its flags, without running it."""
    calls = []

    def record(main, shared=(), own=None, text=None, **options):
        calls.append((text, shared_flags.chosen(shared, own)))

    with mock.patch.object(binaries, "run", record):
        program, *words = name.split()
        if program == OODGAT:
            with mock.patch.object(sys, "argv", [OODGAT]):
                predict.console(words)
            module = predict
        else:
            module = importlib.import_module(name)
            with warnings.catch_warnings(), mock.patch.object(sys, "argv", [name]):
                warnings.simplefilter("ignore", RuntimeWarning)
                runpy.run_module(name, run_name="__main__")
    ((text, definitions),) = calls
    return inspect.cleandoc(text or module.__doc__), definitions


def meaning(text: str) -> str:
    """Returns the meaning of a flag with the tables' names filled in."""
    for mark, table in shared_flags.TABLES.items():
        text = text.replace(mark, ", ".join(table))
    return text


class Command(SphinxDirective):
    """Shows a binary."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Returns the text and the flags as a list of definitions."""
        (name,) = self.arguments
        text, definitions = describe(name)
        lines = ["```text", *text.splitlines(), "```", ""]
        for flag, (_, default, about, more) in definitions.items():
            shown = _default(default)
            lines += [f"`--{flag}` {shown}", f": {_markdown(meaning(about))}"]
            if values := more.get("enum_values"):
                lines[-1] += f" One of {', '.join(f'`{v}`' for v in values)}."
            lines.append("")
        return self.parse_text_to_nodes("\n".join(lines))


def _default(value) -> str:
    if value is None or value == [] or value == "":
        return ""
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = text.lower() if isinstance(value, bool) else text
    if "/" in text:  # a folder of this machine
        text = "experiments/records" if "records" in text else "..."
    return f"(default `{textwrap.shorten(text, 90, placeholder=' ...')}`)"


def _markdown(text: str) -> str:
    return text.replace("*", r"\*").replace("<", r"\<")


def setup(app) -> dict[str, bool]:
    """Adds the directive."""
    app.add_directive("command", Command)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
