"""Equilibria are solved in the precision of their parameters, under autocast too, and lose little of it."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from gind.graph import Graph, components

__all__ = ["centered", "without_autocast"]


def centered(b: Tensor, graph: Graph) -> Tensor:
    """(n, h) to (n, h): b less its mean over connected nodes, for what depends on differences along edges alone.

    A node counts by its degree, which makes Σ_i d_i |b_i|² as small as it can be, and with it the rounding errors of
    differences. No gradient goes through the mean: that of differences adds up to 0 over connected nodes, and would
    leave nothing there. Where the sum overflows nothing is taken away.
    """
    part = components(graph)
    count = int(part.max()) + 1 if len(part) else 0
    rows, degree = b.detach(), graph.degree.to(b.dtype)
    if count == 1:
        return b - _mean(degree @ rows, degree.sum())
    sums = rows.new_zeros(count, rows.shape[1]).index_add_(0, part, degree[:, None] * rows)
    sizes = degree.new_zeros(count).index_add_(0, part, degree)
    return b - _mean(sums, sizes[:, None])[part]


def _mean(sums: Tensor, sizes: Tensor) -> Tensor:
    """0 where there is nothing, or too much."""
    return (sums / sizes).nan_to_num(0.0, 0.0, 0.0)


@contextlib.contextmanager
def without_autocast(b: Tensor, dtype: torch.dtype) -> Iterator[Tensor]:
    """Autocast is off within, and b, which a layer before may have left in another precision, is in this one."""
    if not isinstance(b, Tensor) or not torch.is_autocast_enabled(b.device.type):
        yield b
        return
    with torch.autocast(b.device.type, enabled=False):
        yield b.to(dtype) if b.is_floating_point() else b
