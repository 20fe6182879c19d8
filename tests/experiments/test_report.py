"""The report: what it shows, what it says of what is missing, how a browser sees it."""

import html
import re

import numpy as np
import pytest
from support import binaries, browser
from support.example_records import record

from experiments import post_hoc, report
from experiments.support import figures, main_table, report_page, report_settings
from experiments.support.report_page import Content
from experiments.support.studies import STUDIES
from experiments.support.study_flags import RECORDS
from oodgat_jax.records import append_lines, append_records
from oodgat_jax.types import InputError

VIEWS = {
    "390-light": (390, "light"),
    "390-dark": (390, "dark"),
    "1400-light": (1400, "light"),
    "1400-dark": (1400, "dark"),
}
PAPER = 688  # pixels between the margins of A4
EVIL = "<script>alert('&')</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Made records of the two tables of methods, and all others that are committed."""
    folder = tmp_path_factory.mktemp("records")
    for path in RECORDS.glob("*.jsonl"):
        if path.stem not in ("end_to_end", "post_hoc"):
            (folder / path.name).write_bytes(path.read_bytes())
    for dataset in ("cora", "digits"):
        for number, row in enumerate(main_table.ROWS):
            one = {"method": row.method, "auroc": [0.8 + number / 100] * 9}
            written = record(dataset, row.detector, **one)
            append_records(folder / "end_to_end.jsonl", written)
        for row in post_hoc.ROWS:
            more = {"selection": "fixed", "detector_settings": {"k": 10}}
            written = record(dataset, row.detector, method=row.method, **more)
            append_records(folder / "post_hoc.jsonl", written)
    return folder


def write(out, records, cache):
    flags = f"--out={out}", f"--records_dir={records}"
    return binaries.call("report", *flags, cache=cache)


@pytest.fixture(scope="module")
def path(folder, tmp_path_factory, cache):
    """The file that the command writes."""
    out = tmp_path_factory.mktemp("page")
    code, _, err = write(out, folder, cache)
    assert (code, err) == (0, "")
    return out / "report.html"


@pytest.fixture(scope="module")
def page(path):
    return path.read_text(encoding="utf-8")


def part(page, title):
    """The HTML of one section."""
    return re.search(rf'<section aria-labeledby="{title}">.*?</section>', page, re.S)[0]


# What is shown


def test_the_main_table_has_the_papers_figures_beside_ours(page):
    shown = part(page, "the-main-table-methods-trained-end-to-end")
    captions = re.findall(r"<figcaption[^>]*>([^<]*)", shown)
    assert captions[:2] == ["cora", "digits"]
    row = re.search(r"OODGAT-ATT</th>(.*)</tr>", shown)[1]
    assert '<strong>87.0 ± 0.0 <span class="beside">(93.6)</span></strong>' in row
    assert "over 9 runs" in shown
    assert (
        '<tr><th scope="row" class="text">digits</th><td class="text">MLP</td>'
        "<td>+6.0 (+6.0 to +6.0)</td><td>+7.0 (+7.0 to +7.0)</td></tr>"
    ) in shown


def test_every_study_with_records_is_shown_in_order(folder, page):
    titles = re.findall(r'<h2 id="[^"]+"><a [^>]+>([^<]+)', page)
    assert {path.name for path in folder.iterdir()} >= {s.file for s in STUDIES}
    assert titles == [html.escape(study.title) for study in STUDIES]


def test_tables_of_one_data_set_do_not_repeat_its_name(page):
    shown = part(page, "under-gkdes-protocol")
    assert re.findall(r"<figcaption[^>]*>([^<]*)", shown)[:3] == [
        "cora",
        "citeseer",
        "pubmed",
    ]
    first = re.search(r"<thead>\n(.*)\n", shown)[1]
    assert re.findall(r">([^<]+)</th>", first)[:2] == ["Method", "AUROC"]


def test_settings_versions_and_seeds_are_there(page):
    shown = part(page, "without-ood-labels")
    folded = re.search(r"<details>.*</details>", shown, re.S)[0]
    assert "max_steps 1000" in folded
    assert "jax 0." in folded
    assert ">123, 1, 2</td>" in folded
    assert "consistency 2.0" in folded


def test_what_is_missing_is_named_with_its_command(tmp_path):
    append_records(tmp_path / "end_to_end.jsonl", record())
    (tmp_path / "gkde.jsonl").touch()
    page = report.draw(tmp_path)
    missing = part(page, report_page.anchor(report_page.ABSENT))
    for study in STUDIES:
        absent = study.file != "end_to_end.jsonl"
        assert (html.escape(study.command) in missing) == absent
        assert (f"<code>{study.file}</code>" in missing) == absent
    assert page.count('class="plot"') == 1


def test_names_from_records_are_escaped(tmp_path):
    one = record(EVIL, hyperparameters={EVIL: EVIL}, split_digest=EVIL)
    one["versions"] |= {EVIL: EVIL}
    append_records(tmp_path / "end_to_end.jsonl", one)
    page = report.draw(tmp_path)
    assert page.count(html.escape(EVIL)) >= 8
    assert "<script" not in page


def test_names_are_not_taken_for_formulas(tmp_path):
    append_records(tmp_path / "end_to_end.jsonl", record(r"$\wrong$"))
    assert r"$\wrong$" in report.draw(tmp_path)


def test_the_page_asks_for_nothing_from_elsewhere(page):
    assert not re.search(r'(src|href)="(?!#)', page)
    assert not re.search(r"@import|url\((?!#)", page)


def test_anchors_of_sections_differ():
    anchors = [report_page.anchor(study.title) for study in STUDIES]
    assert len(set(anchors)) == len(STUDIES)


# Settings


def test_settings_that_differ_stand_in_their_rows():
    records = [
        record("digits", hyperparameters={"lr": 0.01, "hidden": 32}),
        record("cora", "ENT", hyperparameters={"lr": 0.5, "hidden": 32}),
        record("cora", hyperparameters={"lr": 0.02, "hidden": 32}),
    ]
    assert ("Same everywhere", "hidden 32") in report_settings.facts(records)
    ((_, table),) = report_settings.settings(records)
    assert [row[0] for row in table.rows] == ["cora", "digits"]
    assert [row[-1] for row in table.rows] == ["lr 0.02", "lr 0.01"]
    assert "Failed runs" not in table.header


def test_versions_that_differ_are_counted():
    records = [record(versions={"jax": v}) for v in ("1", "2", "2")]
    versions = [text for what, text in report_settings.facts(records) if what[0] == "V"]
    assert versions == ["jax 1 (1 records)", "jax 2 (2 records)"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([123, 123, 1, 2], "123, 1, 2"),
        ([0, 1, 2, 3, 4, 0], "0 to 4"),
        ([0, 1, 2, 3, 9], "0, 1, 2, 3, 9"),
        ([], ""),
    ],
    ids=["splits", "many", "gap", "none"],
)
def test_seeds_are_short(values, text):
    assert report_settings.seeds(values) == text


# Mistakes


def _damage(folder):
    append_records(folder / "end_to_end.jsonl", record())
    with open(folder / "end_to_end.jsonl", "a") as file:
        file.write('{"dataset": "co\n')


def _wrong_file(folder):
    append_lines(folder / "benchmark.jsonl", {"dataset": "cora"})


def _other_method(folder):
    append_records(folder / "end_to_end.jsonl", record(method="another"))


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: None, "has no records to show"),
        (lambda folder: folder.rmdir(), "has no records to show"),
        (_damage, r"end_to_end\.jsonl, line 2 is damaged"),
        (_wrong_file, r"benchmark\.jsonl cannot be shown \(a record lacks 'variant'\)"),
        (_other_method, r"end_to_end\.jsonl cannot be shown \(There are no records"),
    ],
    ids=["empty", "no folder", "damaged", "key", "method"],
)
def test_what_cannot_be_shown_is_named(tmp_path, prepare, message):
    (tmp_path / "records").mkdir()
    prepare(tmp_path / "records")
    with pytest.raises(InputError, match=message):
        report.draw(tmp_path / "records")


def test_records_that_cannot_be_read_leave_the_old_page(tmp_path, path, page, cache):
    _damage(tmp_path)
    code, _, err = write(path.parent, tmp_path, cache)
    assert (code, err.count("\n")) == (2, 1)
    assert path.read_text(encoding="utf-8") == page


# In a browser

needs_browser = pytest.mark.skipif(browser.find() is None, reason="no browser here")
every_view = pytest.mark.parametrize("view", [*VIEWS, "print"])


@pytest.fixture(scope="module")
def seen(page, tmp_path_factory):
    """View -> what a browser measures; the last is the page as it is printed.

    Lines and letters of figures are most of a page: only the first view has them.
    """
    hollow = re.sub(r"(<svg[^>]*>).*?(</svg>)", r"\1\2", page, flags=re.DOTALL)
    assert hollow.count("<svg") == page.count("<svg")
    printed = hollow.replace("@media print", "@media all")
    printed = printed.replace("@media screen", "@media print")
    pages = [page] + [hollow] * (len(VIEWS) - 1) + [printed]
    shapes = [*VIEWS.values(), (PAPER, "dark")]
    views = [(text, *shape) for text, shape in zip(pages, shapes, strict=True)]
    measured = browser.measure(views, tmp_path_factory.mktemp("browser"))
    return dict(zip([*VIEWS, "print"], measured, strict=True))


@needs_browser
@every_view
def test_the_page_does_not_scroll_sideways(seen, view):
    asked = PAPER if view == "print" else VIEWS[view][0]
    assert seen[view]["page"] == [asked, asked]


@needs_browser
def test_wide_tables_scroll_in_their_box(seen):
    wide = [needed > width for width, needed in seen["390-light"]["boxes"]]
    assert sum(wide) > 5


@needs_browser
@every_view
def test_text_can_be_read(seen, view):
    assert len(seen[view]["contrasts"]) > 100
    assert [each for each in seen[view]["contrasts"] if each[0] < 4.5] == []


@needs_browser
@every_view
def test_light_and_dark_are_as_asked(seen, view):
    ground = seen[view]["ground"]
    assert ground < 0.05 if view.endswith("dark") else ground > 0.9


@needs_browser
@every_view
def test_the_page_is_sound(seen, view):
    found = seen[view]
    assert found["repeated"] == found["lost"] == found["fetched"] == []
    assert found["scripts"] == 0
    assert len(found["figures"]) >= 2
    assert all(width > 300 and label for width, label in found["figures"])


@needs_browser
@every_view
def test_settings_are_folded_but_on_paper(seen, page, view):
    assert page.count("<details>") >= 6
    assert seen[view]["folded"] == [view != "print"] * page.count("<details>")


@needs_browser
def test_a_figure_shows_the_same_in_light_and_dark(tmp_path):
    drawn, axes = figures.panels(1)
    axes[0, 0].axvspan(0, 0.5, color="black")
    content = Content("Title", "About.", "command", figures=[("Plot", drawn)])
    path = tmp_path / "page.html"
    path.write_text(report_page.page("Page", [], [content]), encoding="utf-8")

    def shares(scheme):
        """Of pixels in the color of the ground, and of those far from it."""
        pixels = browser.screenshot(path, scheme, tmp_path)[..., :3].mean(-1)
        apart = np.abs(pixels - pixels[0, 0])
        return (apart < 0.01).mean(), (apart > 0.7).mean()

    light, dark = shares("light"), shares("dark")
    assert light[1] > 0.03
    np.testing.assert_allclose(dark, light, atol=0.003)
