"""The generated parts of the README."""

import re

import pytest
from support import binaries
from support.example_records import record

from experiments import readme
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


def test_the_summary_has_means_beside_the_papers(project):
    page = PAGE.replace("end_to_end", "summary")
    lines = readme.rewrite(page, project[1]).splitlines()[4:8]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert rows[0] == ["AUROC", "cora", "wiki-cs"]
    assert rows[2] == ["OODGAT-ENT", "**94.0 (92.9)**", ""]
    assert rows[3] == ["OODGAT-ATT", "93.6 (93.6)", "94.0 (88.3)"]


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
