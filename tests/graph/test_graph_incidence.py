"""Gradient, divergence, and the flux that fuses them."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from graphs import MODEST, Given, dense, givens, values
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gind.graph import (
    Graph,
    diffuse,
    diffuse_jvp,
    diffuse_moments,
    diffuse_secant,
    divergence,
    gradient,
)

DIRECTED = pytest.mark.parametrize("directed", [False, True])
ACTIVATION = pytest.mark.parametrize("activation", ["tanh", "identity"])


def build(case: Given, directed: bool) -> Graph:
    return Graph.from_edge_index(case.edge_index, case.num_nodes, case.edge_weight, directed=directed)


def incidence(graph: Graph) -> Tensor:
    return dense(torch.stack([graph.tail, graph.head]), graph.num_nodes)


def weights(graph: Graph) -> Tensor:
    return graph.weight_as(torch.float64) if graph.weight is not None else torch.ones(graph.num_edges).double()


def example(directed: bool = False) -> Graph:
    index = torch.tensor([[0, 1, 2, 0, 1, 3], [1, 2, 0, 3, 0, 3]])
    weight = torch.tensor([1.0, 0.5, 2.0, 0.0, 3.0, 1.0])
    return Graph.from_edge_index(index, 5, weight, directed=directed)


@DIRECTED
def test_gradient_is_networkx_incidence(directed: bool) -> None:
    @MODEST
    @given(givens(), st.integers(0, 2**20))
    def check(case: Given, seed: int) -> None:
        graph = build(case, directed)
        pairs = list(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))
        other: Any = nx.MultiDiGraph()
        other.add_nodes_from(range(case.num_nodes))
        other.add_edges_from(pairs)
        keyed = [(*pair, pairs[:e].count(pair)) for e, pair in enumerate(pairs)]
        # n x m, -1 at the tail and 1 at the head
        matrix = nx.incidence_matrix(other, nodelist=range(case.num_nodes), edgelist=keyed, oriented=True)
        u = values(seed, case.num_nodes, 3, dtype=torch.float64)
        j = values(seed, len(pairs), 3, dtype=torch.float64)
        np.testing.assert_allclose(gradient(u, graph), matrix.T @ u.numpy(), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(divergence(j, graph), -(matrix @ j.numpy()), rtol=1e-13, atol=1e-13)

    check()


@DIRECTED
@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3)], ids=str)
def test_divergence_is_minus_the_adjoint_of_the_gradient(directed: bool, shape: tuple[int, ...]) -> None:
    graph = example(directed)
    u = values(0, graph.num_nodes, *shape, dtype=torch.float64)
    j = values(1, graph.num_edges, *shape, dtype=torch.float64)
    torch.testing.assert_close((gradient(u, graph) * j).sum(), -(u * divergence(j, graph)).sum())


def test_derivatives_of_gradient_and_divergence() -> None:
    graph = example()
    u = values(0, graph.num_nodes, 2, dtype=torch.float64).requires_grad_()
    j = values(1, graph.num_edges, 2, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda u: gradient(u, graph), u)
    assert torch.autograd.gradcheck(lambda j: divergence(j, graph), j)


@DIRECTED
@ACTIVATION
def test_diffuse_is_the_dense_formula(directed: bool, activation: str) -> None:
    """Gᵀwσ(Gy), its derivative Gᵀwσ'(Gy)Gt, its chord Gᵀw(σ(v)/v)Gt, and the moments."""

    @MODEST
    @given(givens(), st.integers(0, 2**20))
    def check(case: Given, seed: int) -> None:
        graph = build(case, directed)
        G, w = incidence(graph), weights(graph)[:, None]
        y, t = (values(seed + k, case.num_nodes, 3, dtype=torch.float64) for k in (0, 1))
        v = G @ y
        tanh = activation == "tanh"
        sigma, primitive = (torch.tanh(v), torch.cosh(v).log()) if tanh else (v, v * v / 2)
        slope = 1 - sigma**2 if tanh else torch.ones_like(v)
        chord = torch.where(v == 0, 1.0, sigma / v)

        def close(actual: Tensor, expected: Tensor, scale: Tensor = w) -> None:
            torch.testing.assert_close(actual, expected, rtol=1e-11, atol=1e-12 * float(1 + scale.sum()))

        close(diffuse(y, graph, activation), G.T @ (w * sigma))
        close(diffuse_jvp(y, t, graph, activation), G.T @ (w * slope * (G @ t)))
        close(diffuse_secant(y, t, graph, activation), G.T @ (w * chord * (G @ t)))
        out, moments = diffuse_moments(y, graph, activation)
        close(out, -divergence(w * sigma, graph))
        for actual, terms in zip(moments, (sigma, sigma**2, primitive), strict=True):
            close(actual, (w * terms).sum(0, keepdim=True))

    check()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_results_keep_the_precision_of_the_input(dtype: torch.dtype) -> None:
    graph = example()
    y = values(0, graph.num_nodes, 3, dtype=dtype)
    out, moments = diffuse_moments(y, graph)
    assert {x.dtype for x in (diffuse(y, graph), out, diffuse_jvp(y, y, graph), gradient(y, graph))} == {dtype}
    assert {x.dtype for x in moments} == {torch.float64}


@pytest.mark.parametrize("nodes", [0, 1, 4])
def test_without_edges_nothing_flows(nodes: int) -> None:
    graph = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), nodes)
    y = values(0, nodes, 3, dtype=torch.float64)
    out, moments = diffuse_moments(y, graph)
    assert gradient(y, graph).shape == (0, 3)
    assert divergence(gradient(y, graph), graph).shape == out.shape == (nodes, 3)
    assert not any(x.any() for x in (out, diffuse(y, graph), diffuse_jvp(y, y, graph), *moments))


# The 2 last nodes have no edges: a missing check shows as a wrong answer here, not as a crash of the tests.
PATH = Graph.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 5)
Y = values(0, 5, 2, dtype=torch.float64)
CALLS: dict[str, Callable[[], object]] = {
    "gradient: rows": lambda: gradient(Y[:3], PATH),
    "gradient: number": lambda: gradient(torch.tensor(1.0), PATH),
    "divergence: rows": lambda: divergence(Y, PATH),
    "diffuse: rows": lambda: diffuse(Y[:3], PATH),
    "diffuse: vector": lambda: diffuse(Y[:, 0], PATH),
    "diffuse: integers": lambda: diffuse(Y.long(), PATH),
    "diffuse: activation": lambda: diffuse(Y, PATH, "relu"),
    "diffuse_moments: rows": lambda: diffuse_moments(Y[:3], PATH),
    "diffuse_moments: activation": lambda: diffuse_moments(Y, PATH, "relu"),
    "diffuse_jvp: rows of y": lambda: diffuse_jvp(Y[:3], Y[:3], PATH),
    "diffuse_jvp: rows of t": lambda: diffuse_jvp(Y, Y[:3], PATH),
    "diffuse_jvp: columns of t": lambda: diffuse_jvp(Y[:, :1], Y, PATH),
    "diffuse_jvp: dtype of t": lambda: diffuse_jvp(Y, Y.float(), PATH),
    "diffuse_jvp: activation": lambda: diffuse_jvp(Y, Y, PATH, "relu"),
    "diffuse_secant: rows of t": lambda: diffuse_secant(Y, Y[:3], PATH),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_does_not_fit_the_graph_is_refused(call: str) -> None:
    """The kernels read memory by the graph's indices: a tensor of another size must not get there."""
    with pytest.raises((ValueError, TypeError), match=r"(?i)expected|must"):
        CALLS[call]()
