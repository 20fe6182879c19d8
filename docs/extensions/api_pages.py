"""The directive `api`: a table of all public names of a module, then each in full.

  ```{api} oodgat_jax.detectors
  ```

A module's public names are those of its `__all__`, or else the functions and classes
that it defines. Names of `oodgat_jax` itself are shown there and nowhere else.
"""

import ast
import importlib
import inspect
import re
import textwrap

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import oodgat_jax
from oodgat_jax.registry import Registry

TOP = "oodgat_jax"


def public_names(module_name: str) -> list[str]:
    """Returns the public names of a module, without those shown for the package."""
    module = importlib.import_module(module_name)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and _is_own(value, module_name)
        ]
    if module_name == TOP:
        return [name for name in names if not inspect.ismodule(_get(module, name))]
    return [name for name in names if not _is_at_the_top(name, _get(module, name))]


def _get(module, name):
    return getattr(module, name)


def _is_own(value, module_name: str) -> bool:
    if inspect.isfunction(value) or inspect.isclass(value):
        return value.__module__ == module_name
    return isinstance(value, Registry)


def _is_at_the_top(name: str, value) -> bool:
    return name in oodgat_jax.__all__ and getattr(oodgat_jax, name) is value


class Api(SphinxDirective):
    """Shows a module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Returns the nodes of the table and of the entries."""
        (module_name,) = self.arguments
        module = importlib.import_module(module_name)
        self.env.note_dependency(inspect.getfile(module))
        names = public_names(module_name)
        found = {name: _get(module, name) for name in names}
        shown = {name: value for name, value in found.items() if _has_entry(value)}
        lines = [f".. py:module:: {module_name}", ""]
        lines += _docstring(module)
        lines += [".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in shown] + [""]
        for name, value in shown.items():
            lines += _entry(f"{module_name}.{name}", value)
        for name, value in found.items():
            if name not in shown:
                lines += _data(name, value)
        text = "\n".join(["```{eval-rst}", *lines, "```"])
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _has_entry(value) -> bool:
    documented = inspect.isfunction(value) or inspect.isclass(value)
    return documented and value.__module__.startswith(TOP) and bool(value.__doc__)


def _docstring(module) -> list[str]:
    lines = inspect.getdoc(module).splitlines()
    tidy(None, "module", module.__name__, module, None, lines)
    return [*lines, ""]


def _entry(full_name: str, value) -> list[str]:
    if not inspect.isclass(value):
        return [f".. autofunction:: {full_name}", ""]
    if issubclass(value, Exception):
        return [f".. autoexception:: {full_name}", ""]
    methods = [
        name
        for name, member in vars(value).items()
        if not name.startswith("_")
        and (
            isinstance(member, property | classmethod | staticmethod)
            or inspect.isfunction(member)
        )
    ]
    lines = [f".. autoclass:: {full_name}"]
    if methods:
        lines.append(f"   :members: {', '.join(methods)}")
    return [*lines, ""]


def _data(name: str, value) -> list[str]:
    lines = [f".. py:data:: {name}", ""]
    if isinstance(value, Registry):
        entries = ", ".join(f"``{name}``" for name in value)
        return [*lines, f"   Registered by name: {entries}.", ""]
    if isinstance(value, dict):
        entries = ", ".join(f"``{name}``" for name in value)
        return [*lines, f"   A table with the keys {entries}.", ""]
    if isinstance(value, int | float | str | tuple):
        return [*lines, f"   Constant: ``{value!r}``.", ""]
    return [*lines, f"   Type: ``{_short(value)}``.", ""]


def _short(value) -> str:
    return re.sub(r"\b(?:[a-z_0-9]+\.)+(?=[A-Z])", "", str(value))


def tidy(app, what, name, value, options, lines: list[str]) -> None:
    """Makes reStructuredText of a docstring that is written to be read as text.

    Indented blocks become literal ones, and the marks of reStructuredText that stand
    for themselves in prose are escaped. Fields of a NamedTuple are shown as in the
    source, with their shapes.
    """
    found, literal, block = [], False, None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            found.append(line)
            continue
        if re.fullmatch(r"(Args|Returns|Raises|Yields|Attributes):", line.strip()):
            block, literal = "section", False
        elif indent == 0:
            block, literal = None, False
        starts = indent and block is None and found and not found[-1].strip()
        if starts and not literal:
            found += ["::", ""]
            literal = True
        found.append(line if literal else _escape(line))
    lines[:] = found
    if inspect.isclass(value) and issubclass(value, tuple) and _fields(value):
        code = textwrap.indent(_fields(value), "   ")
        lines += ["", ".. code-block:: python", "", *code.splitlines(), ""]


def shorten(app, what, name, value, options, signature, returned):
    """Leaves out the signature of a NamedTuple, whose fields are shown below it."""
    is_record = inspect.isclass(value) and issubclass(value, tuple) and _fields(value)
    return ("", None) if is_record else None


def _escape(line: str) -> str:
    parts = re.split(r"(`[^`]*`)", line)
    escaped = [re.sub(r"([*|])|(?<=\w)(_)(?=\W|$)", r"\\\1\2", p) for p in parts[::2]]
    parts[::2] = escaped
    return "".join(parts)


def _fields(value: type) -> str:
    """Returns the lines of a NamedTuple's source that declare its fields."""
    try:
        source = textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        return ""
    (tree,) = ast.parse(source).body
    declared = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    if not declared:
        parent = value.__base__
        return _fields(parent) if parent and parent is not tuple else ""
    lines = source.splitlines()[declared[0].lineno - 1 : declared[-1].end_lineno]
    return textwrap.dedent("\n".join(lines))


def setup(app) -> dict[str, bool]:
    """Adds the directive."""
    app.add_directive("api", Api)
    app.connect("autodoc-process-docstring", tidy, priority=400)
    app.connect("autodoc-process-signature", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
