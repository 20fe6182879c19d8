"""Runs one example: `python example_runner.py FILE FOLDER` writes FOLDER/cells.json."""

import contextlib
import io
import json
import pathlib
import re
import sys

INK = {"light": "#1f2328", "dark": "#e6edf3"}


def cells(source: str) -> list[tuple[str, str]]:
    """Returns (text, code) of each cell."""
    found = []
    for part in re.split(r"^# %%.*\n", source, flags=re.MULTILINE):
        text = re.match(r"(?:#[^\n]*\n)*", part)[0]
        prose = re.sub(r"^# ?", "", text, flags=re.MULTILINE).strip()
        if opening := re.match(r'"""(.*?)"""\n', part, re.DOTALL):
            prose, text = opening[1].strip(), opening[0]
        code = part[len(text) :].strip()
        if prose or code:
            found.append((prose, code))
    return found


def run(source: str, folder: pathlib.Path) -> list[dict]:
    """Runs the cells one after the other and returns what each has shown."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams |= {
        "figure.figsize": (7.2, 3.4),
        "figure.dpi": 150,
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
        "axes.prop_cycle": matplotlib.cycler(
            color=["#3b82c4", "#e0752d", "#3a9d5d", "#a35cc7", "#c94f4f", "#8a8f98"]
        ),
    }
    names, shown = {"__name__": "example"}, []
    for number, (text, code) in enumerate(cells(source)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"cell {number}", "exec"), names)
        figures = _save(folder, number)
        alt = text.splitlines()[0] if text else "Figure"
        shown.append({"printed": printed.getvalue(), "figures": figures, "alt": alt})
    return shown


def _save(folder: pathlib.Path, number: int) -> list[str]:
    """Saves the open figures for light and for dark pages, and closes them."""
    import matplotlib.pyplot as plt

    names = []
    for place, which in enumerate(plt.get_fignums()):
        figure, name = plt.figure(which), f"{number}-{place}"
        for scheme, color in INK.items():
            recolor(figure, color)
            figure.savefig(folder / f"{name}-{scheme}.png", transparent=True)
        names.append(name)
    plt.close("all")
    return names


def recolor(figure, color: str) -> None:
    """Draws text, axes and ticks of a figure in a color."""
    from matplotlib.text import Text

    for axes in figure.axes:
        axes.tick_params(which="both", color=color, labelcolor=color)
        for spine in axes.spines.values():
            spine.set_edgecolor(color)
    for text in figure.findobj(Text):
        if text.get_gid() != "keep":
            text.set_color(color)


if __name__ == "__main__":
    file, target = map(pathlib.Path, sys.argv[1:])
    result = run(file.read_text(encoding="utf-8"), target)
    (target / "cells.json").write_text(json.dumps(result))
