"""Tables as text, Markdown, LaTeX and HTML, and the paper's figures beside ours."""

import math

import pytest

from experiments.support import paper_results
from oodgat_jax import tables
from oodgat_jax.tables import Cell, Table
from oodgat_jax.types import InputError


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


def test_html():
    assert tables.as_html(TABLE) == (
        "<table>\n<thead>\n"
        '<tr><th scope="col">name</th><th scope="col">A|B</th>'
        '<th scope="col">FPR_95</th></tr>\n'
        "</thead>\n<tbody>\n"
        '<tr><th scope="row">x &amp; y</th><td>91.0</td>'
        "<td><strong>5.0 ± 1.0</strong></td></tr>\n"
        '<tr><th scope="row">z</th><td><strong>92.0</strong></td>'
        "<td>7.0 ± 1.0</td></tr>\n"
        '<tr><th scope="row">100 %</th><td><strong>92.0</strong></td><td>-</td></tr>\n'
        "</tbody>\n</table>\n"
    )


def test_html_escapes_names_everywhere():
    evil = "<script>alert('&\"')</script>"
    text = tables.as_html(Table((evil, evil), [(evil, Cell(evil, 1.0))]))
    assert text.count("&lt;script&gt;alert(&#x27;&amp;&quot;&#x27;)") == 4
    assert "<script" not in text


def test_html_sets_the_papers_figures_apart():
    rows = [
        ("a", tables.result([0.9], 91.0), "x"),
        ("b", tables.result([0.8]), tables.result([0.7])),
    ]
    lines = tables.as_html(Table(("", "", ""), rows, ("", "max", ""))).splitlines()
    assert lines[5:7] == [
        '<tr><th scope="row" class="text">a</th><td><strong>90.0 ± 0.0 '
        '<span class="beside">(91.0)</span></strong></td><td>x</td></tr>',
        '<tr><th scope="row" class="text">b</th><td>80.0 ± 0.0 '
        '<span class="beside"></span></td><td>70.0 ± 0.0</td></tr>',
    ]


def test_html_tells_text_from_numbers():
    rows = [("a", "GAT", Cell("1.0", 1.0), "-"), ("b", "MLP", "none", "-0.5")]
    first, second = tables.as_html(Table(("", "", "", ""), rows)).splitlines()[5:7]
    assert '<td class="text">GAT</td><td>1.0</td><td>-</td>' in first
    assert '<td class="text">MLP</td><td>none</td><td>-0.5</td>' in second


def test_html_names_columns_of_sentences():
    rows = [("a", "1" + tables.LONG * "x"), ("b", "1")]
    assert '<td class="text long">1</td>' in tables.as_html(Table(("", ""), rows))


def test_html_groups_rows_of_one_name():
    rows = [("cora", "1"), ("cora", "2"), ("digits", "1")]
    assert tables.as_html(Table(("a", "b"), rows)).count("<tbody>") == 2
    assert tables.as_html(Table(("a", "b"), rows[1:])).count("<tbody>") == 1


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
    assert paper_results.figure(*where) == figure


def test_published_names_its_tables():
    with pytest.raises(InputError, match="end_to_end, post_hoc"):
        paper_results.figure("unheard", "gcn", "cora", "auroc")
