"""Readouts: linear or MLP per node, and pooling of nodes to graphs."""

from typing import Literal

import torch
from torch import Tensor, nn

from gind.graph import Graph

__all__ = ["Head", "Pooling", "check_choice", "make_head", "pool"]

Head = Literal["linear", "mlp"]
Pooling = Literal["sum", "mean", "max"]


def make_head(kind: Head, channels: int, out_channels: int, dropout: float) -> nn.Module:
    """A linear map, or one hidden layer of the same width with ELU; dropout before each linear map."""
    if kind == "linear":
        return nn.Sequential(nn.Dropout(dropout), nn.Linear(channels, out_channels))
    return nn.Sequential(
        nn.Dropout(dropout),
        nn.Linear(channels, channels),
        nn.ELU(),
        nn.Dropout(dropout),
        nn.Linear(channels, out_channels),
    )


def pool(z: Tensor, graph: Graph, how: Pooling) -> Tensor:
    """(nodes, h) to (graphs, h). A graph without nodes gets 0."""
    batch = graph.batch if graph.batch is not None else torch.zeros(len(z), dtype=torch.long, device=z.device)
    index = batch[:, None].expand_as(z)
    reduce = {"sum": "sum", "mean": "mean", "max": "amax"}[how]
    out = z.new_zeros(graph.num_graphs, z.shape[1])
    return out.scatter_reduce(0, index, z, reduce, include_self=False)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a name that is not among the choices."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}.")
