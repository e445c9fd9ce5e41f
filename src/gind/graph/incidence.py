"""Differential operators of a graph: gradient, divergence, and the two fused into the nonlinear flux."""

from typing import NamedTuple

import torch
from torch import Tensor

from gind import kernels
from gind.graph.structure import Graph

__all__ = ["Moments", "diffuse", "diffuse_jvp", "diffuse_moments", "diffuse_secant", "divergence", "gradient"]


def gradient(u: Tensor, graph: Graph) -> Tensor:
    """(Gu)_e = u_head - u_tail: n x h to m x h."""
    _check(u, graph.num_nodes, "nodes")
    return u[graph.head] - u[graph.tail]


def divergence(j: Tensor, graph: Graph) -> Tensor:
    """-Gᵀj, minus the adjoint of the gradient: m x h to n x h."""
    _check(j, graph.num_edges, "edges")
    out = j.new_zeros(graph.num_nodes, *j.shape[1:])
    return out.index_add(0, graph.tail, j).index_add(0, graph.head, j, alpha=-1)


class Moments(NamedTuple):
    """Sums over the edges of each graph, per channel: (graphs, h), float64."""

    sigma: Tensor
    """Σ wσ(v), the only one that depends on the orientation of the edges"""
    square: Tensor
    """Σ wσ(v)²"""
    primitive: Tensor
    """Σ wσ̃(v), σ̃ = ∫σ"""


def diffuse(y: Tensor, graph: Graph, activation: str = "tanh") -> Tensor:
    """Gᵀ w σ(Gy), that is Σ_j w_ij σ(y_i - y_j) at node i; no edge tensor is stored."""
    out, _ = kernels.flux(y, *_raw(y, graph, activation), _batch(graph), graph.num_graphs, activation, False)
    return out


def diffuse_moments(
    y: Tensor, graph: Graph, activation: str = "tanh", *, primitive: bool = True
) -> tuple[Tensor, Moments]:
    """`diffuse`, and the moments of the flux on the way; without `primitive`, the costly one, that is 0."""
    raw = _raw(y, graph, activation)
    out, sums = kernels.flux(y, *raw, _batch(graph), graph.num_graphs, activation, True, primitive)
    return out, Moments(sums[0], sums[1], sums[2])


def diffuse_jvp(y: Tensor, t: Tensor, graph: Graph, activation: str = "tanh") -> Tensor:
    """Derivative of `diffuse` at y in direction t, Gᵀ w σ'(Gy) ⊙ Gt: symmetric, so also its transpose."""
    return kernels.flux_jvp(y, t, *_raw(y, graph, activation, t), activation)


def diffuse_secant(y: Tensor, t: Tensor, graph: Graph, activation: str = "tanh") -> Tensor:
    """Gᵀ w (σ(v)/v) ⊙ Gt with v = Gy: the slope of the chord from 0 to v in place of the tangent's."""
    return kernels.flux_secant(y, t, *_raw(y, graph, activation, t), activation)


def _raw(y: Tensor, graph: Graph, activation: str, t: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the kernels take; they trust it, so everything is checked here."""
    if y.dim() != 2 or y.shape[0] != graph.num_nodes:
        raise ValueError(f"Expected one row for each of the {graph.num_nodes} nodes, got shape {tuple(y.shape)}.")
    if y.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"Expected float32 or float64, got {y.dtype}.")
    if t is not None and (t.shape != y.shape or t.dtype != y.dtype):
        raise ValueError(
            f"Expected a direction like the point, {y.dtype} of shape {tuple(y.shape)}, got {t.dtype} of shape "
            f"{tuple(t.shape)}."
        )
    if activation not in kernels.ACTIVATIONS:
        raise ValueError(f"`activation` must be one of {kernels.ACTIVATIONS}, got {activation!r}.")
    return graph.tail, graph.head, graph.ptr, graph.weight_as(y.dtype)


def _batch(graph: Graph) -> Tensor:
    return torch.empty(0, dtype=torch.long, device=graph.device) if graph.batch is None else graph.batch


def _check(u: Tensor, rows: int, what: str) -> None:
    if u.dim() == 0 or u.shape[0] != rows:
        raise ValueError(f"Expected {rows} rows, one for each of the {what}, got shape {tuple(u.shape)}.")
