"""GCN and the matrices of the explicit systems, written out dense."""

from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from graphs import MODEST, Given, givens, values
from hypothesis import given
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.utils import to_undirected

from gind.baselines.gcn import GCN
from gind.baselines.propagate import neighbors, propagation
from gind.baselines.sage import SAGE, mean_of_neighbors
from gind.graph import Graph

Array = NDArray[np.float64]


def features(edges: Given) -> Tensor:
    return values(1, edges.num_nodes, 5, dtype=torch.float64)


def heard(edges: Given, undirected: bool) -> tuple[Array, Array]:
    """A with A[i, j] what i hears of j, without its diagonal; and the weights of the loops."""
    n = edges.num_nodes
    A, there = np.zeros((n, n)), np.zeros((n, n), dtype=bool)
    weight = [1.0] * edges.edge_index.shape[1] if edges.edge_weight is None else edges.edge_weight.tolist()
    for (source, target), w in zip(edges.edge_index.t().tolist(), weight, strict=True):
        A[target, source] += w
        there[target, source] = True
    loops = A.diagonal().copy()
    np.fill_diagonal(A, 0)
    if undirected:
        directions = there.astype(int) + there.T
        A = (A + A.T) / np.maximum(directions, 1)
    return A, loops


def convolution(edges: Given, undirected: bool) -> Array:
    """D^(-1/2) (A + I) D^(-1/2); a loop of the data takes the place of that of I."""
    A, loops = heard(edges, undirected)
    A = A + np.diag(np.where(loops > 0, loops, 1.0))
    scale = A.sum(axis=1) ** -0.5
    return np.asarray(scale[:, None] * A * scale[None, :])


def make(build: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    model = build(5, 4, 3, **options).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)  # biases would start at 0
    return model


@pytest.mark.parametrize("undirected", [True, False])
@given(edges=givens())
@MODEST
def test_gcn_is_its_equation(undirected: bool, edges: Given) -> None:
    model = make(GCN, num_layers=3, undirected=undirected)
    matrix, hidden = convolution(edges, undirected), features(edges).numpy()
    linear = [model.first, model.convs[1].lin, model.convs[2].lin]
    for number, (conv, lin) in enumerate(zip(model.convs, linear, strict=True)):
        hidden = np.maximum(hidden, 0) if number else hidden
        hidden = matrix @ hidden @ lin.weight.detach().numpy().T + conv.bias.detach().numpy()
    assert_close(model(features(edges), edges.edge_index, edges.edge_weight).detach(), torch.from_numpy(hidden))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("undirected", [True, False])
def test_gcn_is_that_of_pyg(undirected: bool, weighted: bool) -> None:
    # node 5 is isolated, 4 has a loop, 1 and 2 point at each other
    index = torch.tensor([[0, 1, 2, 2, 3, 4, 4], [1, 2, 1, 3, 0, 4, 0]])
    weight = torch.rand(7, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 0.5 if weighted else None
    edges = Given(index, 6, weight)
    model = make(GCN, num_layers=3, undirected=undirected)
    other = pyg.GCN(5, 4, 3, 3).double().eval()
    other.load_state_dict({name.replace("first.", "convs.0.lin."): value for name, value in model.state_dict().items()})
    theirs: tuple[Tensor, Tensor | None] = (index, weight)
    if undirected and weight is not None:
        theirs = to_undirected(index, weight, 6, reduce="mean")
    elif undirected:
        theirs = to_undirected(index, num_nodes=6), None
    assert_close(model(features(edges), index, weight), other(features(edges), *theirs))


def test_a_loop_keeps_its_weight_where_all_other_weights_are_1() -> None:
    edges = Given(torch.tensor([[0, 1, 1], [1, 2, 1]]), 3, torch.tensor([1.0, 1.0, 5.0]))
    matrix = propagation(
        neighbors(features(edges), edges.edge_index, edges.edge_weight, undirected=False), torch.float64
    ).to_dense()
    index, expected = pyg.conv.gcn_conv.gcn_norm(edges.edge_index, edges.edge_weight, 3)
    dense = torch.zeros(3, 3).index_put_((index[1], index[0]), expected)
    assert_close(matrix, dense.double())
    assert_close(matrix, torch.from_numpy(convolution(edges, undirected=False)))


@given(edges=givens())
@MODEST
def test_weights_of_undirected_edges_are_those_of_a_graph(edges: Given) -> None:
    graph = Graph.from_edge_index(edges.edge_index, edges.num_nodes, edges.edge_weight)
    of_graph = propagation(neighbors(features(edges), graph), torch.float64).to_dense()
    of_edges = propagation(neighbors(features(edges), edges.edge_index, edges.edge_weight), torch.float64).to_dense()
    assert torch.equal(of_graph, of_edges)


def test_repeats_in_one_direction_add_up_and_directions_have_their_mean() -> None:
    x = torch.zeros(3, 1)
    for index, weight, expected in (
        ([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 5.0], 4.0),
        ([[0, 0], [1, 1]], [1.0, 2.0], 3.0),
        ([[0, 0], [1, 1]], None, 2.0),
        ([[0, 1], [1, 0]], None, 1.0),
        ([[0, 0, 1, 1], [1, 1, 0, 0]], None, 2.0),
    ):
        graph = neighbors(x, torch.tensor(index), None if weight is None else torch.tensor(weight))
        assert (graph.tail.tolist(), graph.head.tolist()) == ([0, 1], [1, 0])
        weights = [1.0, 1.0] if graph.weight is None else graph.weight.tolist()
        assert weights == [expected, expected]


@pytest.mark.parametrize("undirected", [True, False])
@given(edges=givens())
@MODEST
def test_means_are_weighted_by_the_edges_and_0_without_weight(undirected: bool, edges: Given) -> None:
    A, _ = heard(edges, undirected)
    total = A.sum(axis=1, keepdims=True)
    expected = np.divide(A, total, out=np.zeros_like(A), where=total > 0)
    graph = neighbors(features(edges), edges.edge_index, edges.edge_weight, undirected=undirected)
    assert_close(mean_of_neighbors(graph, torch.float64).to_dense(), torch.from_numpy(expected))


@pytest.mark.parametrize("undirected", [True, False])
def test_weights_of_0_leave_scores_and_gradients_of_sage_finite(undirected: bool) -> None:
    index, weight = torch.tensor([[0, 1, 1], [1, 0, 2]]), torch.tensor([0.0, 0.0, 3.0])
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    model = make(SAGE, undirected=undirected)
    scores = model(x, index, weight)
    scores.square().sum().backward()
    assert bool(scores.isfinite().all())
    assert x.grad is not None
    assert all(bool(value.grad.isfinite().all()) for value in (x, *model.parameters()))
    # 0 hears of nobody, as if it were alone
    assert_close(scores[0], model(x[:1], torch.empty(2, 0, dtype=torch.long))[0])
