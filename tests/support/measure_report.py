"""Measures how a page with 100,000 nodes loads and hovers in a real browser.

  PYTHONPATH=tests:. python -m support.measure_report --nodes=100000

Not a test: its figures depend on the machine and on what else it does.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import numpy as np

from oodgat_jax import report
from support import chromium, report_cases

HOVER = """
new Promise(done => {
  const plane = document.getElementById("plane"), box = plane.getBoundingClientRect();
  const times = [];
  let left = %d;
  const one = () => {
    const at = {clientX: box.left + Math.random() * box.width,
      clientY: box.top + Math.random() * box.height, bubbles: true};
    const began = performance.now();
    plane.dispatchEvent(new PointerEvent("pointermove", at));
    // The frame's own callback draws; the one asked for here comes after it.
    requestAnimationFrame(() => {
      times.push(performance.now() - began);
      if (--left) setTimeout(one, 5); else done(times);
    });
  };
  one();
})
"""
HANDLER = """
(() => {
  const plane = document.getElementById("plane"), box = plane.getBoundingClientRect();
  const began = performance.now();
  for (let i = 0; i < 200; i++) plane.dispatchEvent(new PointerEvent("pointermove",
    {clientX: box.left + Math.random() * box.width,
     clientY: box.top + Math.random() * box.height, bubbles: true}));
  return (performance.now() - began) / 200;
})()
"""


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--nodes", type=int, default=100_000)
    flags.add_argument("--times", type=int, default=100)
    flags.add_argument("--out", default=None, help="where to keep the page")
    given = flags.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(given.out or pathlib.Path(folder) / "report.html")
        findings = report_cases.made(given.nodes, degree=10)
        began = time.perf_counter()
        report.write(path, report.build(findings))
        print(f"made in {time.perf_counter() - began:.1f} s")
        print(f"{path.stat().st_size / 2**20:.1f} MB")
        with chromium.session() as session:
            session.resize(1300, 900)
            began = time.perf_counter()
            session.open(path)
            print(f"loaded in {time.perf_counter() - began:.2f} s")
            inside = "performance.getEntriesByType('navigation')[0].domComplete"
            print(f"complete, by the browser, after {session.run(inside):.0f} ms")
            times = session.run(HOVER % given.times)
            print(
                f"hover to frame: median {statistics.median(times):.1f} ms, 95 % "
                f"{np.quantile(times, 0.95):.1f} ms, most {max(times):.1f} ms"
            )
            print(f"hover, the handler alone: {session.run(HANDLER):.3f} ms")


if __name__ == "__main__":
    main()
