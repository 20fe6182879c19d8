"""Every study: registered once, with a command that exists, shown from its records."""

import importlib
import pathlib
import shlex

import pytest

import experiments
from experiments.support import study
from experiments.support.studies import STUDIES
from experiments.support.study import Study
from experiments.support.study_flags import RECORDS
from oodgat_jax.cli import shared_flags
from oodgat_jax.tables import Table
from oodgat_jax.types import InputError

every_study = pytest.mark.parametrize("one", STUDIES, ids=lambda study: study.name)


def modules():
    (folder,) = experiments.__path__
    names = [p.stem for p in pathlib.Path(folder).glob("*.py") if p.stem[0] != "_"]
    return [importlib.import_module(f"experiments.{name}") for name in names]


def test_every_study_of_a_binary_is_listed_once():
    found = [v for m in modules() for v in vars(m).values() if isinstance(v, Study)]
    assert sorted(s.name for s in found) == sorted(s.name for s in STUDIES)


def test_all_committed_records_are_a_studys():
    files = {f"{study.name}.jsonl" for study in STUDIES if study.read}
    assert {path.name for path in RECORDS.glob("*.jsonl")} == files


@every_study
def test_commands_have_flags_that_exist(one):
    lines = one.command.replace("\\\n", " ").splitlines()
    calls = [shlex.split(line) for line in lines if line.startswith("python -m")]
    assert calls
    for _, _, name, *arguments in calls:
        module = importlib.import_module(name)
        known = {*shared_flags.SHARED, *getattr(module, "OWN", ())}
        assert {a.removeprefix("--").split("=")[0] for a in arguments} <= known


@every_study
def test_a_study_without_records_names_the_file_and_its_binary(one, tmp_path):
    (tmp_path / one.file).touch()
    with pytest.raises(
        InputError, match=rf"{one.file}: run python -m experiments\.\w+"
    ):
        study.read(one, tmp_path)


@pytest.fixture
def titled():
    table = Table(["A"], [["1"]])
    return Study(
        "mine",
        "Mine",
        "About.",
        "python -m experiments.mine",
        tables=lambda records: [(r["title"], table) for r in records],
        note=lambda records: "Note.",
    )


def test_titles_are_shown_where_a_table_has_one(titled):
    records = [{"title": "cora"}, {"title": ""}]
    assert study.text(titled, records) == "cora\n\nA\n-\n1\n\nA\n-\n1\n\nNote."
    assert study.markdown(titled, records).startswith("**cora**\n\n| A |")
    assert study.markdown(titled, records).endswith("| 1 |\n\nNote.\n")
    assert study.latex(titled, records).startswith("% cora\n\\begin")
    assert study.latex(titled, records).count("%") == 1


def test_documents_may_have_other_tables(titled):
    other = titled._replace(page=lambda records: [("", Table(["B"], [["2"]]))])
    assert "| B |" in study.markdown(other, [{"title": ""}])
    assert "B" not in study.text(other, [{"title": ""}])
