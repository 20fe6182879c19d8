"""The built site: links, anchors, public names, and what a browser makes of it.

`.ci/run` builds the site first and names its folder in OODGAT_SITE; otherwise it is
built here, without running the examples and the notebook.
"""

import collections
import contextlib
import functools
import html
import html.parser
import http.server
import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import urllib.parse
import zlib

import pytest
from support import browser, forking

from oodgat_jax.registry import Registry

ROOT = pathlib.Path(__file__).parent.parent.parent
NEEDED = ("sphinx", "myst_nb", "sphinx_book_theme")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
PAGES = (
    "index.html",
    "api/oodgat_jax.html",
    "api/detectors.html",
    "results/main.html",
    "reference/command_line.html",
    "gallery/scores.html",
    "how_it_works.html",
)
SEARCH = "search.html?q=Mahalanobis"
WIDTHS = (1400, 390)

# Runs in a page whose frames hold the pages; writes JSON into #found.
HARNESS = """<!DOCTYPE html><pre id="found"></pre>%s<script>
const results = f => f.contentDocument.querySelectorAll("#search-results li a");
const look = f => {
  const page = f.contentDocument, root = page.documentElement;
  return {
    page: f.dataset.page, width: f.clientWidth, title: page.title,
    heading: (page.querySelector("article h1, main h1, h1") || {}).textContent || "",
    overflow: root.scrollWidth - root.clientWidth,
    images: [...page.images].filter(i => i.complete && !i.naturalWidth && i.src)
      .map(i => i.src),
    results: [...results(f)].map(a => a.getAttribute("href")),
    fetched: f.contentWindow.performance.getEntriesByType("resource").map(r => r.name),
  };
};
onload = () => {
  const frames = [...document.querySelectorAll("iframe")];
  const search = frames.filter(f => f.dataset.page.startsWith("search"));
  let tries = 0, same = 0, before = 0;
  const wait = () => {  // until results have come, and no more come
    const now = search.map(f => results(f).length);
    same = Math.min(...now) && "" + now == before ? same + 1 : 0;
    before = "" + now;
    if (tries++ < 200 && same < 10) return setTimeout(wait, 100);
    document.querySelector("#found").textContent = JSON.stringify(frames.map(look));
  };
  wait();
};
</script>"""


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site."""
    if built := os.environ.get("OODGAT_SITE"):
        return pathlib.Path(built)
    if MISSING:
        pytest.skip(f"no {', '.join(MISSING)}: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    quick = "-D", "run_examples=0", "-D", "nb_execution_mode=off"
    command = "-m", "sphinx", "-q", "-W", "--keep-going", *quick
    done = forking.run(
        *(*command, "-d", folder / "doctrees", "docs", folder / "html"),
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Page(html.parser.HTMLParser):
    """Gathers the links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("img", "script") and found.get("src"):
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(found["href"])


@functools.cache
def pages(folder):
    return {
        path.relative_to(folder).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in folder.glob("**/*.html")
        if "_static" not in path.parts
    }


def is_local(link):
    parts = urllib.parse.urlsplit(link)
    return not parts.scheme and not parts.netloc


def test_there_are_pages(site):
    assert len(pages(site)) > 40
    assert set(PAGES) <= set(pages(site))


def test_links_and_anchors_lead_somewhere(site):
    lost = []
    for name, page in pages(site).items():
        for link in filter(is_local, page.links):
            parts = urllib.parse.urlsplit(link)
            path = urllib.parse.unquote(parts.path)
            target = os.path.normpath(os.path.join(os.path.dirname(name), path))
            target = target if path else name
            if not (site / target).is_file():
                lost.append((name, link))
            elif parts.fragment and target in pages(site):
                known = pages(site)[target].anchors
                if urllib.parse.unquote(parts.fragment) not in known:
                    lost.append((name, link))
    assert lost == []


def test_pages_load_nothing_from_elsewhere(site):
    loaded = {link for page in pages(site).values() for link in page.loaded}
    assert loaded
    assert [link for link in loaded if not is_local(link)] == []


def test_pages_show_no_path_of_this_machine(site):
    own = (str(ROOT), sys.prefix)
    texts = {name: (site / name).read_text(encoding="utf-8") for name in pages(site)}
    assert [n for n, text in texts.items() if any(path in text for path in own)] == []


def test_every_page_can_be_reached_from_the_first(site):
    special = {"genindex.html", "search.html", "py-modindex.html"}
    seen, open_ = set(), ["index.html"]
    while open_:
        name = open_.pop()
        if name in seen or name not in pages(site):
            continue
        seen.add(name)
        for link in filter(is_local, pages(site)[name].links):
            path = urllib.parse.urlsplit(link).path
            target = os.path.normpath(os.path.join(os.path.dirname(name), path))
            open_.append(target if path else name)
    assert set(pages(site)) - special - seen == set()


def expected_names():
    """Public names by the modules' own word: `__all__`, or what they define."""
    for page in (ROOT / "docs" / "api").glob("*.md"):
        for name in re.findall(r"```\{api\} (\S+)", page.read_text(encoding="utf-8")):
            module = importlib.import_module(name)
            for public in getattr(module, "__all__", None) or defined(module):
                yield name, public, getattr(module, public)


def defined(module):
    for name, value in vars(module).items():
        code = inspect.isfunction(value) or inspect.isclass(value)
        own = code and value.__module__ == module.__name__
        if not name.startswith("_") and (own or isinstance(value, Registry)):
            yield name


def documented(site):
    """Full names of all Python objects, from the site's inventory."""
    data = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    lines = zlib.decompress(data).decode().splitlines()
    return {line.split(" ")[0] for line in lines if " py:" in line}


def test_every_public_name_is_documented(site):
    names = documented(site)
    top = importlib.import_module("oodgat_jax")
    missing = [
        f"{module}.{name}"
        for module, name, value in expected_names()
        if f"{module}.{name}" not in names
        and not (name in top.__all__ and getattr(top, name) is value)
    ]
    assert missing == []
    assert {f"oodgat_jax.{name}" for name in top.__all__} <= names


def test_every_detector_is_named_on_its_page(site):
    from oodgat_jax.detectors import DETECTORS

    text = (site / "api" / "detectors.html").read_text(encoding="utf-8")
    text += (site / "api" / "oodgat_jax.html").read_text(encoding="utf-8")
    assert [name for name in DETECTORS if name not in text] == []


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the site, and the harness beside it, without a word."""

    harness = ""

    def do_GET(self):
        if self.path != "/harness":
            return super().do_GET()
        body = self.harness.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def served(folder, harness):
    handler = type("Handler", (Quiet,), {"harness": harness})
    make = functools.partial(handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), make) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


View = collections.namedtuple("View", "found console")


@pytest.fixture(scope="session")
def view(site, tmp_path_factory):
    """What a browser finds on every page at every width, and what its console says."""
    if browser.find() is None:
        pytest.skip("no browser is installed")
    frames = "".join(
        f'<iframe data-page="{page}" src="/{page}" loading="eager" '
        f'style="width:{width}px;height:900px;border:0"></iframe>'
        for page in (*PAGES, SEARCH)
        for width in WIDTHS
    )
    profile = tmp_path_factory.mktemp("profile")
    flags = "--dump-dom", "--virtual-time-budget=30000", "--enable-logging=stderr"
    with served(site, HARNESS % frames) as address:
        own = f"--user-data-dir={profile}"
        command = [browser.find(), *browser.FLAGS, own, *flags, f"{address}/harness"]
        done = subprocess.run(command, capture_output=True, check=True, timeout=900)
    dumped = done.stdout.decode()
    found = json.loads(html.unescape(re.search(r'id="found">(.+?)</pre>', dumped)[1]))
    console = re.findall(r".*CONSOLE.*", done.stderr.decode())
    return View(found, console)


def test_every_page_has_its_heading_in_a_browser(view):
    assert len(view.found) == 2 * (len(PAGES) + 1)
    assert [page for page in view.found if not page["heading"].strip()] == []


def test_nothing_is_wider_than_the_window(view):
    assert [p for p in view.found if p["overflow"] > 0] == []
    assert {page["width"] for page in view.found} == set(WIDTHS)


def test_all_images_are_shown(view):
    assert [image for page in view.found for image in page["images"]] == []


def test_search_finds_mahalanobis(view):
    (wide, narrow) = [p for p in view.found if p["page"] == SEARCH]
    for page in (wide, narrow):
        assert any("detectors.html" in link for link in page["results"])
        assert any("post_hoc.html" in link for link in page["results"])


def test_the_browser_fetches_nothing_from_elsewhere(view):
    hosts = {
        urllib.parse.urlsplit(name).hostname
        for page in view.found
        for name in page["fetched"]
        if not name.startswith("data:")
    }
    assert hosts == {"127.0.0.1"}


def test_the_console_is_quiet(view):
    own = '"[PST]: '  # what the theme says of itself, at the level of information
    assert [line for line in view.console if own not in line] == []
