"""Upper bounds of spectral radii of nonnegative matrices on a graph."""

from collections.abc import Callable

import torch
from torch import Tensor

from gind.graph.structure import Graph

__all__ = ["collatz_wielandt"]


def collatz_wielandt(
    graph: Graph,
    apply: Callable[[Tensor], Tensor],
    *,
    steps: int,
    tol: float,
    patience: int,
    keep: float = 0.0,
    floor: float = 1e-100,
) -> Tensor:
    """(graphs,) float64: an upper bound of ρ(Q) per graph, for a matrix Q with entries >= 0, given as x ↦ Qx.

    For every positive x, max_i (Qx)_i/x_i ≥ ρ(Q) (Collatz-Wielandt), and power iteration, x ← keep x + (1 - keep) Qx
    scaled and not below `floor`, makes the bound tight. So this is a bound after any number of steps, never an
    underestimate. It ends after `patience` steps that gain less than a share `tol`: power iteration may start slowly.
    """
    batch = torch.zeros_like(graph.ptr[1:]) if graph.batch is None else graph.batch
    x = torch.ones(graph.num_nodes, dtype=torch.float64, device=graph.device)
    best = torch.full((graph.num_graphs,), torch.inf, dtype=torch.float64, device=graph.device)
    left = patience
    for _ in range(steps):
        qx = apply(x)
        bound = torch.zeros_like(best).scatter_reduce_(0, batch, qx / x, "amax")
        left = patience if bool((bound < best * (1 - tol)).any()) else left - 1
        best = torch.minimum(best, bound)
        if left == 0:
            break
        top = torch.zeros_like(best).scatter_reduce_(0, batch, qx, "amax")
        x = (keep * x + (1 - keep) * qx / top.clamp_min(1e-300)[batch]).clamp_min(floor)
    return best
