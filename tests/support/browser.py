"""A page as a real browser lays it out: measurements and screenshots."""

import html
import json
import re
import shutil
import subprocess
import tempfile

import matplotlib.image

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)
SCHEMES = {"dark": 0, "light": 1}

# Runs in a page whose frames hold the page in question; writes JSON into #found.
MEASURE = """
const light = c => c.map(v => v / 255)
  .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const parts = text => text.match(/[\\d.]+/g).map(Number);
const visible = c => c.length < 4 || c[3] > 0;
const under = (view, e) => {
  for (; e; e = e.parentElement) {
    const found = parts(view.getComputedStyle(e).backgroundColor);
    if (visible(found)) return found.slice(0, 3);
  }
  return [255, 255, 255];
};
const contrast = (view, e) => {
  const color = parts(view.getComputedStyle(e).color).slice(0, 3);
  const [low, high] = [light(color), light(under(view, e))].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const has_text = e => [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
const measure = frame => {
  const view = frame.contentWindow, page = frame.contentDocument;
  const all = s => [...page.querySelectorAll(s)];
  const texts = all("body *").filter(e => !e.closest("svg") && has_text(e));
  const ids = all("[id]").map(e => e.id);
  const sizes = s => all(s).map(e => [e.clientWidth, e.scrollWidth]);
  return {
    page: [page.documentElement.clientWidth, page.documentElement.scrollWidth],
    boxes: sizes(".box"),
    ground: light(under(view, page.body)),
    contrasts: texts.map(e => [contrast(view, e), e.outerHTML.slice(0, 80)]),
    repeated: ids.filter((id, i) => ids.indexOf(id) != i),
    lost: all("a[href^='#']").map(a => a.hash.slice(1)).filter(id => !ids.includes(id)),
    figures: all("svg").map(e => [e.getBoundingClientRect().width, e.ariaLabel]),
    folded: all("details dl").map(e => !e.checkVisibility()),
    scripts: all("script").length,
    fetched: view.performance.getEntriesByType("resource").map(r => r.name),
  };
};
onload = () => {
  const found = [...document.querySelectorAll("iframe")].map(measure);
  document.querySelector("#found").textContent = JSON.stringify(found);
};
"""


def find():
    """The path of a browser, None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def _run(folder, page, *flags):
    with tempfile.TemporaryDirectory(dir=folder) as profile:
        command = [find(), *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
        return subprocess.run(command, capture_output=True, check=True, timeout=900)


def measure(views, folder):
    """What MEASURE finds in each of `views`: (text of a page, width, color scheme)."""
    frames = "".join(
        f'<iframe style="width:{width}px;height:800px;border:0;color-scheme:{scheme}" '
        f'srcdoc="{html.escape(text)}"></iframe>'
        for text, width, scheme in views
    )
    page = folder / "frames.html"
    page.write_text(
        f'<!DOCTYPE html><pre id="found"></pre>{frames}<script>{MEASURE}</script>',
        encoding="utf-8",
    )
    dumped = _run(folder, page, "--dump-dom").stdout.decode()
    return json.loads(html.unescape(re.search(r'id="found">(.+?)</pre>', dumped)[1]))


def screenshot(page, scheme, folder):
    """Pixels [height, width, channels] in [0, 1] of a file."""
    path = folder / f"{scheme}.png"
    _run(
        folder,
        page,
        f"--screenshot={path}",
        "--window-size=900,1400",
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
    )
    return matplotlib.image.imread(path)
