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
                measured()[dataset].undirected_edges_and_loops,
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
    first, *edges = [line for line in nodes if line.startswith("- ")]
    assert first == "- cornell-pre2022: Nodes is 1,283 in the paper and 183 in the files."
    lists = "The paper's number is half of the {} entries of their adjacency lists, in which some links are repeated."
    assert edges == [
        f"- cora: Edges is 5429 in the paper and 5,278 pairs and loops in the files. {lists.format('10,858')}",
        f"- citeseer: Edges is 4732 in the paper and 4,552 pairs and loops in the files. {lists.format('9,464')}",
        f"- pubmed: Edges is 44338 in the paper and 44,324 pairs and loops in the files. {lists.format('88,676')}",
    ]
    (line,) = [line for line in graphs if line.startswith("- ")]
    assert line == "- ptc_mr: Avg # nodes is 25.5 in the paper and 14.3 in the files."
    texas = printed("statistics-nodes")
    rows = {"Classes": texas.rows["Classes"]}
    assert "Where they differ" not in "\n".join(counts_table(dataclasses.replace(texas, rows=rows)))


def test_edges_are_pairs_and_loops_where_the_paper_counts_them() -> None:
    nodes = printed("statistics-nodes")
    same = ("cornell-pre2022", "texas", "wisconsin", "chameleon", "squirrel")
    exact = f"The paper's edges are exactly pairs and loops on 5 of 8 datasets: {', '.join(same)}."
    assert exact in counts_table(nodes)
    for dataset in same:
        quoted = nodes.value("Edges", dataset)
        assert quoted is not None
        assert quoted.mean == measured()[dataset].undirected_edges_and_loops
    assert not any("pairs" in line for line in counts_table(printed("statistics-graphs")))


def test_lists_of_another_length_explain_nothing() -> None:
    """Of CiteSeer's number on Cora it is said that it differs, and no more."""
    nodes = printed("statistics-nodes")
    edges = list(nodes.rows["Edges"])
    edges[nodes.datasets.index("cora")] = nodes.value("Edges", "citeseer")
    other = dataclasses.replace(nodes, rows={"Edges": tuple(edges)})
    assert "- cora: Edges is 4732 in the paper and 5,278 pairs and loops in the files." in counts_table(other)
