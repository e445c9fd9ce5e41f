"""Statistics: a graph counted by hand, and the measured tables of the README of the data."""

import math
import pickle

import pytest
import torch
from real_data import GENERATED, ROOT, STORED, counted, need, real
from torch_geometric.data import Data

from gind.datasets import DATASETS, Dataset, statistics
from gind.datasets.table import measured

# self-loops, undirected edges without them, with them, duplicate feature rows, homophily
NODES = {
    "cora": (0, 5278, 5278, 16, 0.810),
    "citeseer": (0, 4552, 4552, 24, 0.736),
    "pubmed": (0, 44324, 44324, 4, 0.802),
    "cornell": (3, 277, 280, 0, 0.123),
    "cornell-pre2022": (3, 277, 280, 0, 0.296),
    "texas": (16, 279, 295, 0, 0.061),
    "wisconsin": (16, 450, 466, 3, 0.178),
    "chameleon": (50, 31371, 31421, 327, 0.230),
    "squirrel": (140, 198353, 198493, 221, 0.222),
    "actor": (93, 26659, 26752, 1586, 0.217),
    "minesweeper": (0, 39402, 39402, 9993, 0.683),
    "tolokers": (0, 519000, 519000, 5013, 0.595),
    "chameleon-filtered": (0, 8854, 8854, 100, 0.236),
    "squirrel-filtered": (0, 46998, 46998, 138, 0.207),
    "chameleon-filtered-directed": (50, 8854, 8904, 100, 0.236),
    "squirrel-filtered-directed": (140, 46998, 47138, 138, 0.207),
    "computers": (0, 245861, 245861, None, 0.777),
    "photo": (0, 119081, 119081, None, 0.827),
    "cs": (0, 81894, 81894, None, 0.808),
    "physics": (0, 247962, 247962, None, 0.931),
    "reed98": (0, 18812, 18812, None, 0.522),
    "amherst41": (0, 90954, 90954, None, 0.531),
    "johnshopkins55": (0, 186586, 186586, None, 0.549),
    "cornell5": (0, 790777, 790777, None, 0.546),
}

CLASSES = {
    "cora": (351, 217, 418, 818, 426, 298, 180),
    "citeseer": (264, 590, 668, 701, 596, 508),
    "pubmed": (4103, 7739, 7875),
    "cornell": (38, 16, 30, 82, 17),
    "texas": (33, 1, 18, 101, 30),
    "wisconsin": (10, 70, 118, 32, 21),
    "chameleon": (456, 460, 453, 521, 387),
    "squirrel": (1042, 1040, 1039, 1040, 1040),
    "actor": (853, 1337, 1630, 1815, 1965),
    "tolokers": (9192, 2566),
    "squirrel-filtered": (756, 516, 397, 321, 233),
    "photo": (369, 1686, 703, 915, 882, 823, 1941, 331),
    "physics": (5750, 5045, 17426, 2753, 3519),
    "cornell5": (8135, 8687),
    "mutag": (63, 125),
    "ptc_mr": (192, 152),
    "ptc": (192, 152),
    "cox2": (365, 102),
    "proteins": (663, 450),
    "nci1": (2053, 2057),
}

# average nodes, smallest, largest, average undirected edges, graphs with an isolated node
GRAPHS = {
    "mutag": (17.93, 10, 28, 19.79, 0),
    "ptc_mr": (14.29, 2, 64, 14.69, 0),
    "cox2": (41.22, 32, 56, 43.45, 0),
    "proteins": (39.06, 4, 620, 72.82, 5),
    "nci1": (29.87, 3, 111, 32.30, 399),
    "ptc": (25.56, 2, 109, 25.96, 0),
}


def small() -> Dataset:
    """0 ⇄ 1, 0 → 2 twice, 3 → 2, a loop at 2, 4 alone, 5 unlabelled → 0; 1 and 4 have equal features."""
    edge_index = torch.tensor([[0, 1, 0, 0, 3, 2, 5], [1, 0, 2, 2, 2, 2, 0]])
    x = torch.tensor([[1.0, 0], [0, 0], [2, 0], [3, 0], [-0.0, 0], [4, 0]])
    y = torch.tensor([0, 0, 1, 1, 1, -1])
    return Dataset("small", "node", "accuracy", (Data(x=x, edge_index=edge_index, y=y),), ("a", "b"), ())


def test_a_small_graph_is_counted_by_hand() -> None:
    counts = statistics(small())
    assert (counts.graphs, counts.nodes, counts.smallest, counts.largest) == (1, 6, 6, 6)
    assert (counts.edges, counts.self_loops) == (7, 1)
    assert (counts.undirected_edges, counts.undirected_edges_and_loops) == (4, 5)
    assert (counts.isolated_nodes, counts.graphs_with_isolated_nodes) == (1, 1)
    assert (counts.features, counts.classes, counts.class_sizes, counts.unlabelled) == (2, 2, (2, 3), 1)
    assert counts.homophily == pytest.approx(2 / 3)  # 0-1 and 2-3 are alike, 0-2 is not, 0-5 does not count
    assert (counts.duplicate_features, counts.duplicated_nodes) == (1, 0)


def test_the_layout_of_features_does_not_matter() -> None:
    dense, sparse = small(), small()
    sparse.graphs[0].x = sparse.graphs[0].x.to_sparse_csr()
    assert statistics(dense) == statistics(sparse)


def test_duplicated_nodes_share_label_and_both_neighbor_sets() -> None:
    # 1, 2, 3 all hang on 0; 3 has another label, 4 the opposite direction
    edge_index = torch.tensor([[1, 2, 2, 3, 0], [0, 0, 0, 0, 4]])
    data = Data(x=torch.eye(5), edge_index=edge_index, y=torch.tensor([0, 1, 1, 0, 1]))
    assert statistics(Dataset("", "node", "accuracy", (data,), ("0", "1"), ())).duplicated_nodes == 2


def test_homophily_needs_an_edge() -> None:
    data = Data(x=torch.eye(2), edge_index=torch.zeros(2, 0, dtype=torch.long), y=torch.tensor([0, 1]))
    counts = statistics(Dataset("", "node", "accuracy", (data,), ("0", "1"), ()))
    assert counts.homophily is None
    assert (counts.isolated_nodes, counts.undirected_edges) == (2, 0)


@pytest.mark.parametrize("name", STORED)
def test_counts_are_those_of_the_table(name: str) -> None:
    counts, expected = counted(name), DATASETS[name].counts
    assert (counts.nodes, counts.edges, counts.features, counts.classes, counts.graphs) == (
        expected.nodes,
        expected.edges,
        expected.features,
        expected.classes,
        expected.graphs,
    )
    unlabelled = {"reed98": 97, "amherst41": 203, "johnshopkins55": 418, "cornell5": 1838}
    assert counts.unlabelled == unlabelled.get(name, 0)
    assert counts.class_sizes == CLASSES.get(name, counts.class_sizes)


@pytest.mark.parametrize("name", NODES)
def test_edges_homophily_and_duplicates_are_those_measured(name: str) -> None:
    counts, (loops, pairs, pairs_and_loops, duplicates, homophily) = counted(name), NODES[name]
    assert (counts.self_loops, counts.undirected_edges) == (loops, pairs)
    assert counts.undirected_edges_and_loops == pairs_and_loops
    assert counts.homophily == pytest.approx(homophily, abs=5.01e-4)
    assert duplicates is None or counts.duplicate_features == duplicates


@pytest.mark.parametrize("name", GRAPHS)
def test_averages_of_graphs_are_those_measured(name: str) -> None:
    counts, (nodes, smallest, largest, edges, isolated) = counted(name), GRAPHS[name]
    # two digits: the README cuts some and rounds others
    assert math.isclose(counts.nodes / counts.graphs, nodes, abs_tol=0.01)
    assert math.isclose(counts.undirected_edges / counts.graphs, edges, abs_tol=0.01)
    assert (counts.smallest, counts.largest, counts.graphs_with_isolated_nodes) == (smallest, largest, isolated)
    assert counts.homophily is counts.duplicate_features is counts.duplicated_nodes is None


def test_defects_name_the_true_numbers() -> None:
    for name, unused in (("cox2", 27), ("ptc", 2)):
        used = torch.stack([data.x.sum(0) for data in real(name).graphs]).sum(0)
        assert int((used == 0).sum()) == unused
    assert counted("citeseer").isolated_nodes == 48
    for name, duplicated in (("chameleon", 1249), ("squirrel", 2519)):
        assert counted(name).duplicated_nodes == duplicated
        assert DATASETS[name].defects[0].startswith(f"{duplicated} of {counted(name).nodes} nodes share")


@pytest.mark.parametrize("name", [*STORED, *GENERATED])
def test_the_listing_shows_what_is_measured(name: str) -> None:
    counts, listed = counted(name), measured()[name]
    assert (listed.undirected_edges, listed.duplicates) == (counts.undirected_edges, counts.duplicated_nodes)
    assert listed.undirected_edges_and_loops == counts.undirected_edges_and_loops
    assert listed.homophily == (None if counts.homophily is None else pytest.approx(counts.homophily, abs=5.01e-5))


@pytest.mark.parametrize("name", STORED)
def test_entries_of_adjacency_lists_are_those_of_the_files(name: str) -> None:
    need(name)
    entries = None
    for file in DATASETS[name].files:
        if DATASETS[name].source == "planetoid" and file.path.endswith(".graph"):
            lists = pickle.loads((ROOT / file.path).read_bytes(), encoding="latin1")
            entries = sum(map(len, lists.values()))
    assert measured()[name].listed_edges == entries
