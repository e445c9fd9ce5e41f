"""Degree scalings against dense formulas, and the bound of ‖√w Ĝ‖₂² against the singular values."""

import pytest
import torch
from graphs import MODEST, Given, dense, givens
from hypothesis import given
from torch import Tensor

from gind.graph import Graph, Identity, OutDegree, Row, Scaling, Symmetric, incidence_norm

CONTRACTING: list[Scaling] = [
    Symmetric(),
    Symmetric(augmented=False),
    Row(),
    Row(augmented=False),
    Row(False, loops=True),
]
OUT: list[Scaling] = [OutDegree(), OutDegree(augmented=False), OutDegree(rows=True), OutDegree(False, loops=True)]
ALL: list[Scaling] = [*CONTRACTING, *OUT, Symmetric(factor=1.0), Identity()]
PAIRS = pytest.mark.parametrize(
    ("scaling", "directed"), [(s, True) for s in ALL] + [(s, False) for s in ALL if s not in OUT], ids=repr
)


def build(case: Given, directed: bool, batch: Tensor | None = None) -> Graph:
    return Graph.from_edge_index(case.edge_index, case.num_nodes, case.edge_weight, batch, directed=directed)


def root_w_g(graph: Graph) -> Tensor:
    """√w G, dense."""
    weight = torch.ones(graph.num_edges).double() if graph.weight is None else graph.weight
    return weight.sqrt()[:, None] * dense(torch.stack([graph.tail, graph.head]), graph.num_nodes)


def largest(matrix: Tensor) -> float:
    """‖matrix‖₂², 0 if it is empty."""
    return float(torch.linalg.matrix_norm(matrix, 2) ** 2) if matrix.numel() else 0.0


def expected_vector(scaling: Scaling, graph: Graph) -> list[float]:
    laplacian = root_w_g(graph).T @ root_w_g(graph)
    out = torch.zeros_like(laplacian[0])
    for e, tail in enumerate(graph.tail.tolist()):
        out[tail] += 1.0 if graph.weight is None else graph.weight[e]
    vector = []
    for i in range(graph.num_nodes):
        match scaling:
            case Identity():
                vector.append(1.0)
                continue
            case OutDegree(augmented=augmented, loops=loops, factor=factor):
                degree = float(out[i]) + augmented
            case (
                Symmetric(augmented=augmented, loops=loops, factor=factor)
                | Row(augmented=augmented, loops=loops, factor=factor)
            ):
                degree = float(laplacian[i, i]) + augmented
        degree += float(graph.loops[i]) if loops else 0
        vector.append((factor * degree) ** -0.5 if degree > 0 else 0.0)
    return vector


@PAIRS
def test_vector_is_the_dense_formula(scaling: Scaling, directed: bool) -> None:
    @MODEST
    @given(givens())
    def check(case: Given) -> None:
        graph = build(case, directed)
        vector = scaling.vector(graph)
        assert vector.dtype == torch.float64
        assert bool(vector.isfinite().all())
        assert vector.tolist() == pytest.approx(expected_vector(scaling, graph), rel=1e-12)
        assert scaling.vector(graph) is vector

    check()


@PAIRS
def test_incidence_norm_bounds_the_largest_singular_value(scaling: Scaling, directed: bool) -> None:
    @MODEST
    @given(givens())
    def check(case: Given) -> None:
        graph = build(case, directed)
        bound = incidence_norm(graph, scaling)
        assert bound.shape == (1,)
        scaled = root_w_g(graph) * scaling.vector(graph)
        exact, signless = largest(scaled), largest(scaled.abs())
        assert exact <= float(bound) * (1 + 1e-12)
        if scaling.contracts:
            assert float(bound) == 1
        else:
            assert float(bound) <= 2 * signless

    check()


def test_contraction_is_claimed_for_exactly_the_incident_degrees() -> None:
    assert [scaling for scaling in ALL if scaling.contracts] == CONTRACTING
    assert [scaling for scaling in ALL if scaling.row] == [*CONTRACTING[2:], OutDegree(rows=True)]


@pytest.mark.parametrize("scaling", [OutDegree(), Identity()], ids=repr)
def test_incidence_norm_is_per_graph(scaling: Scaling) -> None:
    @MODEST
    @given(givens(), givens())
    def check(first: Given, second: Given) -> None:
        shifted = second.edge_index + first.num_nodes
        joined = Given(torch.cat([first.edge_index, shifted], 1), first.num_nodes + second.num_nodes, None)
        # graph 1 of 3 has no nodes
        batch = torch.tensor([0] * first.num_nodes + [2] * second.num_nodes)
        singles = [build(case._replace(edge_weight=None), True) for case in (first, second)]
        actual = incidence_norm(build(joined, True, batch), scaling)
        for k, single in ((0, singles[0]), (2, singles[1])):
            exact = root_w_g(single) * scaling.vector(single)
            assert largest(exact) * (1 - 1e-12) <= float(actual[k]) <= 2 * largest(exact.abs())
        assert actual[1] == 0

    check()


def broom(children: int, leaves: int) -> Graph:
    """A root with many children, each with many leaves, all edges pointing away from the root."""
    child = 1 + torch.arange(children)
    leaf = 1 + children + torch.arange(children * leaves)
    tail = torch.cat([torch.zeros(children, dtype=torch.long), child.repeat_interleave(leaves)])
    return Graph.from_edge_index(torch.stack([tail, torch.cat([child, leaf])]), directed=True)


def test_incidence_norm_stays_tight_where_power_iteration_starts_slowly() -> None:
    """Root and children have nearly the same row sum in Q: the first step hardly changes the bound at the root."""
    graph = broom(259, 16)
    scaling = OutDegree()
    s = scaling.vector(graph)
    # a tree is bipartite, so the signless matrix has the same largest eigenvalue: by power iteration
    x = torch.ones_like(s)
    for _ in range(500):
        edge = (s * x)[graph.head] + (s * x)[graph.tail]
        y = s * torch.zeros_like(s).index_add_(0, graph.head, edge).index_add_(0, graph.tail, edge)
        exact, x = float(y.norm() / x.norm()), y / y.norm()
    assert exact * (1 - 1e-9) <= float(incidence_norm(graph, scaling)) <= 2 * exact


def test_symmetric_bound_is_attained() -> None:
    """On a single edge without augmentation, ‖Ĝ‖² = 1: the claim cannot be improved."""
    graph = Graph.from_edge_index(torch.tensor([[0], [1]]))
    assert largest(root_w_g(graph) * Symmetric(augmented=False).vector(graph)) == pytest.approx(1)


@pytest.mark.parametrize("scaling", ALL, ids=repr)
def test_isolated_nodes_give_no_infinity(scaling: Scaling) -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 3], [1, 3]]), 4, directed=True)  # node 3 has only a loop
    vector = scaling.vector(graph)
    assert bool(vector.isfinite().all())
    assert bool(incidence_norm(graph, scaling).isfinite().all())
    assert vector[2:].tolist() == pytest.approx(expected_vector(scaling, graph)[2:])
    if not getattr(scaling, "augmented", True):
        assert vector[2] == 0


@pytest.mark.parametrize("scaling", OUT, ids=repr)
def test_out_degree_needs_directions(scaling: Scaling) -> None:
    graph = Graph.from_edge_index(torch.tensor([[0], [1]]))
    for call in (scaling.vector, scaling.degree, lambda g: incidence_norm(g, scaling)):
        with pytest.raises(ValueError, match="directed=True"):
            call(graph)
