"""The adjacency matrix of a graph, scaled to spectral radius 1, as a symmetric operator."""

import dataclasses
from typing import Literal, final

import torch
from torch import Tensor

from gind.features.op import multiply
from gind.graph import Graph, as_graph
from gind.graph.radius import collatz_wielandt
from gind.graph.structure import lasting

__all__ = ["Adjacency", "AdjacencyKind", "adjacency", "open_graph", "spectral_radius"]

AdjacencyKind = Literal["symmetric", "spectral"]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Adjacency:
    """Â, symmetric, with entries >= 0 and all eigenvalues in [-1, 1]."""

    crow: Tensor
    col: Tensor
    values: Tensor

    def __call__(self, z: Tensor) -> Tensor:
        """ÂZ, (n, h) to (n, h), differentiable in Z."""
        return multiply((self.crow, self.col, self.values), z)

    def dense(self) -> Tensor:
        """(n, n)."""
        n = len(self.crow) - 1
        row = torch.repeat_interleave(torch.arange(n, device=self.col.device), self.crow.diff())
        return self.values.new_zeros(n, n).index_put_((row, self.col), self.values, accumulate=True)


def open_graph(x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None, batch: Tensor | None) -> Graph:
    """The graph of what a model is called with; refused if it has not one node per row of `x`."""
    graph = as_graph(edge_index, len(x), edge_weight, batch)
    if graph.num_nodes != len(x):
        raise ValueError(f"`x` has {len(x)} rows but the graph has {graph.num_nodes} nodes.")
    return graph


def adjacency(graph: Graph, dtype: torch.dtype, kind: AdjacencyKind = "symmetric") -> Adjacency:
    """Â in a precision, computed once per graph.

    symmetric   D^(-½)(A + I)D^(-½), D the row sums of A + I; self-loops in the data count. Its spectral radius is 1.
    spectral    A/ρ(A) graph by graph, with an upper bound of ρ(A): the spectral radius is at most 1.
    """
    return graph.keep((adjacency, kind, dtype), lambda: _build(graph, dtype, kind))


def _build(graph: Graph, dtype: torch.dtype, kind: AdjacencyKind) -> Adjacency:
    row, col, value = _entries(graph, float(kind == "symmetric"))
    if kind == "symmetric":
        degree = torch.zeros(graph.num_nodes, dtype=torch.float64, device=graph.device).index_add_(0, row, value)
        value = value * (degree[row] * degree[col]).rsqrt()
    else:
        radius = spectral_radius(graph)
        scale = torch.where(radius > 0, 1 / radius, 0.0)
        value = value * (scale.expand(graph.num_nodes) if graph.batch is None else scale[graph.batch])[row]
    order = torch.argsort(row * graph.num_nodes + col)
    counts = torch.bincount(row, minlength=graph.num_nodes)
    return Adjacency(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), col[order], value[order].to(dtype))


@lasting
def spectral_radius(graph: Graph) -> Tensor:
    """(graphs,) float64: an upper bound of ρ(A), A without the identity but with the self-loops of the data."""
    # with I added the eigenvalue -ρ of a bipartite graph is no rival of ρ
    row, col, value = _entries(graph, 1.0)

    def apply(x: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add_(0, row, value * x[col])

    return (collatz_wielandt(graph, apply, steps=1000, tol=1e-4, patience=30) - 1).clamp_min(0.0)


def _entries(graph: Graph, identity: float) -> tuple[Tensor, Tensor, Tensor]:
    """Row, column and float64 value of A + identity · I, with every edge in both directions."""
    nodes = torch.arange(graph.num_nodes, device=graph.device)
    weight = torch.ones_like(graph.tail, dtype=torch.float64) if graph.weight is None else graph.weight
    row, col = torch.cat([graph.tail, graph.head, nodes]), torch.cat([graph.head, graph.tail, nodes])
    return row, col, torch.cat([weight, weight, graph.loops + identity])
