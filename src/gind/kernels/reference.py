"""The fused operators in plain PyTorch: their definition, and the oracle of the tests.

Every edge tensor is materialized (m x h), which is exactly what the other implementations avoid. An edge
e = (tail i → head j) has the difference v_e = y_j - y_i. The functions share one shape of result: an amount
q_e per edge and channel that is added at the head and taken from the tail,

    scatter(q)_i = Σ_{e into i} w_e q_e - Σ_{e out of i} w_e q_e = (Gᵀ w q)_i .
"""

import math

import torch
from torch import Tensor

__all__ = ["activate", "all_three", "flux", "flux_curve", "flux_jvp", "flux_secant", "flux_vjp", "secant_curve"]


def activate(v: Tensor, activation: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """σ(v), its slope σ'(v), its curvature σ''(v) and its primitive σ̃(v) = ∫₀ᵛσ."""
    if activation == "identity":
        return v, torch.ones_like(v), torch.zeros_like(v), v * v / 2
    sigma = torch.tanh(v)
    slope = 1 - sigma * sigma
    # log cosh v: near zero through tanh, where |v| + log(1 + exp(-2|v|)) - log 2 would cancel
    far = v.abs() + torch.log1p(torch.exp(-2 * v.abs())) - math.log(2)
    primitive = torch.where(v.abs() < 0.5, -torch.log1p(-sigma * sigma) / 2, far)
    return sigma, slope, -2 * sigma * slope, primitive


def flux(
    y: Tensor,
    edges: tuple[Tensor, Tensor, Tensor],
    batch: Tensor,
    num_graphs: int,
    activation: str,
    moments: bool,
    primitive: bool = True,
) -> tuple[Tensor, Tensor]:
    """flux(y)_i = Σ_j w_ij σ(y_i - y_j), and (Σwσ, Σwσ², Σwσ̃ or 0) per graph and channel in float64."""
    tail, head, weight = edges
    v = y[head] - y[tail]
    if not moments:
        sigma = torch.tanh(v) if activation == "tanh" else v
        return _scatter(sigma, y, edges), y.new_empty(0, dtype=torch.float64)
    if primitive:
        sigma, _, _, integral = activate(v, activation)
    else:
        sigma = torch.tanh(v) if activation == "tanh" else v
        integral = torch.zeros_like(v)
    terms = torch.stack([sigma, sigma * sigma, integral]).double()
    if weight.numel():
        terms = terms * weight[:, None]
    if batch.numel() == 0 and num_graphs == 1:
        return _scatter(sigma, y, edges), terms.sum(dim=1, keepdim=True)
    sums = terms.new_zeros(3, num_graphs, y.shape[1])
    return _scatter(sigma, y, edges), sums.index_add(1, batch[tail], terms)


def flux_jvp(y: Tensor, t: Tensor, edges: tuple[Tensor, Tensor, Tensor], activation: str) -> Tensor:
    """flux_jvp(y, t)_i = Σ_j w_ij σ'(y_i - y_j) (t_i - t_j): symmetric in t, hence its own transpose."""
    tail, head, _ = edges
    dt = t[head] - t[tail]
    if activation == "tanh":
        sigma = torch.tanh(y[head] - y[tail])
        dt = (1 - sigma * sigma) * dt
    return _scatter(dt, y, edges)


def flux_secant(y: Tensor, t: Tensor, edges: tuple[Tensor, Tensor, Tensor], activation: str) -> Tensor:
    """flux_secant(y, t)_i = Σ_j w_ij σ(v)/v (t_i - t_j), v = y_i - y_j: the chord's slope, not the tangent's."""
    tail, head, _ = edges
    return _scatter(_chord(y[head] - y[tail], activation)[0] * (t[head] - t[tail]), y, edges)


def secant_curve(y: Tensor, t: Tensor, u: Tensor, edges: tuple[Tensor, Tensor, Tensor], activation: str) -> Tensor:
    """Gradient of ⟨u, flux_secant(y, t)⟩ in y."""
    tail, head, _ = edges
    bend = _chord(y[head] - y[tail], activation)[1]
    return _scatter(bend * (t[head] - t[tail]) * (u[head] - u[tail]), y, edges)


def _chord(v: Tensor, activation: str) -> tuple[Tensor, Tensor]:
    """σ(v)/v and its derivative, the latter by its series near 0, where the formula would cancel."""
    if activation == "identity":
        return torch.ones_like(v), torch.zeros_like(v)
    safe, s = torch.where(v == 0, 1.0, v), v * v
    sigma = torch.tanh(safe)
    slope = torch.where(v == 0, 1.0, sigma / safe)
    series = v * (-2 / 3 + s * (8 / 15 + s * (-102 / 315 + s * (496 / 2835 - s * 13820 / 155925))))
    return slope, torch.where(v.abs() < 0.1, series, (1 - sigma * sigma - sigma / safe) / safe)


def flux_curve(y: Tensor, t: Tensor, u: Tensor, edges: tuple[Tensor, Tensor, Tensor], activation: str) -> Tensor:
    """Gradient of ⟨u, flux_jvp(y, t)⟩ in y: Σ_j w_ij σ''(y_i - y_j) (t_i - t_j) (u_i - u_j)."""
    tail, head, _ = edges
    curvature = activate(y[head] - y[tail], activation)[2]
    return _scatter(curvature * (t[head] - t[tail]) * (u[head] - u[tail]), y, edges)


def flux_vjp(
    y: Tensor,
    t: Tensor,
    cotangent: Tensor,
    edges: tuple[Tensor, Tensor, Tensor],
    batch: Tensor,
    activation: str,
) -> Tensor:
    """Gradient of ⟨t, flux⟩ + ⟨c, (Σwσ, Σwσ², Σwσ̃)⟩ in y: per edge, (dt + c₀ + 2c₁σ)σ' + c₂σ, c that of its graph.

    Without its last entry c₂ is 0.
    """
    tail, head, _ = edges
    dt = t[head] - t[tail]
    sigma, slope, _, _ = activate(y[head] - y[tail], activation)
    c = all_three(cotangent).to(y.dtype)
    c = c[:, batch[tail]] if batch.numel() else c
    return _scatter((dt + c[0] + 2 * c[1] * sigma) * slope + c[2] * sigma, y, edges)


def all_three(cotangent: Tensor) -> Tensor:
    """With zeros for c₂ where it was left out."""
    return cotangent if len(cotangent) == 3 else torch.cat([cotangent, torch.zeros_like(cotangent[:1])])


def _scatter(q: Tensor, like: Tensor, edges: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    tail, head, weight = edges
    if weight.numel():
        q = q * weight[:, None]
    return torch.zeros_like(like).index_add_(0, head, q).index_add_(0, tail, q, alpha=-1)
