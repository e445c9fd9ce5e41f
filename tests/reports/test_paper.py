"""The paper's numbers: every digit is that of the LaTeX, and every name leads to a dataset or model of ours."""

import os
import pathlib
import re

import pytest

from gind.datasets import DATASETS
from gind.experiments import MODELS
from gind.reports import Paper, PaperTable, load_paper

BESIDE = pathlib.Path(__file__).parents[3] / "shared" / "paper" / "gind-icml2022.tex"
SOURCE = pathlib.Path(os.environ.get("GIND_PAPER") or BESIDE)
LABELS = list(dict.fromkeys(table.label for table in load_paper().tables))


def latex() -> str:
    if not SOURCE.exists():
        pytest.skip(f"the source of the paper is not at {SOURCE} (set GIND_PAPER to the file)")
    return SOURCE.read_text(encoding="utf-8")


def printed(label: str) -> list[list[str]]:
    """The lines of a table in LaTeX, header first: cells as plain text, without the column that says the type."""
    start = latex().index(rf"\label{{{label}}}")
    body = latex()[start : latex().index(r"\end{tabular}", start)].split(r"\toprule")[1]
    lines = []
    for line in re.split(r"\\\\", re.sub(r"\\(mid|bottom)rule|\\c(mid|)(rule|line)\{[^}]*\}", "", body)):
        cells = [plain(cell) for cell in line.split("&")]
        if len(cells) > 1:
            lines.append(cells[1:] if cells[0] in ("Type", "Explicit", "Implicit", "") else cells)
    return lines


def plain(cell: str) -> str:
    """59.19$\\pm$3.51 → 59.19 ± 3.51"""
    cell = cell.replace(r"$\pm$", " ± ").replace("(ours)", "").replace(r"\#", "#")
    cell = re.sub(r"\$\\cR_\{\\operatorname\{(\w+)\}\}\$", r"\1", cell)
    cell = re.sub(r"\\textbf\{([^}]*)\}", r"\1", cell)
    return re.sub(r"(?<=\d) ?s$", "", cell.strip())


@pytest.mark.parametrize("label", LABELS)
def test_every_cell_is_that_of_the_paper(label: str) -> None:
    header, *lines = printed(label)
    tables = [table for table in load_paper().tables if table.label == label]
    ours = [[row, *values] for table in tables for row, values in texts(table).items()]
    assert all(list(table.columns) == header[1:] for table in tables)
    assert ours == lines


def texts(table: PaperTable) -> dict[str, list[str]]:
    """Rows as printed, with the * of a row that was run by the authors."""
    return {
        row + "*" * any(value is not None and value.rerun for value in values): [
            "-" if value is None else value.text for value in values
        ]
        for row, values in table.rows.items()
    }


def test_no_table_is_left_out() -> None:
    assert set(re.findall(r"\\label\{(tab:\w+)\}", latex())) == set(LABELS)


def test_names_lead_to_ours() -> None:
    paper = load_paper()
    assert set(paper.systems.values()) == set(MODELS) - {"mlp", "gind-published", "sgc"}
    for table in paper.tables:
        assert len(table.datasets) in (0, len(table.columns))
        assert {*table.datasets, *table.beside.values()} <= set(DATASETS)
        assert set(table.beside) <= set(table.datasets)
    assert [table.name for table in paper.compared()] == ["heterophilic", "homophilic", "ppi", "graphs"]


def test_values_are_found_by_our_names() -> None:
    paper: Paper = load_paper()
    tables = {table.name: table for table in paper.tables}
    value = tables["graphs"].value("GIND", "ptc_mr")
    assert value is not None
    assert (value.mean, value.std, str(value)) == (66.9, 6.6, "66.9 ± 6.6")
    starred = tables["homophilic"].value("IGNN", "cora")
    assert str(starred) == "85.80*"
    assert tables["graphs"].value("GIN", "cox2") is None
    assert tables["graphs"].value("GCN", "mutag") is None
    assert tables["heterophilic"].value("GIND", "cornell") is None
    assert paper.models(tables["ppi"])["sage"] == "GraphSAGE"
