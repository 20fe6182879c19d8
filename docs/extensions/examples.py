"""The directive `example`: a Python file of the gallery, run, with what it shows.

  ```{example} scores.py
  ```

The file is cut at lines that begin with `# %%`. Comments after such a line are text,
the rest is code; what the code prints and the figures it leaves open come below it.
All examples run when the build begins, two at a time, each in its own process, and not
again while neither they nor the library change. `run_examples = False` shows the code.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
RUNNER = HERE / "example_runner.py"
TIMEOUT = 300
logger = logging.getLogger(__name__)


def run_all(app) -> None:
    """Runs the examples that have no output yet."""
    if not app.config.run_examples:
        return
    paths = sorted((app.srcdir / "gallery").glob("*.py"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda path: _run(path, output_folder(app, path)), paths))


def output_folder(app, path: pathlib.Path) -> pathlib.Path:
    """Returns the folder of an example's output, named by all that decides it."""
    digest = hashlib.sha256(path.read_bytes())
    for source in sorted([RUNNER, *ROOT.glob("oodgat_jax/**/*.py")]):
        digest.update(source.read_bytes())
    name = f"{path.stem}-{digest.hexdigest()[:12]}"
    return pathlib.Path(app.doctreedir) / "examples" / name


def _run(path: pathlib.Path, folder: pathlib.Path) -> None:
    if (folder / "cells.json").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    logger.info("running %s", path.name)
    command = [sys.executable, str(RUNNER), str(path), str(folder)]
    compiled = {"JAX_COMPILATION_CACHE_DIR": str(folder.parent / "compiled")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | compiled,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    if done.returncode:
        raise ExtensionError(f"{path.name} failed:\n{done.stderr[-3000:]}")


class Example(SphinxDirective):
    """Shows an example of the gallery."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Returns text, code and output, cell by cell."""
        sys.path.insert(0, str(HERE))
        from example_runner import cells

        path = pathlib.Path(self.env.doc2path(self.env.docname)).parent
        path /= self.arguments[0]
        self.env.note_dependency(str(path))
        outputs, folder = [], None
        if self.config.run_examples:
            folder = output_folder(self.env.app, path)
            outputs = json.loads((folder / "cells.json").read_text())
        found = []
        for number, (text, code) in enumerate(cells(path.read_text())):
            found += self.parse_text_to_nodes(text)
            if code:
                found.append(_block(code, "python"))
            if outputs:
                found += self._output(outputs[number], folder)
        return found

    def _output(self, output: dict, folder: pathlib.Path) -> list[nodes.Node]:
        shown = []
        if output["printed"].strip():
            shown.append(_block(output["printed"].rstrip(), "text", "printed"))
        for name in output["figures"]:
            for scheme in ("light", "dark"):
                file = folder / f"{name}-{scheme}.png"
                target = os.path.relpath(file, self.env.srcdir)
                image = nodes.image(uri=f"/{target}", alt=output["alt"])
                image["classes"] += [f"only-{scheme}", "figure"]
                shown.append(image)
        return shown


def _block(text: str, language: str, *classes: str) -> nodes.Node:
    block = nodes.literal_block(text, text, language=language)
    block["classes"] += classes
    return block


def setup(app) -> dict[str, bool]:
    """Adds the directive and its setting."""
    app.add_config_value("run_examples", True, "env", bool)
    app.add_directive("example", Example)
    app.connect("builder-inited", run_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
