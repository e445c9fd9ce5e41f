"""Who hears of whom: neighborhoods and the matrix Â of the explicit systems, computed once per graph."""

import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv, MessagePassing
from torch_geometric.utils import coalesce, to_undirected

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

    Undirected: each pair both ways, once, with the mean of its weights. The same `edge_index` gives the same object,
    so what is computed of it (`Graph.keep`) is computed once.
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
    edges, n = torch.stack([graph.tail, graph.head]), graph.num_nodes
    if graph.weight is None:
        both, weight = to_undirected(edges, num_nodes=n), None
    else:
        # "add" would double the weights of a graph that is symmetric already
        both, weight = to_undirected(edges, graph.weight, n, reduce="mean")
    made = Graph.from_edge_index(both, n, weight, graph.batch, directed=True, num_graphs=graph.num_graphs)
    return dataclasses.replace(made, loops=graph.loops)


def _propagation(graph: Graph) -> Tensor:
    n, node = graph.num_nodes, torch.arange(graph.num_nodes, device=graph.device)
    if graph.weight is None:
        weight, loop = torch.ones_like(graph.tail, dtype=torch.float64), torch.ones_like(graph.loops)
    else:
        # as PyG: a loop that is there keeps its weight
        weight, loop = graph.weight, torch.where(graph.loops > 0, graph.loops, 1.0)
    value = torch.cat([weight, loop])
    target, source = torch.cat([graph.head, node]), torch.cat([graph.tail, node])
    scale = torch.zeros_like(loop).index_add_(0, target, value).rsqrt()
    return square(target, source, scale[target] * value * scale[source], n)
