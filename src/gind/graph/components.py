"""Which nodes are connected."""

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from gind.graph.structure import Graph

__all__ = ["components"]


def components(graph: Graph) -> Tensor:
    """(n,) the number of each node's connected component, from 0 on; computed once per graph."""
    return graph.keep(components, lambda: _label(graph))


def _label(graph: Graph) -> Tensor:
    if graph.num_nodes == 0:
        return torch.empty(0, dtype=torch.long, device=graph.device)
    tail, head = graph.tail.numpy(force=True), graph.head.numpy(force=True)
    shape = (graph.num_nodes, graph.num_nodes)
    _, label = connected_components(coo_array((np.ones(len(tail), np.bool_), (tail, head)), shape), directed=False)
    return torch.from_numpy(label).long().to(graph.device)
