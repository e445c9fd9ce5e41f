"""The same graph through every format is the same dataset; generated graphs, with networkx and numpy as oracles."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from file_cases import PARTS, WRITERS, Case, cases, write_graphml
from hypothesis import HealthCheck, given, settings
from torch import Tensor
from torch.testing import assert_close

from gind.datasets import DataError, Dataset
from gind.datasets.files import is_graph_path, read_graph
from gind.graph import Graph


def dense(x: Tensor) -> Tensor:
    return x if x.layout == torch.strided else x.to_dense()


def edges_of(dataset: Dataset) -> list[tuple[int, int, float]]:
    data = dataset.graphs[0]
    return list(zip(*data.edge_index.tolist(), data.edge_weight.tolist(), strict=True))


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def test_every_format_gives_the_graph_that_was_written(write: Callable[[Path, Case], None], case: Case) -> None:
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), case)
        dataset = read_graph(name)
        # networkx declares the attributes in an order of its own
        names = dataset.feature_names or [f"f{index}" for index in range(case.x.shape[1])]
    data = dataset.graphs[0]
    x = dense(data.x)
    assert_close(
        x[:, [names.index(f"f{index}") for index in range(len(names))]], torch.from_numpy(case.x), rtol=0, atol=0
    )
    assert x.dtype == torch.float32
    assert (data.x.layout == torch.sparse_csr) == (np.count_nonzero(case.x) < 0.2 * case.x.size)
    assert dataset.classes == tuple(case.classes)
    assert data.y.tolist() == case.y
    assert dataset.node_ids == tuple(case.ids)
    assert data.num_nodes == len(case.ids)
    for part in PARTS:
        assert getattr(dataset.split(0), part).tolist() == [i for i, of in enumerate(case.split) if of == part]
    expected = [(*ends, weight) for ends, weight in zip(case.edges, case.weight, strict=True)]
    order = sorted if write is write_graphml else list  # networkx writes the edges node by node
    assert order(edges_of(dataset)) == order(expected)


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_damaged_file_is_read_or_refused(write: Callable[[Path, Case], None], tmp_path: Path) -> None:
    ids = [f"n{row}" for row in range(8)]
    x = np.eye(8, 3, dtype=np.float32)
    write(tmp_path, Case(ids, x, ["A", "b"], [0, 1] * 4, [*PARTS, "", *PARTS, ""], [(0, 1), (3, 3)], [1.0, 0.5]))
    whole = {file: file.read_bytes() for file in tmp_path.iterdir()}
    random = np.random.default_rng(0)
    refusals = []
    for _ in range(60):
        for file, content in whole.items():
            start, length = random.integers(len(content)), random.integers(4)
            junk = [b"", b'"', b"\n", b"\xff", b"\0", b"nan", b"1e300", b"<a>", b","][random.integers(9)]
            file.write_bytes(content[:start] + junk + content[start + length :])
        try:
            read_graph(tmp_path)
        except DataError as error:
            refusals.append(str(error))
    assert len(refusals) > 20
    assert not any("\n" in message for message in refusals)


@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_an_undirected_graph_has_the_laplacian_of_networkx(case: Case) -> None:
    graph = networkx.Graph()
    for row, name in enumerate(case.ids):
        graph.add_node(name, f=1.0, label=case.classes[row % 2])
    # self-loops carry no flux, networkx adds them to the degree
    graph.add_weighted_edges_from(
        (case.ids[i], case.ids[j], w) for (i, j), w in zip(case.edges, case.weight, strict=True) if i != j
    )
    graph.add_edge(case.ids[0], case.ids[1], weight=2.0)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "g.graphml"
        networkx.write_graphml(graph, file)
        data = read_graph(file).graphs[0]
        as_written = read_graph(file, directed=True).graphs[0]
    adjacency = torch.sparse_coo_tensor(data.edge_index, data.edge_weight.double(), (len(graph), len(graph))).to_dense()
    expected = torch.from_numpy(networkx.to_numpy_array(graph, nodelist=case.ids))
    assert_close(adjacency, expected)
    assert as_written.edge_index.shape[1] == graph.number_of_edges()
    assert_close(Graph.from_data(data).weight, Graph.from_data(as_written).weight)


def put(directory: Path, nodes: str, edges: str) -> Path:
    (directory / "nodes.csv").write_bytes(nodes.encode())
    (directory / "edges.csv").write_bytes(edges.encode())
    return directory


def test_a_table_is_read_as_it_is(tmp_path: Path) -> None:
    nodes = 'id,age,member,label\r\n "a,\r\n1", 1e3,True,x\r\n\r\nb,-2,false,\r\nc,.5,TRUE,y\r\n'
    dataset = read_graph(put(tmp_path, nodes, "src;dst\nb;b\nc;b\n"), require_labels=False)
    data = dataset.graphs[0]
    assert (dataset.name, dataset.task, dataset.metric, dataset.splits) == (tmp_path.name, "node", "accuracy", ())
    assert dataset.node_ids == ("a,\r\n1", "b", "c")
    assert dense(data.x).tolist() == [[1000, 1], [-2, 0], [0.5, 1]]
    assert data.y.tolist() == [0, -1, 1]
    assert data.edge_index.tolist() == [[1, 2], [1, 1]]
    assert "edge_weight" not in data
    assert dataset.feature_names == ("age", "member")


def test_directed_false_adds_the_missing_reverse_edges_only(tmp_path: Path) -> None:
    edges = "source,target,weight\n0,1,2\n1,0,3\n1,2,5\n2,2,7\n1,2,11\n"
    path = put(tmp_path, "id,f\n0,1\n1,1\n2,1\n", edges)
    given_ones = [(0, 1, 2), (1, 0, 3), (1, 2, 5), (2, 2, 7), (1, 2, 11)]
    assert edges_of(read_graph(path, require_labels=False)) == given_ones
    both = edges_of(read_graph(path, require_labels=False, directed=False))
    assert both == [*given_ones, (2, 1, 5), (2, 1, 11)]


def labelled(labels: list[str]) -> str:
    return "id,f,label\n" + "".join(f"{row},1,{label}\n" for row, label in enumerate(labels))


def test_classes_are_in_the_order_of_numbers_and_integers_of_pandas_stay_integers(tmp_path: Path) -> None:
    dataset = read_graph(put(tmp_path, labelled(["10.0", "", "9.0", "-2.0"] * 5), "from,to\n0,1\n"))
    assert dataset.classes == ("-2", "9", "10")
    assert dataset.graphs[0].y.tolist() == [2, -1, 1, 0] * 5
    huge = read_graph(put(tmp_path, labelled(["9" * 5000, "1"] * 5), "from,to\n0,1\n"))
    assert huge.classes == ("1", "9" * 5000)


def test_random_splits_are_seeded_stratified_and_of_labelled_nodes(tmp_path: Path) -> None:
    path = put(tmp_path, labelled(["a"] * 50 + ["b"] * 100 + [""] * 7), "from,to\n0,1\n")
    dataset, again, other = read_graph(path), read_graph(path), read_graph(path, seed=1)
    assert len(dataset.splits) == 10
    for split, same in zip(dataset.splits, again.splits, strict=True):
        assert [len(split.train), len(split.val), len(split.test)] == [72, 48, 30]
        assert torch.bincount(dataset.graphs[0].y[split.train]).tolist() == [24, 48]
        assert_close(split.train, same.train, rtol=0, atol=0)
    trains = [tuple(split.train.tolist()) for split in (*dataset.splits, *other.splits)]
    assert len(set(trains)) == 20


def test_numbered_split_columns_are_splits_in_their_order(tmp_path: Path) -> None:
    rows = [f"{i},1,{'ab'[i % 2]},{PARTS[i % 3]},{PARTS[(i + 1) % 3]},{PARTS[(i + 2) % 3]}" for i in range(6)]
    nodes = "\n".join(["id,f,label,fold10,fold2,fold", *rows])
    dataset = read_graph(put(tmp_path, nodes, "from,to\n0,1\n"), split="fold")
    assert [split.train.tolist() for split in dataset.splits] == [[1, 4], [2, 5], [0, 3]]
    assert dataset.num_features == 1


def test_graphml_defaults_and_drawings(tmp_path: Path) -> None:
    file = tmp_path / "my.graph.graphml"
    file.write_text("""<?xml version="1.0" encoding="UTF-8"?>
    <g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
    <g:key id="c" for="node" attr.name="label" attr.type="string"><g:default>x</g:default></g:key>
    <g:key id="f" for="all" attr.name="f" attr.type="boolean"><g:default>true</g:default></g:key>
    <g:key id="w" for="edge" attr.name="weight" attr.type="double"><g:default>4</g:default></g:key>
    <g:key id="d" for="node" yfiles.type="nodegraphics"/>
    <g:graph edgedefault="undirected"><g:edge source="b" target="a"><g:data key="f">7</g:data></g:edge>
    <g:node id="a"><g:desc>9</g:desc><g:data key="d"><y:Shape>5</y:Shape></g:data><g:data key="c">y</g:data></g:node>
    <g:node id="b"><g:port name="p"><g:data key="f">8</g:data></g:port><g:data key="f"> false </g:data></g:node>
    </g:graph></g:graphml>""")
    dataset = read_graph(file, require_labels=False)
    assert (dataset.name, dataset.classes) == ("my.graph", ("x", "y"))
    assert dense(dataset.graphs[0].x).tolist() == [[1], [0]]
    assert edges_of(dataset) == [(1, 0, 4), (0, 1, 4)]


def test_npz_without_ids_and_with_an_adjacency_matrix(tmp_path: Path) -> None:
    np.savez(tmp_path / "nodes.npz", x=np.eye(8, dtype=bool), y=np.array([0, 1, np.nan, 2] * 2))
    adjacency = scipy.sparse.random(8, 8, 0.3, "csr", random_state=0)
    for matrix in (adjacency, adjacency != 0):
        scipy.sparse.save_npz(tmp_path / "edges.npz", matrix)
        dataset = read_graph(tmp_path, require_labels=False)
        data = dataset.graphs[0]
        weight = data.edge_weight if matrix is adjacency else torch.ones(adjacency.nnz)
        read = torch.sparse_coo_tensor(data.edge_index, weight, (8, 8)).to_dense()
        assert_close(read, torch.from_numpy(matrix.toarray()).float())
        assert dataset.node_ids == tuple("01234567")
        assert data.y.tolist() == [0, 1, -1, 2] * 2
        assert data.x.layout == torch.sparse_csr
        assert ("edge_weight" in data) == (matrix is adjacency)


def test_what_is_a_path_of_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, file in (("tables", "edges.npz"), ("xml", "g.graphml"), ("cora", "report.json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).touch()
    answers = {"tables": True, "xml": True, "cora": False, "cora/": True, "none": False, "none.graphml": True}
    assert {name: is_graph_path(name) for name in answers} == answers
