"""The page in a real browser: numbers as numpy's, text as text, nothing asked for."""

import csv
import json
import re
import time

import numpy as np
import pytest
from support import browser, chromium
from support.report_cases import EVIL, made

from oodgat_jax import report
from oodgat_jax.estimator import bounds
from oodgat_jax.report import rendering


@pytest.fixture(scope="module")
def folder(tmp_path_factory, built):
    if browser.find() is None:
        pytest.skip("no browser is installed")
    folder = tmp_path_factory.mktemp("page")
    report.write(folder / "report.html", built)
    return folder


@pytest.fixture(scope="module")
def page(folder):
    with chromium.session() as session:
        session.resize(1300, 900)
        session.downloads(folder)
        session.open(folder / "report.html")
        yield session


def shown(page):
    """The figures beside the threshold, as numbers."""
    return page.run(
        "Object.fromEntries(['called', 'lost', 'least'].map(id => "
        "[id, Number(document.getElementById(id).dataset.value)])"
        ".concat(['low', 'high'].map(name => "
        "[name, Number(document.getElementById('lost').dataset[name])])))"
    )


def expected(findings, threshold, keep=None):
    scores = findings.bounds.scores
    called = int((findings.score[findings.unlabeled] > threshold).sum())
    unlabeled = int(findings.unlabeled.sum())
    lost = bounds.lost_count(scores, threshold, keep)
    low, high = bounds.share(lost, len(scores))
    least = bounds.least_unknown(called, unlabeled, lost, len(scores))
    share = lost / len(scores)
    return {"called": called, "lost": share, "low": low, "high": high, "least": least}


def threshold_of(page):
    return page.run("Number(document.getElementById('slider').dataset.threshold)")


def text_of(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


def test_the_model_s_threshold_comes_first(page, findings):
    page.run("document.getElementById('reset').click()")
    assert shown(page) == expected(findings, findings.threshold, 0.95)
    assert text_of(page, "#called") == str(
        expected(findings, findings.threshold)["called"]
    )


def test_any_threshold_gives_the_numbers_of_numpy(page, findings):
    scores = findings.score
    for value in (
        *np.linspace(-0.1, 1.1, 25),
        *scores[:20],
        *findings.bounds.scores[::9],
    ):
        page.run(_type(float(value)))
        threshold = float(value)
        keep = 0.95 if np.float32(threshold) == np.float32(findings.threshold) else None
        assert shown(page) == expected(findings, threshold, keep), value


def _type(value):
    return (
        f"{{const field = document.getElementById('exact'); field.value = {value!r};"
        "field.dispatchEvent(new Event('change'))}"
    )


def test_dragging_the_line_moves_the_counts(page, findings):
    page.run("scrollTo(0, 0)")
    box = page.run(
        "(() => {const {left, top, width, height} = "
        "document.getElementById('histogram').getBoundingClientRect();"
        "return [left, top, width, height]})()"
    )
    left, top, width, height = box
    seen = set()
    for share in (0.2, 0.5, 0.8):
        end = left + share * width, top + height / 2
        page.drag((left + width / 3, top + height / 2), end)
        threshold = page.run("Number(document.getElementById('slider').value)")
        assert abs(threshold / 1000 - share) < 0.02
        assert shown(page) == expected(findings, threshold_of(page))
        seen.add(shown(page)["called"])
    assert len(seen) == 3


def test_the_slider_is_moved_by_keys(page, findings):
    page.run("document.getElementById('slider').focus()")
    before = page.run("Number(document.getElementById('slider').value)")
    for _ in range(3):
        page.key("ArrowLeft", 37)
    after = page.run("Number(document.getElementById('slider').value)")
    assert after == before - 3
    low, high = page.run(
        "[...document.querySelectorAll('#histogram .tick')].map(e => e.textContent)"
    )[::5]
    spoken = page.run(
        "document.getElementById('slider').getAttribute('aria-valuetext')"
    )
    assert float(low) <= float(spoken) <= float(high)
    assert shown(page) == expected(findings, threshold_of(page))


def choose(page, name):
    page.run(
        "{const field = document.getElementById('search');"
        f"field.value = {json.dumps(name)};"
        "field.dispatchEvent(new Event('input'));"
        "document.querySelector('#node-table button.node').click()}"
    )


def test_a_click_on_the_map_shows_the_node_under_it(page, findings, built):
    page.run("document.getElementById('reset').click()")
    page.run("document.getElementById('plane').scrollIntoView({behavior: 'instant'})")
    left, top, width, height = page.run(
        "(() => {const b = document.getElementById('plane').getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]})()"
    )
    xy = built.arrays["xy"].reshape(-1, 2)
    places = (
        np.array([left + width / 2, top + height / 2])
        + xy * [1, -1] * min(width, height) * 0.47
    )
    for node in (3, 44, 321):
        page.click(*places[node].tolist())
        found = findings.ids.index(text_of(page, "#details h3"))
        distance = np.linalg.norm(places - places[node], axis=1)
        assert distance[found] <= distance.min() + 0.6  # pixels
        assert text_of(page, "#tip strong") == findings.ids[found]
        check_details(page, findings, found)


def check_details(page, findings, node):
    text = text_of(page, "#details")
    assert f"{findings.score[node]:.3f}" in text
    assert f"± {findings.spread[node]:.3f}" in text
    for share in findings.probabilities[node]:
        assert f"{100 * float(share):.1f} %" in text
    edges = findings.receivers == node
    rows = page.run(
        "[...document.querySelectorAll('#details tbody tr')]"
        ".map(row => [...row.children].map(cell => cell.textContent))"
    )
    weights = dict(zip(findings.senders[edges], findings.attention[edges], strict=True))
    assert len(rows) == len(weights)
    for name, called, score, weight in rows:
        other = node if name == "itself" else findings.ids.index(name)
        assert score == f"{findings.score[other]:.3f}"
        assert weight == f"{100 * weights[other]:.1f} %"
        assert (called == "unknown") == findings.unknown[other]
    unknown = findings.unknown[node]
    assert (text_of(page, "#details .verdict") == "unknown") == unknown


def test_shift_and_dragging_selects_what_is_inside(page, built):
    page.run("document.getElementById('plane').scrollIntoView({behavior: 'instant'})")
    left, top, width, height = page.run(
        "(() => {const b = document.getElementById('plane').getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]})()"
    )
    start, end = (left + 5, top + 5), (left + width / 2, top + height / 2)
    page.drag(start, end, modifiers=8)
    xy = built.arrays["xy"].reshape(-1, 2)
    inside = (xy[:, 0] < 0) & (xy[:, 1] > 0)
    assert f", {inside.sum()} selected" in text_of(page, "#found")
    page.run("document.getElementById('select-none').click()")
    assert ", 0 selected" in text_of(page, "#found")


def saved(folder, name):
    path, end = folder / name, time.monotonic() + 60
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_what_is_selected_is_saved_as_a_table(page, findings, folder):
    page.run(
        "document.getElementById('search').value = 'node-1';"
        "document.getElementById('search').dispatchEvent(new Event('input'));"
        "document.getElementById('select-all').click();"
        "document.getElementById('export').click()"
    )
    header, *rows = saved(folder, "nodes.csv")
    assert header[:5] == ["id", "role", "label", "prediction", "score"]
    wanted = [node for node, name in enumerate(findings.ids) if "node-1" in name]
    assert [row[0] for row in rows] == [findings.ids[node] for node in wanted]
    scores = np.array([row[4] for row in rows], np.float32)
    np.testing.assert_array_equal(scores, findings.score[wanted])
    page.run("document.getElementById('select-none').click()")


def test_the_table_sorts_by_a_column(page, findings):
    page.run(
        "document.getElementById('search').value = '';"
        "document.getElementById('search').dispatchEvent(new Event('input'));"
        "document.querySelector('#node-table [data-column=spread]').click()"
    )
    first = text_of(page, "#node-table tbody th")
    assert first == findings.ids[int(findings.spread.argmax())]
    page.run("document.querySelector('#node-table [data-column=spread]').click()")
    first = text_of(page, "#node-table tbody th")
    assert first == findings.ids[int(findings.spread.argmin())]
    heading = "#node-table [aria-sort=ascending]"
    assert text_of(page, heading).startswith("spread")


def test_labels_that_are_written_in_go_to_review_csv(page, findings, folder):
    page.run(
        "document.querySelector('#review-table input').value = '=new class';"
        "document.getElementById('save-review').click()"
    )
    header, first, *rest = saved(folder, "review.csv")
    rows = report.suggest(findings, report.find_groups(findings), 30)
    assert header == ["id", "score", "predicted", "called_unknown", "reason", "label"]
    assert first[-1] == "'=new class"
    assert [row[0] for row in (first, *rest)] == [row.id for row in rows]
    assert [row[4] for row in (first, *rest)] == [row.reason for row in rows]
    assert all(row[-1] == "" for row in rest)


def test_markup_in_names_stays_text(page, findings):
    choose(page, EVIL)
    assert text_of(page, "#details h3") == EVIL
    assert EVIL in text_of(page, "#legend")
    assert EVIL in text_of(page, "#group-cards")
    assert EVIL in text_of(page, "#facts")
    assert page.run("typeof window.evil") == "undefined"
    assert page.run("document.images.length + document.scripts.length") == 1


def test_groups_are_listed_with_their_nodes(page, findings):
    groups = report.find_groups(findings).groups
    cards = page.run(
        "[...document.querySelectorAll('.card')].map(card => [card.querySelector('h3')"
        ".textContent, [...card.querySelectorAll('.typical button')]"
        ".map(b => b.textContent)])"
    )
    assert [title for title, _ in cards] == [
        f"Group {number} {group.size} nodes" for number, group in enumerate(groups, 1)
    ]
    for (_, names), group in zip(cards, groups, strict=True):
        assert names == [findings.ids[node] for node in group.typical]


def test_everything_has_a_name_and_nothing_is_too_wide(page):
    unnamed = page.run(
        "[...document.querySelectorAll('button, input, select')].filter(e => "
        "!e.textContent.trim() && !e.ariaLabel && !(e.labels && e.labels.length))"
        ".map(e => e.outerHTML)"
    )
    assert unnamed == []
    assert page.run("document.querySelectorAll('[aria-live]').length") >= 2
    for width in (1300, 390):
        page.resize(width, 800)
        assert page.run("document.documentElement.scrollWidth") <= width
    page.resize(1300, 900)


def test_dark_and_print_change_the_ground(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    page.media("dark")
    assert page.run(ground) == "rgb(20, 23, 28)"
    page.media("dark", "print")
    assert page.run(ground) == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    page.media("light")


def test_a_page_without_attention_and_bounds_says_so(page, folder):
    plain = made(60, attention=False, calibrated=False)
    report.write(folder / "plain.html", report.build(plain))
    page.open(folder / "plain.html")
    assert text_of(page, "#lost") == "not known"
    assert "no OOD attention" in text_of(page, "#notes")
    page.run("document.querySelector('#node-table button.node').click()")
    heads = page.run(
        "[...document.querySelectorAll('#details thead th')].map(e => e.textContent)"
    )
    assert heads == ["Neighbor", "Called", "Score"]


def test_no_request_leaves_the_page_and_the_console_is_quiet(page, folder):
    # Last, of all that the tests before have done.
    names = {(folder / name).as_uri() for name in ("report.html", "plain.html")}
    asked = {url for url in page.requests if not url.startswith(("blob:", "data:"))}
    assert asked <= names | {"about:blank"}
    assert asked & names
    assert page.problems == []
    blocked = page.run(
        "fetch('https://example.org/').then(() => 'sent', () => 'blocked')"
    )
    assert blocked == "blocked"


def test_the_file_holds_no_markup_of_the_data(built):
    text = rendering.render(built)
    assert "window.evil" not in re.sub(r"<script id=\"meta\".*?</script>", "", text)
    assert text.count("<script") == 3
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=\"(?!#|data:,)", text)


def test_nothing_is_written_where_it_cannot_be(tmp_path, built):
    with pytest.raises(ValueError, match="cannot be written"):
        report.write(tmp_path / "missing" / "report.html", built)
