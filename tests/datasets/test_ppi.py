"""PPI: small files in GraphSAGE's raw format, read by us and by PyG (which needs networkx)."""

import json
import pathlib

import numpy as np
import pytest
import torch
from torch_geometric import datasets

from gind.datasets import DataError, load, statistics

# nodes per graph of each part; edges between places of the same part
PARTS = {
    "train": ([3, 2, 4], [(0, 1), (1, 2), (2, 2), (3, 4), (5, 6), (8, 5), (7, 8)]),
    "valid": ([2], [(0, 1)]),
    "test": ([2, 3], [(0, 1), (2, 4), (3, 2), (2, 4)]),
}


def write(folder: pathlib.Path, *, directed: bool = False) -> None:
    raw = folder / "ppi" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number, (part, (sizes, edges)) in enumerate(PARTS.items()):
        n = sum(sizes)
        np.save(raw / f"{part}_feats.npy", rng.normal(size=(n, 5)))
        np.save(raw / f"{part}_labels.npy", rng.integers(2, size=(n, 3)))
        np.save(raw / f"{part}_graph_id.npy", np.repeat(np.arange(len(sizes)) + 10 * number + 1, sizes))
        links = [{"source": a, "target": b} for a, b in edges]
        nodes = [{"id": i, "test": False} for i in range(n)]
        content = {"directed": directed, "multigraph": False, "graph": {}, "nodes": nodes, "links": links}
        (raw / f"{part}_graph.json").write_text(json.dumps(content))


def test_graphs_labels_and_the_one_split_are_read(tmp_path: pathlib.Path) -> None:
    write(tmp_path)
    dataset = load("ppi", tmp_path)
    assert (dataset.task, dataset.metric, dataset.num_classes) == ("multilabel", "micro_f1", 3)
    assert [data.x.shape[0] for data in dataset.graphs] == [3, 2, 4, 2, 2, 3]
    (split,) = dataset.splits
    assert [split.train.tolist(), split.val.tolist(), split.test.tolist()] == [[0, 1, 2], [3], [4, 5]]
    assert all(data.y.dtype == data.x.dtype == torch.float32 for data in dataset.graphs)
    # both ways, each once, the loop dropped
    assert dataset.graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert dataset.graphs[5].edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    counts = statistics(dataset)
    assert counts.class_sizes == tuple(int(n) for n in sum(data.y.sum(0) for data in dataset.graphs))
    assert (counts.nodes, counts.unlabelled, counts.homophily) == (16, 0, None)


@pytest.mark.parametrize("directed", [False, True])
def test_graphs_are_those_of_pyg(tmp_path: pathlib.Path, directed: bool) -> None:
    pytest.importorskip("networkx", reason="PyG's reader of PPI needs networkx")
    write(tmp_path, directed=directed)
    ours = load("ppi", tmp_path).graphs
    theirs = [data for split in ("train", "val", "test") for data in datasets.PPI(str(tmp_path / "ppi"), split)]
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.y, other.y)
        assert {*zip(*one.edge_index.tolist(), strict=True)} == {*zip(*other.edge_index.tolist(), strict=True)}


def test_a_first_node_without_an_edge_shifts_nothing(tmp_path: pathlib.Path) -> None:
    # PyG subtracts the smallest end of an edge, and is one off here
    write(tmp_path)
    path = tmp_path / "ppi/raw/train_graph.json"
    content = json.loads(path.read_text())
    content["links"] = [{"source": 1, "target": 2}, {"source": 0, "target": 5}]
    path.write_text(json.dumps(content))
    graphs = load("ppi", tmp_path).graphs
    assert graphs[0].edge_index.tolist() == [[1, 2], [2, 1]]
    assert graphs[2].edge_index.shape == (2, 0)


def test_files_that_do_not_fit_are_refused(tmp_path: pathlib.Path) -> None:
    write(tmp_path)
    np.save(tmp_path / "ppi/raw/valid_feats.npy", np.ones((1, 5)))
    with pytest.raises(DataError, match="row per node each, got 1 features, 2 labels and 2 graph ids"):
        load("ppi", tmp_path)
    np.save(tmp_path / "ppi/raw/valid_feats.npy", np.ones((2, 5)))
    path = tmp_path / "ppi/raw/test_graph.json"
    path.write_text(path.read_text().replace('"target": 4', '"target": 7'))
    with pytest.raises(DataError, match="links nodes up to 7, but there are features of 5 nodes"):
        load("ppi", tmp_path)


def test_only_the_published_split_is_given(tmp_path: pathlib.Path) -> None:
    write(tmp_path)
    with pytest.raises(DataError, match="only its published split, got splits='random'"):
        load("ppi", tmp_path, splits="random")
