"""Equilibria are solved in the precision of their parameters, under autocast too, and lose little of it."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from gind.graph import Graph

__all__ = ["centered", "without_autocast"]


def centered(b: Tensor, graph: Graph) -> Tensor:
    """(n, h) to (n, h): b less its mean over the nodes of each graph, for what depends on differences alone.

    Numbers get smaller, and with them rounding errors. No gradient goes through the mean: that of differences adds up
    to 0 over the nodes, and would leave nothing there. Where the sum overflows nothing is taken away.
    """
    rows = b.detach()
    if graph.batch is None:
        return b - (rows.sum(dim=0) / max(len(rows), 1)).nan_to_num(0.0, 0.0, 0.0)
    sums = rows.new_zeros(graph.num_graphs, rows.shape[1]).index_add_(0, graph.batch, rows)
    mean = (sums / graph.node_count.clamp_min(1)[:, None]).nan_to_num(0.0, 0.0, 0.0)
    return b - mean.to(b.dtype)[graph.batch]


@contextlib.contextmanager
def without_autocast(b: Tensor, dtype: torch.dtype) -> Iterator[Tensor]:
    """Autocast is off within, and b, which a layer before may have left in another precision, is in this one."""
    if not isinstance(b, Tensor) or not torch.is_autocast_enabled(b.device.type):
        yield b
        return
    with torch.autocast(b.device.type, enabled=False):
        yield b.to(dtype) if b.is_floating_point() else b
