"""The layers of the library: who may import whom, and no cycle."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent
# From the bottom up; a room may import those of earlier rows, and itself.
LAYERS = (
    {"types"},
    {"registry", "atomic_files", "dropout", "source_digest"},
    {"kernels"},
    {"graphs"},
    {"datasets"},
    {"splits"},
    {"models", "losses", "metrics"},
    {"training"},
    {"detectors", "sharding"},
    {"methods"},
    {"gkde"},
    {"gpn"},
    {"evaluation"},
    {"tables", "records"},
    {"experiment"},
    {"ensembles"},
    {"report"},
    {"testing", "estimator"},
    {"cli"},
    {"experiments"},
)
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted([*ROOT.glob("oodgat_jax/**/*.py"), *ROOT.glob("experiments/**/*.py")])


def room(module):
    """The layer's name of a dotted module; None for the top of the library."""
    parts = module.split(".")
    if parts[0] == "experiments":
        return "experiments"
    return parts[1] if len(parts) > 1 else None


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path):
    """Dotted names that a file imports of this project, deferred ones too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = []
        for name in names:
            if name.split(".")[0] in ("oodgat_jax", "experiments"):
                yield name


@pytest.mark.parametrize("path", FILES, ids=lambda path: module_of(path))
def test_rooms_import_only_what_is_below_them(path):
    here = room(module_of(path))
    if here is None:  # oodgat_jax/__init__.py shows everything
        return
    for name in imports(path):
        there = room(name)
        assert there in RANK, f"{name} is in no layer"
        same = there == here
        assert same or RANK[there] < RANK[here], f"{here} must not import {name}"


def test_every_room_has_its_layer():
    rooms = {room(module_of(path)) for path in FILES} - {None}
    assert rooms == set(RANK)


def module_graph():
    modules = {module_of(path): path for path in FILES}
    found = {}
    for module, path in modules.items():
        names = {n if n in modules else n.rpartition(".")[0] for n in imports(path)}
        # A package's own __init__ gathers its modules: that is no dependency.
        found[module] = {
            name
            for name in names & set(modules)
            if name != module and not module.startswith(f"{name}.")
        }
    return found


def test_there_is_no_import_cycle():
    found, state = module_graph(), {}

    def visit(module, path):
        if state.get(module) == "done":
            return
        assert state.get(module) != "open", " -> ".join([*path, module])
        state[module] = "open"
        for other in sorted(found[module]):
            if module != "oodgat_jax":
                visit(other, [*path, module])
        state[module] = "done"

    for module in found:
        visit(module, [])


def test_only_the_command_line_prints_and_reads_flags():
    for path in FILES:
        # Compiling the kernels takes seconds, which one line says while it lasts.
        if room(module_of(path)) in ("cli", "experiments", "kernels"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        called = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert "print" not in called, path
        assert not any(name.startswith("absl") for name in _all_imports(tree)), path


def _all_imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
