"""Conjugate gradients for several symmetric positive definite problems at once."""

import abc
from typing import NamedTuple

import torch
from torch import Tensor

from gind.equilibrium.energy import Map
from gind.equilibrium.inner import InnerProduct

__all__ = ["LinearSolution", "Operator", "conjugate_gradients"]


class LinearSolution(NamedTuple):
    """x with its true relative residual ‖Ax - rhs‖ / ‖rhs‖ per problem, and how many products it took."""

    x: Tensor
    residual: Tensor
    steps: int


class Operator(abc.ABC):
    """A product u ↦ Au that can run the method by itself."""

    @abc.abstractmethod
    def __call__(self, u: Tensor) -> Tensor:
        """Au."""

    @abc.abstractmethod
    def run(
        self, rhs: Tensor, inner: InnerProduct, target: Tensor, max_steps: int
    ) -> tuple[Tensor, Tensor, int] | None:
        """What `_run` returns, None where it has to be done step by step."""


def conjugate_gradients(
    apply: Map,
    rhs: Tensor,
    inner: InnerProduct,
    tol: Tensor | float,
    max_steps: int,
    *,
    precondition: Map | None = None,
    refine: bool = True,
) -> LinearSolution:
    """Solve Ax = rhs per problem until ‖Ax - rhs‖ ≤ tol ‖rhs‖; solved problems stand still.

    `precondition` is u ↦ M⁻¹u with M near A: then the method searches among the powers of M⁻¹A.

    The residual that the method carries along drifts from the true one by rounding. With `refine` the true one is
    computed at the end, and the method starts again on what is left as long as that halves it.
    """
    size = inner.norm(rhs)
    target = size * torch.as_tensor(tol, dtype=torch.float64, device=size.device)
    x, left, steps = _run(apply, rhs, inner, target, max_steps, precondition)
    if not refine:
        return LinearSolution(x, inner.norm(left) / size.where(size > 0, 1.0), steps)
    left = rhs - apply(x)
    residual = inner.norm(left)
    while bool((residual > target).any()) and steps < max_steps:
        correction, _, more = _run(apply, left, inner, target, max_steps - steps, precondition)
        steps += more
        trial = x + correction
        left_trial = rhs - apply(trial)
        improved = inner.norm(left_trial)
        better = improved < residual
        if not bool((improved < residual / 2).any()):
            break
        keep = inner.spread(better, x)
        x, left = torch.where(keep, trial, x), torch.where(keep, left_trial, left)
        residual = torch.where(better, improved, residual)
    return LinearSolution(x, residual / size.where(size > 0, 1.0), steps)


def _run(
    apply: Map, rhs: Tensor, inner: InnerProduct, target: Tensor, max_steps: int, precondition: Map | None
) -> tuple[Tensor, Tensor, int]:
    """x, the residual carried along, and the number of products."""
    if precondition is None and isinstance(apply, Operator):
        at_once = apply.run(rhs, inner, target, max_steps)
        if at_once is not None:
            return at_once
    x, r = torch.zeros_like(rhs), rhs
    p = z = r if precondition is None else precondition(r)
    rr = inner.dot(r, r)
    rz = rr if precondition is None else inner.dot(r, z)
    target = target.square()
    for steps in range(max_steps):
        active = (rr > target) & torch.isfinite(rr)
        if not bool(active.any()):
            return x, r, steps
        ap = apply(p)
        pap = inner.dot(p, ap)
        # a problem that stands still has step 0; A is positive definite, so pap > 0 in all others
        alpha = torch.where(active & (pap > 0), rz / pap.where(pap > 0, 1.0), 0.0)
        step = inner.spread(alpha, p)
        x = torch.addcmul(x, p, step)
        r = torch.addcmul(r, ap, -step)
        z = r if precondition is None else precondition(r)
        rr = inner.dot(r, r)
        rz_next = rr if precondition is None else inner.dot(r, z)
        beta = torch.where(active, rz_next / rz.where(active, 1.0), 0.0)
        p = torch.addcmul(z, p, inner.spread(beta, r))
        rz = rz_next
    return x, r, max_steps
