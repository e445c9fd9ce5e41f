"""The same tensors give the same graph, changed tensors another one, and nothing outlives its edge_index."""

import gc
import weakref
from typing import Any

import pytest
import torch
from graphs import values
from torch_geometric import EdgeIndex

from gind.graph import Graph, OutDegree, Symmetric, diffuse, incidence_norm


def index() -> torch.Tensor:
    return torch.tensor([[0, 1, 2], [1, 2, 3]])


def test_the_same_tensors_give_the_same_object() -> None:
    edge_index, weight, batch = index(), torch.tensor([1.0, 2.0, 3.0]), torch.zeros(4, dtype=torch.long)
    for arguments in ((edge_index,), (edge_index, 4), (edge_index, 4, weight), (edge_index, 4, weight, batch)):
        assert Graph.from_edge_index(*arguments) is Graph.from_edge_index(*arguments)
    edges = EdgeIndex(index(), sparse_size=(4, 4))
    assert Graph.from_edge_index(edges) is Graph.from_edge_index(edges)


def test_different_arguments_give_different_graphs() -> None:
    edge_index = index()
    weight, batch = torch.tensor([1.0, 2.0, 3.0]), torch.zeros(5, dtype=torch.long)
    calls: list[dict[str, Any]] = [
        {},
        {"num_nodes": 5},
        {"num_nodes": 6},
        {"edge_weight": weight},
        {"edge_weight": weight + 1},
        {"batch": batch},
        {"batch": batch.clone()},
        {"directed": True},
        {"directed": True, "edge_weight": weight},
    ]
    graphs = [Graph.from_edge_index(edge_index, **call) for call in calls]
    assert len(set(map(id, graphs))) == len(calls)
    assert [Graph.from_edge_index(edge_index, **call).num_nodes for call in calls] == [4, 5, 6, 4, 4, 5, 5, 4, 4]
    assert Graph.from_edge_index(edge_index.clone()) is not graphs[0]


@pytest.mark.parametrize("wrap", [torch.clone, lambda i: EdgeIndex(i, sparse_size=(9, 9))], ids=["tensor", "EdgeIndex"])
def test_a_change_in_place_gives_a_new_graph(wrap: Any) -> None:
    edge_index, weight = wrap(index()), torch.tensor([1.0, 2.0, 3.0])
    batch = torch.zeros(9, dtype=torch.long)

    def build() -> Graph:
        return Graph.from_edge_index(edge_index, 9, weight, batch)

    first = build()
    edge_index[1, 2] = 7
    second = build()
    assert first.head.tolist() == [1, 2, 3]
    assert second.head.tolist() == [1, 2, 7]
    weight[0] = 9
    third = build()
    assert third.weight is not None
    assert third.weight.tolist() == [9, 2, 3]
    batch[8] = 1
    assert (third.num_graphs, build().num_graphs) == (1, 2)
    assert build() is build()


def test_what_cannot_be_recognized_is_never_taken_for_absent() -> None:
    """Inference tensors have no version: the graph without weights is no answer for the one with weights."""
    edge_index = index()
    plain = Graph.from_edge_index(edge_index, 4)
    with torch.inference_mode():
        weight, batch = torch.tensor([2.0, 3.0, 4.0]), torch.zeros(4, dtype=torch.long)
        weighted = Graph.from_edge_index(edge_index, 4, weight)
        assert weighted is not plain
        assert weighted.weight is not None
        assert weighted.weight.tolist() == [2, 3, 4]
        assert Graph.from_edge_index(edge_index, 4, batch=batch).batch is not None


BAD: list[dict[str, Any]] = [
    {"num_nodes": 4.0},
    {"edge_weight": [1.0, 2.0, 3.0]},
    {"batch": [0, 0, 0, 0]},
]


@pytest.mark.parametrize("arguments", BAD, ids=str)
def test_a_known_edge_index_is_no_pass_for_bad_arguments(arguments: dict[str, Any]) -> None:
    edge_index = index()
    for num_nodes in (None, 4):
        Graph.from_edge_index(edge_index, num_nodes)
    with pytest.raises(TypeError, match=next(iter(arguments))):
        Graph.from_edge_index(edge_index, **arguments)


def test_bool_is_no_number_of_nodes_even_if_one_is_known() -> None:
    edge_index = torch.tensor([[0], [0]])
    Graph.from_edge_index(edge_index, 1)
    with pytest.raises(TypeError, match="num_nodes"):
        Graph.from_edge_index(edge_index, True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_dies_with_its_edge_index(weighted: bool, directed: bool) -> None:
    edge_index, batch = index(), torch.zeros(4, dtype=torch.long)
    weight = torch.ones(3) if weighted else None
    graph = Graph.from_edge_index(edge_index, 4, weight, batch, directed=directed)
    Symmetric().vector(graph)
    alive = weakref.ref(graph)
    del graph
    gc.collect()
    assert alive() is not None  # the cache holds it
    del edge_index
    gc.collect()
    assert alive() is None


def test_new_weights_for_one_edge_index_do_not_pile_up() -> None:
    """Weights computed anew at each step of a training."""
    edge_index, weight = index(), torch.ones(3)
    alive = []
    for step in range(100):
        alive.append(weakref.ref(Graph.from_edge_index(edge_index, 4, torch.full((3,), float(step)))))
        weight += 1
        alive.append(weakref.ref(Graph.from_edge_index(edge_index, 4, weight)))
    gc.collect()
    assert sum(graph() is not None for graph in alive) <= 20


@pytest.mark.parametrize("made", ["before", "inside"])
def test_inference_mode_leaves_nothing_behind_that_training_cannot_use(made: str) -> None:
    """First an evaluation, then a training on the same edge_index: autograd refuses to save inference tensors."""
    edge_index, weight = index(), torch.tensor([1.0, 2.0, 3.0])

    def build() -> Graph:
        return Graph.from_edge_index(edge_index, 4, weight, directed=True)

    def forward(y: torch.Tensor) -> torch.Tensor:
        graph = build()
        s = Symmetric().vector(graph) * OutDegree().vector(graph) * incidence_norm(graph, OutDegree())
        scale = (s * graph.degree * graph.out_degree * graph.edge_mass)[:, None].to(y.dtype)
        return (scale * y.square() + diffuse(y, graph)).sum()

    if made == "before":
        build()
    y = values(0, 4, 3, dtype=torch.float32)
    with torch.inference_mode():
        evaluated = forward(y).item()
        assert Graph.from_edge_index(index()).num_edges == 3  # an edge_index of inference mode
    y.requires_grad_()
    loss = forward(y)
    assert loss.item() == pytest.approx(evaluated)
    assert bool(torch.autograd.grad(loss, y)[0].isfinite().all())
