"""The look of figures: files that repeat, bands that show the runs."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from experiments.support import figures


@pytest.fixture
def figure():
    drawn, axes = figures.panels(2)
    figures.band(axes[0, 0], [0, 1], np.array([[0.0, 2.0], [2.0, 4.0]]), 1, "two runs")
    return drawn


def test_the_band_is_one_deviation_around_the_mean(figure):
    axis = figure.axes[0]
    assert axis.lines[0].get_ydata().tolist() == [1.0, 3.0]
    (area,) = axis.collections
    heights = area.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.0, 4.0)


def test_a_run_without_a_value_is_left_out_there():
    drawn, axes = figures.panels(1)
    figures.band(axes[0, 0], [0, 1], np.array([[1.0, np.nan], [3.0, 5.0]]), 0, "")
    assert drawn.axes[0].lines[0].get_ydata().tolist() == [2.0, 5.0]


def test_the_same_figure_is_the_same_files(figure, tmp_path):
    first = [path.read_bytes() for path in figures.save(figure, tmp_path, "a")]
    second = [path.read_bytes() for path in figures.save(figure, tmp_path, "b")]
    assert first == second
    assert first[0].startswith(b"%PDF")
    assert first[1].startswith(b"\x89PNG")


def test_svg_is_one_element(figure):
    text = figures.as_svg(figure)
    assert text.startswith("<svg")
    assert text.rstrip().endswith("</svg>")
    assert text == figures.as_svg(figure)


def test_svgs_of_one_page_share_no_id(figure):
    first, second = (figures.as_svg(figure, name) for name in ("fig-1", "fig-2"))
    ids = [re.findall(r'\bid="([^"]+)"', text) for text in (first, second)]
    assert len(ids[0]) == len(set(ids[0])) > 10
    assert not {*ids[0]} & {*ids[1]}
    used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', first)
    assert {a or b for a, b in used} <= {*ids[0]}
    assert used


def test_the_style_of_an_svg_is_its_own(figure):
    (style,) = re.findall(r"<style[^>]*>([^<]*)", figures.as_svg(figure, "fig-1"))
    assert style.startswith("#fig-1 *{")


def test_an_svg_names_nobody_and_says_what_it_shows(figure):
    text = figures.as_svg(figure, "fig-1", 'A "band" & <line>')
    assert "matplotlib.org" not in text
    escaped = "A &quot;band&quot; &amp; &lt;line&gt;"
    assert f'role="img" aria-label="{escaped}"' in text
    assert f"<title>{escaped}</title>" in text
    ElementTree.fromstring(text)


def test_lines_differ_in_color_and_dash():
    assert len(set(figures.COLORS)) == len(set(figures.DASHES)) == 7
