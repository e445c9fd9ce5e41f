"""Normalizations of a layer's output. They come after the solve, so that the energy knows nothing of them."""

from typing import Literal

import torch
from torch import Tensor

from gind.graph import Graph

__all__ = ["OutputNorm", "normalize"]

OutputNorm = Literal["node", "graph"]


def normalize(out: Tensor, graph: Graph, by: str) -> Tensor:
    """(n, h) to (n, h): out / rms(out), the root mean square of each node's row or of each graph's rows.

    By node the direction of a signal stays where it fades; by graph a next layer gets an input of known size. What is
    all zero stays so. No ε is added: a signal that fades along a chain must come back to size 1 at every distance.
    """
    # in units of the largest entry: squares of small numbers would vanish
    unit = out.detach().abs().amax(dim=1)
    if by == "graph":
        unit = _by_graph(unit, graph, "amax")
    unit = torch.where(unit > 0, unit, 1.0)
    square = (out / unit[:, None]).square().mean(dim=1)
    if by == "graph":
        square = _by_graph(square, graph, "mean")
    return out / (unit * torch.where(square > 0, square, 1.0).sqrt())[:, None]


def _by_graph(rows: Tensor, graph: Graph, how: str) -> Tensor:
    """(n,) each node gets the largest, or the mean, of its graph."""
    batch = torch.zeros(len(rows), dtype=torch.long, device=rows.device) if graph.batch is None else graph.batch
    return rows.new_zeros(graph.num_graphs).scatter_reduce(0, batch, rows, how, include_self=False)[batch]
