"""The generated parts of the README."""

import re

import pytest
from support import binaries
from support.example_records import record

from experiments import readme
from experiments.support import provenance
from experiments.support.studies import STUDIES
from experiments.support.study_flags import RECORDS
from oodgat_jax.records import append_records
from oodgat_jax.types import InputError

PAGE = """# Title

<!-- begin generated: end_to_end -->
stale
<!-- end generated: end_to_end -->

Text.
"""


@pytest.fixture
def project(tmp_path):
    """A README with one block, and records to fill it: (readme, records folder)."""
    (tmp_path / "README.md").write_text(PAGE)
    folder = tmp_path / "records"
    path = folder / "end_to_end.jsonl"
    append_records(path, record("wiki-cs", "ATT"))
    append_records(path, record("cora", "ATT", auroc=[0.1, 0.2]))
    append_records(path, record("cora", "ENT"))
    append_records(path, record("cora", "ATT", auroc=[0.926, 0.946]))
    return tmp_path / "README.md", folder


def test_readme_shows_the_latest_records(project):
    assert not readme.run(*project, check=False)
    text = project[0].read_text()
    shown = [line for line in text.splitlines() if line.startswith(("| OOD", "**"))]
    assert [line.split(" ")[:2] for line in shown] == [
        ["**cora**"],
        ["|", "OODGAT-ENT"],
        ["|", "OODGAT-ATT"],
        ["**wiki-cs**"],
        ["|", "OODGAT-ATT"],
    ]
    cells = [cell.strip() for cell in shown[2].split("|")[1:-1]]
    ours = "93.6 ± 1.0"
    assert [cell.replace("**", "") for cell in cells[1:]] == [
        f"{ours} (92.3)",
        f"{ours} (93.6)",
        ours,
        f"{ours} (26.1)",
        f"{ours} (85.1)",
        ours,
    ]
    assert "over 2 runs" in text
    assert text.startswith("# Title\n\n<!-- begin")
    assert text.endswith("-->\n\nText.\n")


def test_the_summary_has_the_best_baseline_and_ours_beside_the_papers(project):
    path = project[1] / "end_to_end.jsonl"
    better = record("cora", "ENT", auroc=[0.91, 0.93]) | {"method": "gat"}
    worse = record("cora", "ENT", auroc=[0.6, 0.7]) | {"method": "gcn"}
    append_records(path, better, worse)
    page = PAGE.replace("end_to_end", "summary")
    lines = readme.rewrite(page, project[1]).splitlines()
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in lines[4:9]]
    assert rows[0] == ["Data set", "Method", "AUROC", "FPR95", "Accuracy", "Joint F1"]
    assert [row[:3] for row in rows[2:]] == [
        ["cora", "GAT", "92.0 (90.1)"],
        ["cora", "OODGAT-ATT", "93.6 (93.6)"],
        ["wiki-cs", "OODGAT-ATT", "94.0 (88.3)"],
    ]
    told = lines[10]
    # By hand: FPR95 94.0 of the example records, 40.8 of GAT on Cora in the paper.
    assert told.startswith("Furthest from the paper is the FPR95 of ")
    assert "; of OODGAT's figures, the FPR95 of OODGAT" in told


def test_the_largest_difference_is_the_largest():
    """Of the committed records, worked out from the table of the page."""
    page = (readme.ROOT / "docs" / "results" / "main.md").read_text(encoding="utf-8")
    found = {}
    parts = re.findall(r"^\*\*([^*|]+)\*\*\n\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert parts
    for title, table in parts:
        if title.endswith("authors' code"):  # beside the table that is shown first
            continue
        for line in table.splitlines()[2:]:
            cells = [cell.strip(" *") for cell in line.split("|")[1:-1]]
            for column, cell in enumerate(cells[1:]):
                if pair := re.match(r"([\d.]+) ± [\d.]+ \(([\d.]+)\)", cell):
                    ours, paper = map(float, pair.groups())
                    found[cells[0], column, ours, paper] = abs(ours - paper)
    worst = max(found, key=found.get)
    text = (readme.ROOT / "README.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"Furthest from the paper is [^;]*;", text)
    assert f"of {worst[0]} on " in told
    assert f"{worst[2]} here, {worst[3]} there" in told


def test_pages_say_what_made_them(project):
    made = readme.TABLES["end_to_end.made"](project[1])
    assert "python -m experiments.end_to_end" in made
    assert "From 4 records in `experiments/records/end_to_end.jsonl`" in made
    assert re.search(r"; jax [\d.]+; ", made)


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        ((None, None), "of unknown code"),
        (("a1", "a1"), "code a1"),
        (("a1", None, "b2", "b2"), "code b2, 1 of other code, 1 of unknown code"),
        (("b2", None), "code b2, 1 of unknown code"),
    ],
)
def test_pages_say_which_code_made_the_records(codes, told):
    records = [{"code": code} if code else {} for code in codes]
    assert provenance.code(records) == told


def test_every_result_page_says_what_made_it():
    folder = readme.ROOT / "docs" / "results"
    pages = [page for page in folder.glob("*.md") if page.stem != "index"]
    assert len(pages) >= 7
    for page in pages:
        text = page.read_text(encoding="utf-8")
        drawn = set(re.findall(r"begin generated: (\w+) -->", text))
        drawn -= {study.name for study in STUDIES if not study.read}
        told = set(re.findall(r"begin generated: (\w+)\.made -->", text))
        assert drawn <= told, page.name


def test_readme_check_writes_nothing_and_settles(project):
    assert not readme.run(*project, check=True)
    assert project[0].read_text() == PAGE
    readme.run(*project, check=False)
    assert readme.run(*project, check=True)
    assert readme.run(*project, check=False)
    append_records(project[1] / "end_to_end.jsonl", record("cora", "ENT", auroc=[0.5]))
    assert not readme.run(*project, check=True)
    readme.run(*project, check=False)
    assert "over 1 to 2 runs" in project[0].read_text()


def test_readme_command(project, cache):
    page, folder = project
    flags = f"--readme={page}", f"--records_dir={folder}"

    def call(*more):
        return binaries.call("readme", *flags, *more, cache=cache)

    code, _, err = call("--check")
    assert (code, "is stale" in err) == (1, True)
    assert call()[0] == 0
    assert call("--check")[0] == 0
    (folder / "end_to_end.jsonl").unlink()
    code, _, err = call()
    assert code == 2
    assert err.startswith("There are no records at")


def test_the_committed_documents_are_not_stale(cache):
    assert binaries.call("readme", "--check", cache=cache) == (0, "", "")


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (
            PAGE.replace("end_to_end", "unheard"),
            "no generated table 'unheard': choose from findings",
        ),
        (PAGE.replace("<!-- end generated: end_to_end -->\n", ""), "lacks a mark"),
        (PAGE.replace("end generated: end_", "end generated: x"), "lacks a mark"),
        ("<!-- begin generated: end_to_end -->\n" + PAGE, "one too many"),
        (PAGE + "<!-- end generated: end_to_end -->\n", "one too many"),
    ],
)
def test_readme_mistakes_are_named(project, page, message):
    with pytest.raises(InputError, match=message):
        readme.rewrite(page, project[1])


def test_readme_without_blocks_is_left_alone(project):
    assert readme.rewrite("# Title\n", project[1]) == "# Title\n"


def test_readme_figures_are_drawn_from_records(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("![Scores](docs/scores.png) ![ROC](docs/edge_roles-cora-gcn.png)")
    (tmp_path / "docs").mkdir()
    readme.draw_figures(page, RECORDS)
    (drawn,) = (tmp_path / "docs").iterdir()
    assert drawn.name == "edge_roles-cora-gcn.png"
    assert drawn.read_bytes().startswith(b"\x89PNG")


def test_readme_figure_without_records_is_named(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("![ROC](docs/edge_roles-mine-gcn.png)")
    with pytest.raises(
        InputError, match=r"edge_roles for README\.md 'mine-gcn': .* cora-gcn"
    ):
        readme.draw_figures(page, RECORDS)


def test_readme_figures_are_there():
    text = (readme.ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert shown
    assert [path for path in shown if not (readme.ROOT / path).is_file()] == []
