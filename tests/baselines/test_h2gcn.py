"""H2GCN against NumPy and networkx."""

from typing import Any

import networkx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from gind.baselines.h2gcn import H2GCN, hops
from gind.baselines.propagate import neighbors


def random_graph(n: int, m: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=generator, dtype=torch.float64)
    # loops and repeats among them, and some nodes without an edge
    return x, torch.randint(0, n - 2, (2, m), generator=generator)


def at_distance(edges: Tensor, n: int, distance: int) -> NDArray[np.float64]:
    """D^(-1/2) A D^(-1/2), A_ij = 1 if the shortest path from i to j has this length."""
    graph = networkx.empty_graph(n)
    graph.add_edges_from(edges.t().tolist())
    pattern = np.zeros((n, n))
    for i, lengths in networkx.all_pairs_shortest_path_length(graph):
        for j, length in lengths.items():
            pattern[i, j] = length == distance
    degree = np.maximum(pattern.sum(axis=1), 1)
    return np.asarray(pattern / np.sqrt(np.outer(degree, degree)))


@pytest.mark.parametrize(("n", "m", "seed"), [(12, 10, 0), (30, 25, 1), (30, 90, 2), (8, 40, 3), (5, 0, 4)])
def test_hops_are_shortest_paths_of_length_one_and_two(n: int, m: int, seed: int) -> None:
    x, edges = random_graph(n, m, seed)
    for distance, matrix in enumerate(hops(neighbors(x, edges), torch.float64), start=1):
        np.testing.assert_allclose(matrix.to_dense().numpy(), at_distance(edges, n, distance), atol=1e-14)


def test_hops_of_a_directed_graph_follow_the_arrows() -> None:
    path = torch.tensor([[0, 1, 2], [1, 2, 3]])
    one, two = hops(neighbors(torch.zeros(4, 1), path, undirected=False), torch.float32)
    for matrix, entries in ((one, [[1, 0], [2, 1], [3, 2]]), (two, [[2, 0], [3, 1]])):
        assert matrix.to_dense().nonzero().tolist() == entries
        assert bool((matrix.values() == 1).all())


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("relu", [True, False])
def test_whole_model(rounds: int, relu: bool) -> None:
    x, edges = random_graph(20, 24, 5)
    torch.manual_seed(0)
    model: Any = H2GCN(5, 4, 3, rounds, relu=relu).double().eval()
    one, two = at_distance(edges, 20, 1), at_distance(edges, 20, 2)
    r = x.numpy() @ model.encoder.weight.detach().numpy().T
    r = np.maximum(r, 0) if relu else r
    parts = [r]
    for _ in range(rounds):
        parts.append(np.concatenate([one @ parts[-1], two @ parts[-1]], axis=1))
    expected = np.concatenate(parts, axis=1) @ model.head.weight.detach().numpy().T
    np.testing.assert_allclose(model(x, edges).detach().numpy(), expected, atol=1e-12)


def test_gradient_of_the_rounds() -> None:
    x, edges = random_graph(7, 6, 6)
    model = H2GCN(5, 2, 2, dropout=0.0, undirected=False).double()
    assert torch.autograd.gradcheck(lambda x: model(x, edges), x.requires_grad_())


def test_hops_are_computed_once_per_graph() -> None:
    x, edges = random_graph(12, 10, 7)
    first = hops(neighbors(x, edges), torch.float32)
    assert hops(neighbors(x, edges), torch.float32) is first
    assert hops(neighbors(x, edges.clone()), torch.float32) is not first
