"""Conjugate gradients for several symmetric positive definite problems at once."""

from typing import NamedTuple

import torch
from torch import Tensor

from gind.equilibrium.energy import Map
from gind.equilibrium.inner import InnerProduct

__all__ = ["LinearSolution", "conjugate_gradients"]


class LinearSolution(NamedTuple):
    """x with its relative residual ‖Ax - rhs‖ / ‖rhs‖ per problem, and how many products it took."""

    x: Tensor
    residual: Tensor
    steps: int


def conjugate_gradients(
    apply: Map, rhs: Tensor, inner: InnerProduct, tol: Tensor | float, max_steps: int
) -> LinearSolution:
    """Solve Ax = rhs per problem until ‖Ax - rhs‖ ≤ tol ‖rhs‖; solved problems stand still.

    The residual is the recursive one of the method; it departs from the true one only by rounding.
    """
    x = torch.zeros_like(rhs)
    r = rhs
    p = rhs
    rr = inner.dot(r, r)
    target = rr * torch.as_tensor(tol, dtype=torch.float64, device=rr.device).square()
    scale = rr
    steps = 0
    while steps < max_steps:
        active = (rr > target) & torch.isfinite(rr)
        if not bool(active.any()):
            break
        ap = apply(p)
        pap = inner.dot(p, ap)
        # a problem that stands still has step 0; A is positive definite, so pap > 0 in all others
        alpha = torch.where(active & (pap > 0), rr / pap.where(pap > 0, 1.0), 0.0)
        step = inner.spread(alpha, p)
        x = x + step * p
        r = r - step * ap
        rr_next = inner.dot(r, r)
        beta = torch.where(active, rr_next / rr.where(active, 1.0), 0.0)
        p = r + inner.spread(beta, r) * p
        rr = rr_next
        steps += 1
    return LinearSolution(x, (rr / scale.where(scale > 0, 1.0)).sqrt(), steps)
