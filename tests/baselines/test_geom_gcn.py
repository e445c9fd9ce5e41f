"""Geom-GCN: positions, latent neighbors, divisions and the whole model, against graphs whose answers are known."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from gind.baselines import geom_gcn, latent
from gind.baselines.geom_gcn import GeomGCN, divide
from gind.baselines.latent import closest_pairs, embed
from gind.baselines.propagate import neighbors

# a square 0 1 2 3 around node 4, with the edges 0-1, 1-2, 4-0; 3 has no edge
POSITION = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])
EDGES = torch.tensor([[0, 1, 4], [1, 2, 0]])
LATENT = np.array([[3, 0], [4, 4]])  # 3-4, and 0-4, which is an edge as well


def adjacency(edges: list[tuple[int, int]], n: int) -> scipy.sparse.csr_matrix:
    matrix = np.zeros((n, n))
    for i, j in edges:
        matrix[i, j] = matrix[j, i] = 1
    return scipy.sparse.csr_matrix(matrix)


def quadrant(source: int, target: int) -> int:
    """Where the source lies, seen from the target."""
    right, above = POSITION[source] > POSITION[target]
    return {(True, True): 0, (True, False): 1, (False, True): 2, (False, False): 3}[bool(right), bool(above)]


def by_hand() -> list[NDArray[np.float64]]:
    parts = [np.zeros((5, 5)) for _ in range(9)]
    graph, near = [(0, 1), (1, 2)], [(3, 4), (0, 4)]
    degree = np.array([3, 3, 2, 2, 3])  # with the node itself
    for kind, pairs in ((0, graph), (4, near)):
        for i, j in pairs:
            for source, target in ((i, j), (j, i)):
                parts[kind + quadrant(source, target)][target, source] = 1
    parts[8] = np.eye(5)
    return [part / np.sqrt(np.outer(degree, degree)) for part in parts]


def test_divisions_by_hand() -> None:
    parts = divide(neighbors(torch.zeros(5, 1), EDGES), POSITION, LATENT)
    for part, expected in zip(parts, by_hand(), strict=True):
        np.testing.assert_allclose(part.to_dense().numpy(), expected, atol=1e-15)
    assert parts[2].to_dense()[1, 2] > 0  # 2 lies above 1, at the same x
    assert sum(part._nnz() for part in parts) == 2 * 2 + 2 * 2 + 5


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_whole_model_by_hand(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geom_gcn, "_latent_space", lambda graph, how: (POSITION, LATENT))
    torch.manual_seed(0)
    model: Any = GeomGCN(4, 3, 2, layers).double().eval()
    x = torch.randn(5, 4, dtype=torch.float64)
    hidden = x.numpy()
    for number, weight in enumerate(model.weights, start=1):
        blocks = np.split(weight.detach().numpy(), 9)
        parts = [matrix @ hidden @ block.T for matrix, block in zip(by_hand(), blocks, strict=True)]
        hidden = np.maximum(np.concatenate(parts, axis=1), 0) if number < layers else sum(parts) / 9
    np.testing.assert_allclose(model(x, EDGES.clone()).detach().numpy(), hidden, atol=1e-12)


def test_isomap_recovers_a_path() -> None:
    path = adjacency([(i, i + 1) for i in range(9)], 10)
    position = embed(path, "isomap")
    steps = np.diff(position[:, 0])
    np.testing.assert_allclose(steps, steps[0], rtol=1e-4)
    np.testing.assert_allclose(position[:, 1], 0, atol=1e-6)


def test_spectral_parts_two_blocks_and_mirrors_a_path() -> None:
    cliques = [(i, j) for i in range(8) for j in range(i)] + [(i, j) for i in range(8, 16) for j in range(8, i)]
    side = embed(adjacency([*cliques, (0, 8)], 16), "spectral")[:, 0] > 0
    assert len(set(side[:8])) == len(set(side[8:])) == 1
    assert side[0] != side[8]
    path = embed(adjacency([(i, i + 1) for i in range(19)], 20), "spectral")
    np.testing.assert_allclose(path, path[::-1] * [-1, 1], atol=1e-5)


def test_spectral_solves_its_equation() -> None:
    graph = adjacency([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (5, 6)], 8)
    degree, tau = graph.toarray().sum(axis=1), 12 / 8
    matrix = graph.toarray() + tau / 8
    walk = matrix / (degree + tau)[:, None]  # its eigenvectors are T^(-1/2) v
    position = embed(graph, "spectral")
    values = np.sort(np.linalg.eigvals(walk).real)[::-1]
    np.testing.assert_allclose(walk @ position, position * values[1:3], atol=1e-5)


@pytest.mark.parametrize("how", ["isomap", "spectral"])
def test_positions_are_the_same_by_both_eigensolvers(how: latent.Embedding, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    # a ring with chords, and an isolated node
    graph = adjacency([(i, (i + 1) % 60) for i in range(60)] + [(0, int(j)) for j in generator.integers(5, 30, 6)], 61)
    dense = embed(graph, how)
    assert np.isfinite(dense).all()
    monkeypatch.setattr(latent, "_DENSE", 0)
    np.testing.assert_allclose(embed(graph, how), dense, atol=1e-5)


@pytest.mark.parametrize("how", ["isomap", "spectral"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_smallest_graphs_have_positions(how: latent.Embedding, n: int) -> None:
    for edges in ([], [(0, n - 1)] if n > 1 else []):
        position = embed(adjacency(edges, n), how)
        assert position.shape == (n, 2)
        assert np.isfinite(position).all()


@pytest.mark.parametrize("count", [0, 1, 7, 40, 190, 500])
def test_closest_pairs_are_those_of_all_distances(count: int) -> None:
    position = np.random.default_rng(1).standard_normal((20, 2))
    i, j = closest_pairs(position, count)
    all_distances = np.sort(pdist(position))
    assert len(i) == min(count, 190)
    assert (i < j).all()
    np.testing.assert_allclose(np.sort(squareform(pdist(position))[i, j]), all_distances[: len(i)])


def test_nodes_that_coincide_share_the_pairs_out() -> None:
    i, j = closest_pairs(np.zeros((10, 2)), 20)
    assert len(i) == 20
    assert np.bincount(np.r_[i, j], minlength=10).min() >= 2


def test_latent_neighbors_are_as_many_as_edges() -> None:
    edges = torch.randint(0, 40, (2, 70), generator=torch.Generator().manual_seed(0))
    graph = neighbors(torch.zeros(42, 1), edges)
    for how in ("isomap", "spectral"):
        _, pairs = geom_gcn._latent_space(graph, how)
        assert len(pairs[0]) == len({frozenset(e) for e in edges.t().tolist() if e[0] != e[1]})


def test_positions_are_computed_once_per_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(graph: scipy.sparse.csr_matrix, how: latent.Embedding) -> NDArray[np.float64]:
        calls.append(how)
        return embed(graph, how)

    monkeypatch.setattr(geom_gcn, "embed", counted)
    edges, x = EDGES.clone(), torch.randn(5, 4)
    for how in ("isomap", "spectral"):
        model = GeomGCN(4, 3, 2, embedding=how)
        for _ in range(3):
            model(x, edges)
    GeomGCN(4, 3, 2)(x, edges)
    assert calls == ["isomap", "spectral"]


def test_isomap_refuses_large_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latent, "LARGEST", 4)
    with pytest.raises(ValueError, match='embedding="spectral"'):
        GeomGCN(4, 3, 2)(torch.randn(5, 4), EDGES.clone())
