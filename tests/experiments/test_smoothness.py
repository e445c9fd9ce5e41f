"""The Dirichlet energy of predictions against sums written out."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data

from gind.experiments.smoothness import dirichlet_energy, prediction_energy
from gind.graph import Graph
from gind.train.wrap import as_problem


def ring(nodes: int) -> Tensor:
    return torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])


@given(st.integers(2, 12), st.integers(0, 1000), st.floats(0.05, 0.9))
def test_it_is_the_mean_over_edges(nodes: int, seed: int, density: float) -> None:
    network = nx.gnp_random_graph(nodes, density, seed=seed)
    edges = torch.tensor(list(network.edges), dtype=torch.long).reshape(-1, 2).t()
    p = np.random.default_rng(seed).dirichlet(np.full(3, 0.5), size=nodes)
    squares = [((p[i] - p[j]) ** 2).sum() / 2 for i, j in network.edges]
    energy = dirichlet_energy(torch.tensor(p), Graph.from_edge_index(edges, num_nodes=nodes))
    assert energy == pytest.approx(np.mean(squares) if squares else 0, abs=1e-12)
    assert 0 <= energy <= 1


@given(st.integers(2, 10), st.integers(0, 1000))
def test_edges_count_by_their_weights(nodes: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    a = np.triu(random.uniform(0.1, 3, (nodes, nodes)) * (random.random((nodes, nodes)) < 0.6), 1)
    tail, head = np.nonzero(a)
    weights = a[tail, head]
    graph = Graph.from_edge_index(torch.tensor(np.stack([tail, head])), nodes, torch.tensor(weights))
    p = random.dirichlet(np.ones(2), size=nodes)
    squares = np.square(p[head] - p[tail]).sum(1) / 2
    expected = np.average(squares, weights=weights) if len(weights) else 0
    assert dirichlet_energy(torch.tensor(p), graph) == pytest.approx(expected, abs=1e-12)


def test_ends_of_its_range() -> None:
    graph = Graph.from_edge_index(ring(6), num_nodes=6)
    assert dirichlet_energy(torch.full((6, 2), 0.5), graph) == 0
    assert dirichlet_energy(torch.eye(2).repeat(3, 1), graph) == 1


class Known(nn.Module):
    """Scores that are given."""

    def __init__(self, scores: Tensor) -> None:
        super().__init__()
        self.scores = scores

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.scores


def test_of_a_model_it_is_that_of_its_probabilities() -> None:
    half = torch.arange(6) < 3
    data = Data(
        x=torch.zeros(6, 1),
        edge_index=ring(6),
        y=torch.tensor([0, 1] * 3),
        train_mask=half,
        val_mask=~half,
    )
    (trained,) = as_problem(data, None, 1).train
    part = dataclasses.replace(trained, rows=None)
    scores = torch.tensor([[3.0, -1.0], [0.5, 0.2]]).repeat(3, 1)
    first, second = (np.exp(row) / np.exp(row).sum() for row in scores[:2].double().numpy())
    assert prediction_energy(Known(scores), part) == pytest.approx(((first - second) ** 2).sum() / 2, abs=1e-9)
    assert prediction_energy(Known(scores * float("nan")), part) is None
