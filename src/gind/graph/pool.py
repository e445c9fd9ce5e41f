"""From nodes to graphs."""

from typing import Literal

import torch
from torch import Tensor

from gind.graph.structure import Graph

__all__ = ["Pooling", "pool"]

Pooling = Literal["sum", "mean", "max"]


def pool(z: Tensor, graph: Graph, how: Pooling) -> Tensor:
    """(nodes, h) to (graphs, h). A graph without nodes gets 0."""
    batch = graph.batch if graph.batch is not None else torch.zeros(len(z), dtype=torch.long, device=z.device)
    index = batch[:, None].expand_as(z)
    reduce = {"sum": "sum", "mean": "mean", "max": "amax"}[how]
    out = z.new_zeros(graph.num_graphs, z.shape[1])
    return out.scatter_reduce(0, index, z, reduce, include_self=False)
