"""The Dirichlet energy against the normalized Laplacian, written out."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gind.experiments.smoothness import dirichlet_energy
from gind.graph import Graph


@given(st.integers(2, 12), st.integers(0, 1000), st.floats(0.05, 0.9))
def test_it_is_the_quotient_of_the_laplacian_with_loops(nodes: int, seed: int, density: float) -> None:
    network = nx.gnp_random_graph(nodes, density, seed=seed)
    edges = torch.tensor(list(network.edges), dtype=torch.long).reshape(-1, 2).t()
    y = np.random.default_rng(seed).normal(size=(nodes, 3))
    network.add_edges_from((i, i) for i in range(nodes))
    a = nx.to_numpy_array(network)
    root = np.diag(a.sum(0) ** -0.5)
    expected = np.trace(y.T @ (np.eye(nodes) - root @ a @ root) @ y) / 2 / np.square(y).sum()
    energy = dirichlet_energy(torch.tensor(y), Graph.from_edge_index(edges, num_nodes=nodes))
    assert energy == pytest.approx(expected, abs=1e-12)
    assert 0 <= energy <= 1


@given(st.integers(2, 10), st.integers(0, 1000))
def test_weights_count_in_the_squares_and_in_the_degrees(nodes: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    a = np.triu(random.uniform(0.1, 3, (nodes, nodes)) * (random.random((nodes, nodes)) < 0.6), 1)
    tail, head = np.nonzero(a)
    weights = torch.tensor(a[tail, head])
    graph = Graph.from_edge_index(torch.tensor(np.stack([tail, head])), nodes, weights)
    y = random.normal(size=(nodes, 2))
    scaled = y / np.sqrt(2 * ((a + a.T).sum(0) + 1))[:, None]
    expected = (a[tail, head] * np.square(scaled[head] - scaled[tail]).sum(1)).sum() / np.square(y).sum()
    assert dirichlet_energy(torch.tensor(y), graph) == pytest.approx(expected, abs=1e-12)
    assert expected <= 1


def test_what_is_smooth_has_none() -> None:
    ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
    graph = Graph.from_edge_index(ring, num_nodes=6)
    assert dirichlet_energy(torch.ones(6, 2), graph) == 0
    assert dirichlet_energy(torch.zeros(6, 2), graph) == 0
    assert dirichlet_energy(torch.tensor([1.0, -1.0]).repeat(3)[:, None], graph) == pytest.approx(2 / 3)
