"""Who hears of whom: neighborhoods and the matrix Â of the explicit systems, computed once per graph."""

import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv, MessagePassing
from torch_geometric.utils import coalesce

from gind.features import csr
from gind.features.op import multiply
from gind.graph import Graph, as_graph

__all__ = ["Convolution", "Sums", "neighbors", "propagation", "square", "times"]


def neighbors(
    x: Tensor,
    edge_index: Tensor | Graph,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    *,
    undirected: bool = True,
) -> Graph:
    """The edges j → i by which node i hears of node j, as a directed Graph without self-loops.

    Undirected: each pair both ways, once, with the weight that an undirected `Graph` gives it: repeats in one direction
    add up, and the two directions have their mean. The same `edge_index` gives the same object, so what is computed of
    it (`Graph.keep`) is computed once.
    """
    graph = as_graph(edge_index, x.shape[0], edge_weight, batch, directed=True)
    if graph.num_nodes != x.shape[0]:
        raise ValueError(f"`x` has {x.shape[0]} rows but the graph has {graph.num_nodes} nodes.")
    return graph.keep("both ways", lambda: _both_ways(graph)) if undirected or not graph.directed else graph


def propagation(graph: Graph, dtype: torch.dtype) -> Tensor:
    """Â = D^(-1/2) (A + I) D^(-1/2) as CSR; A_ij is the weight of j → i, D the row sums of A + I."""
    return graph.keep(("propagation", dtype), lambda: _propagation(graph).to(dtype))


def times(matrix: Tensor, z: Tensor) -> Tensor:
    """A Z for a constant CSR matrix A; its gradient needs no transpose of A."""
    return multiply((matrix.crow_indices(), matrix.col_indices(), matrix.values()), z)


class Sums(MessagePassing):
    """For a PyG layer: its sums over neighbors by `times`. PyTorch's CSR product sorts A anew for each gradient."""

    def message_and_aggregate(self, adj_t: Tensor, x: Tensor) -> Tensor:
        """A x."""
        return times(adj_t, x)


class Convolution(Sums, GCNConv):
    """PyG's `GCNConv` with our product."""


def square(rows: Tensor, columns: Tensor, values: Tensor, n: int) -> Tensor:
    """The (n, n) CSR matrix with these entries; those at the same place add up."""
    index, values = coalesce(torch.stack([rows, columns]), values, n, reduce="sum")
    start = F.pad(torch.bincount(index[0], minlength=n).cumsum(0), (1, 0))
    return csr(start, index[1], values, (n, n))


def _both_ways(graph: Graph) -> Graph:
    edges, n, graphs = torch.stack([graph.tail, graph.head]), graph.num_nodes, graph.num_graphs
    once = Graph.from_edge_index(edges, n, graph.weight, graph.batch, num_graphs=graphs) if graph.directed else graph
    # sorted by tail and then by head: the edges to smaller nodes come first
    both = torch.stack([torch.cat([once.head, once.tail]), torch.cat([once.tail, once.head])])
    weight = None if once.weight is None else once.weight.repeat(2)
    made = Graph.from_edge_index(both, n, weight, graph.batch, directed=True, num_graphs=graphs)
    return dataclasses.replace(made, loops=graph.loops)


def _propagation(graph: Graph) -> Tensor:
    n, node = graph.num_nodes, torch.arange(graph.num_nodes, device=graph.device)
    weight = torch.ones_like(graph.tail, dtype=torch.float64) if graph.weight is None else graph.weight
    # as PyG: a loop that is there keeps its weight
    loop = torch.where(graph.loops > 0, graph.loops, 1.0)
    value = torch.cat([weight, loop])
    target, source = torch.cat([graph.head, node]), torch.cat([graph.tail, node])
    scale = torch.zeros_like(loop).index_add_(0, target, value).rsqrt()
    return square(target, source, scale[target] * value * scale[source], n)
