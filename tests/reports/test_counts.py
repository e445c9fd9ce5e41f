"""What the paper says that datasets hold, beside what they hold."""

import dataclasses

import pytest

from gind.datasets import DATASETS
from gind.datasets.table import measured
from gind.reports import PaperTable, load_paper
from gind.reports.counts import counts_table


def printed(name: str) -> PaperTable:
    return next(table for table in load_paper().tables if table.name == name)


@pytest.mark.parametrize("name", ["statistics-nodes", "statistics-graphs"])
def test_every_dataset_has_a_line_with_what_its_entry_counts(name: str) -> None:
    table = printed(name)
    lines = {line.split("|")[1].strip(): line for line in counts_table(table) if line.startswith("| ")}
    assert set(lines) - {"dataset", "---"} == {*table.datasets, *table.beside.values()}
    for dataset in table.datasets:
        counts = DATASETS[dataset].counts
        if name == "statistics-nodes":
            numbers = (
                counts.nodes,
                counts.edges,
                measured()[dataset].undirected_edges,
                counts.features,
                counts.classes,
            )
            here = [f"{number:,}" for number in numbers]
        else:
            here = [f"{counts.graphs:,}", f"{counts.nodes / counts.graphs:.1f}", str(counts.classes)]
        cells = [cell.strip() for cell in lines[dataset].split("|")]
        assert all(number in cells for number in here), dataset


def test_what_differs_is_said() -> None:
    nodes, graphs = counts_table(printed("statistics-nodes")), counts_table(printed("statistics-graphs"))
    (line,) = [line for line in nodes if line.startswith("- ")]
    assert line == "- cornell-pre2022: Nodes is 1,283 in the paper and 183 in the files."
    (line,) = [line for line in graphs if line.startswith("- ")]
    assert line == "- ptc_mr: Avg # nodes is 25.5 in the paper and 14.3 in the files."
    texas = printed("statistics-nodes")
    rows = {"Classes": texas.rows["Classes"]}
    assert "Where they differ" not in "\n".join(counts_table(dataclasses.replace(texas, rows=rows)))
