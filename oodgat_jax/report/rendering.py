"""A page's content -> one HTML file, with nothing to fetch.

Style and script are in the file, and its policy allows these two alone, by their
digests: whatever a name in the data says, nothing else is run or asked for. Names are
JSON without a `<`, and the script only ever makes text of them.
"""

import base64
import hashlib
import json
import pathlib
import sys

import numpy as np

from oodgat_jax import atomic_files
from oodgat_jax.report.page import Page

ASSETS = pathlib.Path(__file__).parent / "assets"
SCRIPTS = (
    *("data.js", "elements.js", "bounds.js", "state.js", "scores.js", "map.js"),
    *("details.js", "groups.js", "review.js", "table.js", "start.js"),
)
KINDS = {"u1": "Uint8", "u2": "Uint16", "i4": "Int32", "f4": "Float32", "f8": "Float64"}


def write(path: pathlib.Path, page: Page) -> None:
    """Writes the page, whole or not at all."""
    atomic_files.text(path, render(page))


def render(page: Page) -> str:
    """Returns the page as HTML."""
    style = with_colors(ASSETS / "page.css")
    parts = [(ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS]
    script = '"use strict";\n(() => {\n' + "".join(parts) + "})();\n"
    filled = {
        "STYLE": style,
        "SCRIPT": script,
        "POLICY": policy(style, script),
        "META": as_json(page.meta),
        "ARRAYS": as_json({name: packed(a) for name, a in page.arrays.items()}),
    }
    pieces = (ASSETS / "page.html").read_text(encoding="utf-8").split("@@")
    # Names are every second piece; what is filled in is never looked at again.
    pieces[1::2] = [filled[name] for name in pieces[1::2]]
    return "".join(pieces)


def with_colors(path: pathlib.Path) -> str:
    """Returns a style sheet after the colors that all pages have."""
    return "".join(
        part.read_text(encoding="utf-8") for part in (ASSETS / "colors.css", path)
    )


def policy(style: str, script: str) -> str:
    """Returns the content security policy that allows these two and no request."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; "
        f"script-src '{_digest(script)}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def as_json(value: object) -> str:
    """Returns JSON that no HTML parser finds an end or a comment in."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(array: np.ndarray) -> list[str]:
    """Returns the kind of a typed array and its bytes in base64, little endian."""
    if sys.byteorder == "big":
        array = array.astype(array.dtype.newbyteorder("<"))
    kind = KINDS[array.dtype.str[1:]]
    return [kind, base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()]


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
