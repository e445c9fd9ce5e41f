"""Broyden's method with limited memory, safeguarded: for maps that are no gradient."""

import dataclasses
from typing import NamedTuple, final

import torch
from torch import Tensor

from gind.equilibrium.energy import Problem
from gind.equilibrium.options import check_count, check_step
from gind.equilibrium.solvers.base import Iterate, Solver
from gind.equilibrium.solvers.guard import Guard, forget, guard

__all__ = ["Broyden"]


class _Inverse(NamedTuple):
    """B = β + Σ u_i v_iᵀ, an approximation of (I - f')⁻¹."""

    beta: Tensor
    last: Guard | None
    updates: list[tuple[Tensor, Tensor]]


@final
@dataclasses.dataclass(frozen=True)
class Broyden(Solver):
    """z' = z - B(z - f(z)); B changes by rank one per step so that B(Δz - Δf) = Δz ("good" Broyden).

    After `memory` updates the approximation starts anew. By default it starts from β = 2/(1 + L) for an energy, and
    1 for any other map.
    """

    memory: int = 20
    beta: float | None = None

    def __post_init__(self) -> None:
        check_count("memory", self.memory, 1)
        check_step("beta", self.beta)

    def init(self, problem: Problem, z0: Tensor) -> _Inverse:
        """B = β."""
        return _Inverse(problem.step_size(self.beta, z0.device), None, [])

    def settle(self, problem: Problem, at: Iterate, state: _Inverse) -> Iterate:
        """The last accepted point, where the last step was none."""
        return guard(problem, at, state.last)[0]

    def step(self, problem: Problem, at: Iterate, state: _Inverse) -> tuple[Tensor, _Inverse]:
        """Update B from the last step, then a quasi-Newton step."""
        base, rejected = guard(problem, at, state.last)
        updates = forget(problem, state.updates, rejected)
        if len(updates) == self.memory:
            updates = []
        g = base.z - base.fz
        if state.last is not None and not bool(rejected.all()):
            safe = state.last.safe
            updates = [
                *updates,
                _update(problem, state.beta, updates, base.z - safe.z, g - (safe.z - safe.fz)),
            ]
        plain = rejected if updates else torch.ones_like(rejected)
        quasi_newton = _apply(problem, state.beta, updates, g)
        if bool(plain.any()):
            safe_step = problem.inner.spread(problem.safe_step(state.beta), g) * g
            quasi_newton = torch.where(problem.inner.spread(plain, g), safe_step, quasi_newton)
        return base.z - quasi_newton, _Inverse(state.beta, Guard(base, plain), updates)


def _apply(problem: Problem, beta: Tensor, updates: list[tuple[Tensor, Tensor]], x: Tensor) -> Tensor:
    """Bx; with the pairs swapped, Bᵀx."""
    out = problem.inner.spread(beta, x) * x
    for u, v in updates:
        out = out + problem.inner.spread(problem.inner.dot(v, x), x) * u
    return out


def _update(
    problem: Problem, beta: Tensor, updates: list[tuple[Tensor, Tensor]], dz: Tensor, dg: Tensor
) -> tuple[Tensor, Tensor]:
    """The pair u = (Δz - BΔg) / ⟨BᵀΔz, Δg⟩, v = BᵀΔz; zero where the denominator vanishes."""
    v = _apply(problem, beta, [(b, a) for a, b in updates], dz)
    denominator = problem.inner.dot(v, dg)
    usable = denominator.abs() > 1e-12 * problem.inner.norm(v) * problem.inner.norm(dg)
    inverse = torch.where(usable, 1 / denominator.where(usable, 1.0), 0.0)
    u = problem.inner.spread(inverse, dz) * (dz - _apply(problem, beta, updates, dg))
    return u, v
