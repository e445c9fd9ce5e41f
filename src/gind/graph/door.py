"""Whatever PyG passes around, as a `Graph`."""

import torch
from torch import Tensor

from gind.graph.structure import Graph

__all__ = ["as_graph"]


def as_graph(
    edge_index: Tensor | Graph,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    *,
    directed: bool = False,
) -> Graph:
    """A Graph of whatever PyG passes around: edge_index, EdgeIndex, a torch sparse matrix, or a Graph itself."""
    if isinstance(edge_index, Graph):
        if edge_weight is not None or batch is not None:
            raise ValueError("A Graph already has its weights and its batch. Pass neither `edge_weight` nor `batch`.")
        return edge_index
    if isinstance(edge_index, Tensor) and edge_index.layout != torch.strided:
        if edge_weight is not None:
            raise ValueError("The values of a sparse matrix are its weights. Pass no `edge_weight`.")
        return Graph.from_sparse(edge_index, batch, directed=directed)
    return Graph.from_edge_index(edge_index, num_nodes, edge_weight, batch, directed=directed)
