"""Records, tables, the paper's figures and the generated parts of the README."""

import json
import math
import subprocess
import sys
from collections import Counter

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import published, readme, results, tables
from experiments.tables import Cell, Table
from oodgat_jax.types import InputError


def record(dataset="cora", detector="ATT", auroc=(0.93, 0.95), **more):
    runs = len(auroc)
    scores = {name: list(auroc) for name in tables.COLUMNS}
    return {
        "dataset": dataset,
        "method": "oodgat",
        "detector": detector,
        "metrics": scores,
        "split_seeds": list(range(runs)),
        "model_seeds": [0] * runs,
        "hyperparameters": {"lr": 0.01},
        "steps_run": [100] * runs,
        "split_digest": "abc",
        "versions": results.versions(),
        "seconds": 1.5,
        **more,
    }


# Records


def test_records_come_back_in_order(tmp_path):
    path = tmp_path / "deep" / "folder" / "a.jsonl"
    written = [record(note=i) for i in range(3)]
    for entry in written:
        results.append(path, entry)
    assert results.read(path) == written
    assert path.read_bytes().endswith(b"}\n")


def test_arrays_are_stored_as_lists(tmp_path):
    path = tmp_path / "a.jsonl"
    entry = record(metrics={"auroc": jnp.array([0.5, 0.25])})
    results.append(
        path, entry | {"steps_run": np.array([1, 2]), "seconds": np.float32(2)}
    )
    (got,) = results.read(path)
    assert got["metrics"] == {"auroc": [0.5, 0.25]}
    assert (got["steps_run"], got["seconds"]) == ([1, 2], 2.0)


def test_metrics_that_are_not_finite_are_null_in_the_file(tmp_path):
    path = tmp_path / "a.jsonl"
    results.append(path, record(metrics={"auroc": [math.nan, 0.5]}))
    assert json.loads(path.read_text())["metrics"]["auroc"] == [None, 0.5]
    values = results.read(path)[0]["metrics"]["auroc"]
    assert math.isnan(values[0])
    assert values[1] == 0.5


@pytest.mark.parametrize("key", results.KEYS)
def test_a_record_without_a_key_is_refused(tmp_path, key):
    entry = record()
    del entry[key]
    with pytest.raises(InputError, match=key):
        results.append(tmp_path / "a.jsonl", entry)
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"split_seeds": [1]},
        {"steps_run": [1, 2, 3]},
        {"model_seeds": 7},
        {"metrics": {}},
        {"metrics": {"auroc": [0.5]}},
        {"metrics": {"auroc": 0.5}},
        {"hyperparameters": {"lr": math.inf}},
        {"hyperparameters": {"lr": {1}}},
    ],
    ids=str,
)
def test_a_malformed_record_is_refused(tmp_path, wrong):
    with pytest.raises(InputError):
        results.append(tmp_path / "a.jsonl", record(**wrong))
    assert not (tmp_path / "a.jsonl").exists()


def test_a_damaged_tail_is_named_and_left_alone(tmp_path):
    path = tmp_path / "a.jsonl"
    results.append(path, record())
    damaged = path.read_bytes() + b'{"dataset": "co'
    path.write_bytes(damaged)
    for act in (lambda: results.append(path, record()), lambda: results.read(path)):
        with pytest.raises(InputError, match=r"a\.jsonl, line 2"):
            act()
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("line", ["", "{", "[]", "null", '{"dataset": "cora"}', "\xff"])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "a.jsonl"
    results.append(path, record())
    good = path.read_text()
    path.write_bytes((good + line + "\n" + good).encode("latin-1"))
    with pytest.raises(InputError, match=r"a\.jsonl, line 2"):
        results.read(path)


def test_no_file_and_an_empty_file(tmp_path):
    with pytest.raises(InputError, match=r"no records at .*a\.jsonl"):
        results.read(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").touch()
    assert results.read(tmp_path / "a.jsonl") == []


def test_latest_is_the_last_that_matches():
    entries = [record(note=0), record(note=1), record(dataset="wiki-cs", note=2)]
    assert results.latest(entries, dataset="cora", detector="ATT")["note"] == 1
    assert results.latest(entries)["note"] == 2
    assert results.latest(entries, dataset="cora", detector="ENT") is None
    assert results.latest(entries, unheard="of") is None


def test_versions_name_what_decides_a_result():
    found = results.versions()
    assert list(found) == ["python", *results.PACKAGES]
    assert found["numpy"] == np.__version__


WRITER = """
import json, sys
from experiments import results
path, writer = sys.argv[1:]
print("ready", flush=True)
entry = json.loads(sys.stdin.read())
for number in range(1000):
    each = [entry | {"writer": writer, "number": 2 * number + k} for k in range(2)]
    results.append(path, *each)
"""


def test_eight_writers_lose_and_mix_nothing(tmp_path):
    """Each 1,000 appends of two records."""
    path = tmp_path / "a.jsonl"
    entry = json.dumps(record(filler="x" * 1_000))
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in range(8)
    ]
    assert [process.stdout.readline() for process in writers] == ["ready\n"] * 8
    for process in writers:  # all are past their imports, so that they do compete
        process.stdin.write(entry)
        process.stdin.close()
    assert [process.wait() for process in writers] == [0] * 8
    for process in writers:
        process.stdout.close()
    entries = results.read(path)
    found = Counter((entry["writer"], entry["number"]) for entry in entries)
    assert found == Counter((str(w), n) for w in range(8) for n in range(2000))
    # Records of one append stand together.
    pairs = zip(entries[::2], entries[1::2], strict=True)
    assert all(
        (a["writer"], a["number"] + 1) == (b["writer"], b["number"]) for a, b in pairs
    )


FULL = """
import json, resource, signal, sys
from experiments import results
from oodgat_jax.types import InputError
path = sys.argv[1]
entry = json.loads(sys.stdin.read())
results.append(path, entry)
size = len(open(path, "rb").read())
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]),) * 2)
try:
    results.append(path, entry, entry)
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize("room", [0, 100])
def test_a_full_disk_leaves_the_records_as_they_were(tmp_path, room):
    path = tmp_path / "a.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(room)],
        input=json.dumps(record()),
        capture_output=True,
        text=True,
    )
    assert "could not take the new records" in done.stdout, done.stderr
    assert len(results.read(path)) == 1


# Tables


def test_summary_is_mean_and_population_deviation():
    assert tables.summary([0.5]) == (0.5, 0.0)
    assert tables.summary([0.0, 1.0]) == (0.5, 0.5)
    with pytest.raises(InputError):
        tables.summary([])


def test_result_is_percent_beside_the_paper():
    assert tables.result([0.926, 0.946]).text == "93.6 ± 1.0"
    assert tables.result([0.926, 0.946], 93.6).text == "93.6 ± 1.0 (93.6)"


TABLE = Table(
    ("name", "A|B", "FPR_95"),
    [
        ("x & y", Cell("91.0", 91.0), Cell("5.0 ± 1.0", 5.0)),
        ("z", Cell("92.0", 92.0), Cell("7.0 ± 1.0", 7.0)),
        ("100 %", Cell("92.0", 92.01), "-"),
    ],
    ("", "max", "min"),
)


def test_text():
    assert tables.as_text(TABLE) == (
        "name     A|B      FPR_95\n"
        "------------------------\n"
        "x & y   91.0  *5.0 ± 1.0\n"
        "z      *92.0   7.0 ± 1.0\n"
        "100 %  *92.0           -\n"
    )


def test_markdown():
    assert tables.as_markdown(TABLE) == (
        "| name  |     A\\|B |        FPR_95 |\n"
        "| ----- | -------: | ------------: |\n"
        "| x & y |     91.0 | **5.0 ± 1.0** |\n"
        "| z     | **92.0** |     7.0 ± 1.0 |\n"
        "| 100 % | **92.0** |             - |\n"
    )


def test_latex():
    lines = tables.as_latex(TABLE).splitlines()
    squeezed = [" ".join(line.split()) for line in lines]
    assert squeezed == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"name & A|B & FPR\_95 \\",
        r"\midrule",
        r"x \& y & 91.0 & \textbf{5.0 $\pm$ 1.0} \\",
        r"z & \textbf{92.0} & 7.0 $\pm$ 1.0 \\",
        r"100 \% & \textbf{92.0} & - \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_latex_escapes_are_not_escaped_again():
    table = Table(("a",), [("\\ ~ ^ { } $ #",)])
    row = tables.as_latex(table).splitlines()[4]
    assert row == (
        r"\textbackslash{} \textasciitilde{} \textasciicircum{} \{ \} \$ \# \\"
    )


def test_one_value_is_not_the_best_of_anything():
    table = Table(("a", "b"), [("x", Cell("1", 1.0)), ("y", Cell("nan", math.nan))])
    assert "*" not in tables.as_text(table._replace(best=("", "max")))


@pytest.mark.parametrize(
    "table",
    [
        Table(("a", "b"), [("x",)]),
        Table(("a",), [("x",)], ("max", "min")),
        Table(("a",), [("x",)], ("highest",)),
    ],
)
@pytest.mark.parametrize("render", tables.FORMATS.values(), ids=list(tables.FORMATS))
def test_misshapen_tables_are_refused(table, render):
    with pytest.raises(InputError):
        render(table)


# The paper's figures


@pytest.mark.parametrize(
    ("where", "figure"),
    [
        (("end_to_end", "oodgat-att", "cora", "auroc"), 93.6),
        (("end_to_end", "oodgat-ent", "wiki-cs", "weighted_f1"), 76.6),
        (("end_to_end", "gcn", "cora", "fpr95_paper"), 46.0),
        (("post_hoc", "mahalanobis", "amazon-photo", "auroc"), 77.1),
        (("ablation", "ce+con", "amazon-computers", "accuracy"), 86.3),
        (("gkde", "oodgat", "pubmed", "aupr"), 76.0),
        (("edge_removal", "0.5", "cora", "accuracy"), 92.5),
        (("end_to_end", "gcn", "cora", "aupr"), None),
        (("end_to_end", "gcn", "pubmed", "auroc"), None),
        (("end_to_end", "unheard", "cora", "auroc"), None),
    ],
    ids=str,
)
def test_published(where, figure):
    assert published.published(*where) == figure


def test_published_names_its_tables():
    with pytest.raises(InputError, match="end_to_end, post_hoc"):
        published.published("unheard", "gcn", "cora", "auroc")


# README

PAGE = """# Title

<!-- begin generated: oodgat -->
stale
<!-- end generated: oodgat -->

Text.
"""


@pytest.fixture
def project(tmp_path):
    """A README with one block, and records to fill it: (readme, records folder)."""
    (tmp_path / "README.md").write_text(PAGE)
    folder = tmp_path / "records"
    path = folder / "oodgat.jsonl"
    results.append(path, record("wiki-cs", "ATT"))
    results.append(path, record("cora", "ATT", auroc=[0.1, 0.2]))
    results.append(path, record("cora", "ENT"))
    results.append(path, record("cora", "ATT", auroc=[0.926, 0.946]))
    results.append(path, record("mine", "ATT", method="another"))
    return tmp_path / "README.md", folder


def test_readme_shows_the_latest_records(project):
    assert not readme.run(*project, check=False)
    text = project[0].read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert [row.split()[1::2][:2] for row in rows] == [
        ["cora", "OODGAT-ENT"],
        ["cora", "OODGAT-ATT"],
        ["wiki-cs", "OODGAT-ATT"],
    ]
    cells = [cell.strip() for cell in rows[1].split("|")[1:-1]]
    ours = "93.6 ± 1.0"
    assert cells[2:] == [
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


def test_readme_check_writes_nothing_and_settles(project):
    assert not readme.run(*project, check=True)
    assert project[0].read_text() == PAGE
    readme.run(*project, check=False)
    assert readme.run(*project, check=True)
    assert readme.run(*project, check=False)
    results.append(project[1] / "oodgat.jsonl", record("cora", "ENT", auroc=[0.5]))
    assert not readme.run(*project, check=True)
    readme.run(*project, check=False)
    assert "over 1 to 2 runs" in project[0].read_text()


def test_readme_command(project):
    page, folder = project
    command = [sys.executable, "-m", "experiments.readme"]
    command += [f"--readme={page}", f"--records_dir={folder}"]

    def call(*more):
        return subprocess.run([*command, *more], capture_output=True, text=True)

    stale = call("--check")
    assert (stale.returncode, "is stale" in stale.stderr) == (1, True)
    assert call().returncode == 0
    assert call("--check").returncode == 0
    (folder / "oodgat.jsonl").unlink()
    lost = call()
    assert lost.returncode == 2
    assert lost.stderr.startswith("There are no records at")


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (PAGE.replace("oodgat", "unheard"), "choose from benchmark"),
        (PAGE.replace("<!-- end generated: oodgat -->\n", ""), "lacks a mark"),
        (PAGE.replace("end generated: oodgat", "end generated: other"), "lacks a mark"),
        ("<!-- begin generated: oodgat -->\n" + PAGE, "one too many"),
        (PAGE + "<!-- end generated: oodgat -->\n", "one too many"),
    ],
)
def test_readme_mistakes_are_named(project, page, message):
    with pytest.raises(InputError, match=message):
        readme.rewrite(page, project[1])


def test_readme_without_blocks_is_left_alone(project):
    assert readme.rewrite("# Title\n", project[1]) == "# Title\n"
