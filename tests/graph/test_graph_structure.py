"""What becomes of an edge list: each edge once, whatever it came as."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from graphs import MODEST, Given, givens, values
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data

from gind.graph import Graph, diffuse, diffuse_moments

Edges = list[tuple[int, int, float]]


def expected_edges(case: Given, directed: bool) -> tuple[Edges, list[float]]:
    """(tail, head, weight) sorted, and the loops, by dictionaries."""
    weights = [1.0] * case.edge_index.shape[1] if case.edge_weight is None else case.edge_weight.tolist()
    loops = [0.0] * case.num_nodes
    one_way: dict[tuple[int, int], float] = {}
    every: Edges = []
    for (tail, head), w in zip(case.edge_index.t().tolist(), weights, strict=True):
        if tail == head:
            loops[tail] += w
            continue
        every.append((tail, head, w))
        one_way[tail, head] = one_way.get((tail, head), 0.0) + w
    if directed:
        return sorted(every), loops
    merged: Edges = []
    for tail, head in {(min(pair), max(pair)) for pair in one_way}:
        given_ways = [one_way[pair] for pair in ((tail, head), (head, tail)) if pair in one_way]
        merged.append((tail, head, sum(given_ways) / len(given_ways)))
    return sorted(merged), loops


def stored_edges(graph: Graph) -> Edges:
    weight = [1.0] * graph.num_edges if graph.weight is None else graph.weight.tolist()
    return sorted(zip(graph.tail.tolist(), graph.head.tolist(), weight, strict=True))


def assert_same_edges(actual: Edges, expected: Edges) -> None:
    assert [edge[:2] for edge in actual] == [edge[:2] for edge in expected]
    assert [edge[2] for edge in actual] == pytest.approx([edge[2] for edge in expected], rel=1e-12)


@pytest.mark.parametrize("directed", [False, True])
def test_edges_are_merged_by_the_rules(directed: bool) -> None:
    @MODEST
    @given(givens())
    def check(case: Given) -> None:
        graph = Graph.from_edge_index(case.edge_index, case.num_nodes, case.edge_weight, directed=directed)
        edges, loops = expected_edges(case, directed)
        assert graph.num_nodes == case.num_nodes
        assert graph.num_edges == len(edges)
        assert_same_edges(stored_edges(graph), edges)
        assert graph.loops.tolist() == pytest.approx(loops, rel=1e-12)
        assert (graph.weight is None) == all(w == 1 for _, _, w in edges)
        assert graph.directed == directed
        assert (graph.num_graphs, graph.batch) == (1, None)

        assert graph.ptr.tolist() == [sum(tail < i for tail, _, _ in edges) for i in range(case.num_nodes + 1)]
        assert graph.tail.tolist() == sorted(graph.tail.tolist())
        if not directed:
            assert bool((graph.tail < graph.head).all())

        incident = [sum(w for tail, head, w in edges if i in (tail, head)) for i in range(case.num_nodes)]
        leaving = [sum(w for tail, _, w in edges if tail == i) for i in range(case.num_nodes)]
        assert graph.degree.tolist() == pytest.approx(incident, rel=1e-12)
        assert graph.out_degree.tolist() == pytest.approx(leaving, rel=1e-12)
        assert graph.edge_mass.tolist() == pytest.approx([sum(leaving)], rel=1e-12)

    check()


def test_a_small_example() -> None:
    index = torch.tensor([[0, 1, 0, 2, 2, 3], [1, 0, 1, 1, 2, 3]])
    weight = torch.tensor([1.0, 5.0, 2.0, 4.0, 7.0, 0.5])
    graph = Graph.from_edge_index(index, 5, weight)
    # 0 → 1 is given twice (1 + 2), 1 → 0 once (5): mean 4
    assert stored_edges(graph) == [(0, 1, 4.0), (1, 2, 4.0)]
    assert graph.loops.tolist() == [0, 0, 7, 0.5, 0]
    assert stored_edges(Graph.from_edge_index(index, 5, weight, directed=True)) == [
        (0, 1, 1.0),
        (0, 1, 2.0),
        (1, 0, 5.0),
        (2, 1, 4.0),
    ]


def test_number_of_nodes_is_the_largest_of_what_is_known() -> None:
    index = torch.tensor([[0, 1], [1, 2]])
    assert Graph.from_edge_index(index).num_nodes == 3
    assert Graph.from_edge_index(index, 7).num_nodes == 7
    assert Graph.from_edge_index(index, batch=torch.zeros(5, dtype=torch.long)).num_nodes == 5
    assert Graph.from_edge_index(EdgeIndex(index, sparse_size=(6, 6))).num_nodes == 6
    assert Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long)).num_nodes == 0


def test_batches_are_counted_per_graph() -> None:
    index, batch = torch.tensor([[0, 2, 2], [1, 3, 5]]), torch.tensor([0, 0, 2, 2, 0, 2])
    graph = Graph.from_edge_index(index, batch=batch, edge_weight=torch.tensor([2.0, 3.0, 0.5]))
    assert graph.num_graphs == 3
    assert graph.node_count.tolist() == [3, 0, 3]
    assert graph.edge_mass.tolist() == [2.0, 0.0, 3.5]


def coo(index: Tensor, weight: Tensor, n: int) -> Tensor:
    return torch.sparse_coo_tensor(index, weight, (n, n), check_invariants=True)


SOURCES: dict[str, Callable[[Tensor, Tensor, int], Graph]] = {
    "int32": lambda i, w, n: Graph.from_edge_index(i.int(), n, w),
    "weights in a column": lambda i, w, n: Graph.from_edge_index(i, n, w[:, None]),
    "float32 weights": lambda i, w, n: Graph.from_edge_index(i, n, w.float()),
    "EdgeIndex": lambda i, w, n: Graph.from_edge_index(EdgeIndex(i, sparse_size=(n, n)), edge_weight=w),
    "Data": lambda i, w, n: Graph.from_data(Data(edge_index=i, edge_weight=w, num_nodes=n)),
    "COO": lambda i, w, n: Graph.from_sparse(coo(i, w, n)),
    "coalesced COO": lambda i, w, n: Graph.from_sparse(coo(i, w, n).coalesce()),
    "CSR": lambda i, w, n: Graph.from_sparse(coo(i, w, n).to_sparse_csr()),
    "CSC": lambda i, w, n: Graph.from_sparse(coo(i, w, n).to_sparse_csc()),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_graph(source: str) -> None:
    @MODEST
    @given(givens())
    def check(case: Given) -> None:
        # quarters: exact in float32
        weight = torch.arange(case.edge_index.shape[1], dtype=torch.float64) % 7 / 4
        expected = Graph.from_edge_index(case.edge_index, case.num_nodes, weight)
        actual = SOURCES[source](case.edge_index, weight, case.num_nodes)
        assert type(actual.tail) is Tensor
        for field in dataclasses.fields(Graph):
            a, e = getattr(actual, field.name), getattr(expected, field.name)
            assert torch.equal(a, e) if isinstance(e, Tensor) else a == e

    check()


def test_a_pyg_batch_is_its_graphs_side_by_side() -> None:
    parts = [
        Data(edge_index=torch.tensor([[0, 1], [1, 2]]), edge_weight=torch.tensor([2.0, 3.0]), num_nodes=4),
        Data(edge_index=torch.empty(2, 0, dtype=torch.long), edge_weight=torch.empty(0), num_nodes=2),
        Data(edge_index=torch.tensor([[1], [0]]), edge_weight=torch.tensor([0.5]), num_nodes=2),
    ]
    graph = Graph.from_data(Batch.from_data_list(parts))
    y = values(0, 8, 3, dtype=torch.float64)
    out, sums = diffuse_moments(y, graph)
    singles = [Graph.from_data(part) for part in parts]
    pieces = [diffuse_moments(piece, single) for piece, single in zip((y[:4], y[4:6], y[6:]), singles, strict=True)]
    assert graph.num_graphs == 3
    assert graph.node_count.tolist() == [4, 2, 2]
    torch.testing.assert_close(out, torch.cat([piece[0] for piece in pieces]))
    for k, total in enumerate(sums):
        torch.testing.assert_close(total, torch.cat([piece[1][k] for piece in pieces]))


def test_a_pyg_batch_may_end_with_an_empty_graph() -> None:
    none = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=0)
    batch: Any = Batch.from_data_list([Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2), none, none])
    assert Graph.from_data(batch).num_graphs == batch.num_graphs == 3


@pytest.mark.parametrize("activation", ["tanh", "identity"])
def test_orientation_of_an_undirected_graph_does_not_matter(activation: str) -> None:
    @MODEST
    @given(givens(), st.integers(0, 2**20))
    def check(case: Given, seed: int) -> None:
        # each pair in one direction only: reversing one of two opposite edges is another graph
        first = Graph.from_edge_index(case.edge_index, case.num_nodes, case.edge_weight)
        flip = torch.rand(first.num_edges, generator=torch.Generator().manual_seed(seed)) < 0.5
        tail, head = torch.where(flip, first.head, first.tail), torch.where(flip, first.tail, first.head)
        second = Graph.from_edge_index(torch.stack([tail, head]), case.num_nodes, first.weight)
        both = torch.stack([torch.cat([tail, head]), torch.cat([head, tail])])
        double = None if first.weight is None else first.weight.repeat(2)
        third = Graph.from_edge_index(both, case.num_nodes, double)
        as_given = Graph.from_edge_index(torch.stack([tail, head]), case.num_nodes, first.weight, directed=True)
        y = values(seed, case.num_nodes, 3, dtype=torch.float64)
        size = float(first.degree.max()) if case.num_nodes else 0.0
        for graph in (second, third, as_given):
            torch.testing.assert_close(graph.degree, first.degree, rtol=1e-12, atol=0)
            out = diffuse(y, graph, activation)
            torch.testing.assert_close(out, diffuse(y, first, activation), rtol=1e-12, atol=1e-14 * size)

    check()


def test_a_graph_is_frozen() -> None:
    index, batch = torch.tensor([[0, 1], [1, 2]]), torch.tensor([0, 0, 0, 1])
    weight = torch.tensor([2.0, 3.0], dtype=torch.float64)
    graph = Graph.from_edge_index(index, 4, weight, batch)
    for field in dataclasses.fields(Graph):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(graph, field.name, None)
    # nor through the tensors it was made of
    for tensor in (index, batch, weight):
        tensor.zero_()
    assert stored_edges(graph) == [(0, 1, 2.0), (1, 2, 3.0)]
    assert graph.batch is not None
    assert graph.batch.tolist() == [0, 0, 0, 1]
    assert graph.node_count.tolist() == [3, 1]


@pytest.mark.parametrize("directed", [False, True])
def test_the_double_cover_tells_the_ends_of_an_edge_apart(directed: bool) -> None:
    @MODEST
    @given(givens())
    def check(case: Given) -> None:
        batch = torch.arange(case.num_nodes) % 3 if case.num_nodes and not case.edge_index.numel() else None
        graph = Graph.from_edge_index(case.edge_index, case.num_nodes, case.edge_weight, batch, directed=directed)
        cover = graph.cover
        once = stored_edges(graph)
        back = [] if directed else [(head, tail, w) for tail, head, w in once]
        assert stored_edges(cover) == sorted((2 * tail, 2 * head + 1, w) for tail, head, w in once + back)
        assert cover.num_nodes == 2 * graph.num_nodes
        assert torch.equal(cover.loops.view(-1, 2), graph.loops[:, None].expand(-1, 2))
        assert cover.num_graphs == graph.num_graphs
        assert (cover.batch is None) == (graph.batch is None)
        if graph.batch is not None and cover.batch is not None:
            assert torch.equal(cover.batch.view(-1, 2), graph.batch[:, None].expand(-1, 2))
        tails = torch.arange(cover.num_nodes).repeat_interleave(cover.ptr.diff())
        assert torch.equal(cover.tail, tails)
        assert graph.cover is cover

    check()
