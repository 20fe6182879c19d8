"""A digest of the library's sources that decide a number, for records.

All rooms of the library count but those of AROUND, which show, store or serve what the
others compute. Python files count as they are parsed, without comments, layout and
docstrings, so that documentation makes no record stale; C++ files as they are written.
"""

import ast
import functools
import hashlib
import pathlib
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parent
# Rooms (packages and files) whose code decides no number of a training.
AROUND = (
    "__init__",
    "atomic_files",
    "cli",
    "estimator",
    "records",
    "report",
    "source_digest",
    "tables",
    "testing",
)
COMPILED = (".cc", ".h")
LENGTH = 12  # characters of the digest


@functools.cache
def digest() -> str:
    """Returns the digest of the sources that decide a number; once per process."""
    return of_files(ROOT)


def of_files(root: pathlib.Path) -> str:
    """Returns the digest of the sources of a library's folder."""
    whole = hashlib.sha256()
    for path in counted(root):
        content = path.read_bytes()
        if path.suffix == ".py":
            content = parsed(content.decode()).encode()
        for part in (path.relative_to(root).as_posix().encode(), content):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()[:LENGTH]


def counted(root: pathlib.Path) -> list[pathlib.Path]:
    """Returns the files that count, sorted."""
    every = [p for p in root.rglob("*") if p.suffix in (".py", *COMPILED)]
    return sorted(path for path in every if _room(path, root) not in AROUND)


def _room(path: pathlib.Path, root: pathlib.Path) -> str:
    return path.relative_to(root).with_suffix("").parts[0]


def parsed(source: str) -> str:
    """Returns what a source says, without comments, layout and docstrings.

    It is the same under all versions of Python: fields that are empty, which new
    versions add, are left out.
    """
    return "".join(_told(ast.parse(source)))


def _told(value: object) -> Iterator[str]:
    if isinstance(value, list):
        yield "["
        for each in value:
            yield from _told(each)
        yield "]"
    elif isinstance(value, ast.AST):
        yield f"({type(value).__name__}"
        for name, field in ast.iter_fields(value):
            field = _without_docstring(value) if name == "body" else field
            if field is not None and field != []:
                yield f" {name}="
                yield from _told(field)
        yield ")"
    else:
        yield f"{value!r},"


def _without_docstring(node: ast.AST) -> object:
    """Returns the body of a node, without the string that documents it."""
    body = getattr(node, "body", None)
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
        return node.body[1:]
    return body
