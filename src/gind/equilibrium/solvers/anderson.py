"""Anderson acceleration, safeguarded."""

import dataclasses
from typing import NamedTuple, final

import torch
from torch import Tensor

from gind.equilibrium.energy import Problem
from gind.equilibrium.options import check_count, check_step
from gind.equilibrium.solvers.base import Iterate, Solver
from gind.equilibrium.solvers.guard import Guard, forget, guard

__all__ = ["Anderson"]


class _History(NamedTuple):
    beta: Tensor
    last: Guard | None
    differences: list[tuple[Tensor, Tensor]]
    """(Δz, Δr) of the last steps, r = f(z) - z"""
    gram: Tensor
    """(problems, memory, memory) inner products of the Δr"""


@final
@dataclasses.dataclass(frozen=True)
class Anderson(Solver):
    """z' = z + βr - Σ_i γ_i (Δz_i + βΔr_i), γ minimizing ‖r - Σ_i γ_i Δr_i‖ over the last `memory` steps.

    Where the residual grows, the step is taken back and replaced by a plain damped one (see `guard`). By default
    β = 2/(1 + L) for an energy, and 1 for any other map. It keeps 2·memory + 2 vectors.
    """

    memory: int = 5
    beta: float | None = None

    def __post_init__(self) -> None:
        check_count("memory", self.memory, 1, " Without memory Anderson is Picard().")
        check_step("beta", self.beta)

    def init(self, problem: Problem, z0: Tensor) -> _History:
        """No history."""
        empty = torch.zeros(problem.inner.count, 0, 0, dtype=torch.float64, device=z0.device)
        return _History(problem.step_size(self.beta, z0.device), None, [], empty)

    def settle(self, problem: Problem, at: Iterate, state: _History) -> Iterate:
        """The last accepted point, where the last step was none."""
        return guard(problem, at, state.last)[0]

    def step(self, problem: Problem, at: Iterate, state: _History) -> tuple[Tensor, _History]:
        """Mix the last steps so that the linearized residual is smallest."""
        base, rejected = guard(problem, at, state.last)
        differences = forget(problem, state.differences, rejected)
        gram = torch.where(rejected[:, None, None], 0.0, state.gram)[:, : len(differences), : len(differences)]
        r = base.fz - base.z
        if state.last is not None and not bool(rejected.all()):
            safe = state.last.safe
            new = (base.z - safe.z, r - (safe.fz - safe.z))
            gram = _border(gram, [problem.inner.dot(dr, new[1]) for _, dr in [*differences, new]])
            differences = [*differences, new][-self.memory :]
            gram = gram[:, -self.memory :, -self.memory :]
        plain = rejected if differences else torch.ones_like(rejected)
        step = torch.where(plain, problem.safe_step(state.beta), state.beta)
        beta = problem.inner.spread(step, r)
        z = base.z + beta * r
        rhs = [problem.inner.dot(dr, r) for _, dr in differences]
        for gamma, (dz, dr) in zip(_mix(gram, rhs, r.dtype), differences, strict=True):
            # z - γ(Δz + βΔr)
            z = z - problem.inner.spread(gamma, r) * torch.addcmul(dz, dr, beta)
        return z, _History(state.beta, Guard(base, plain), differences, gram)


def _border(gram: Tensor, column: list[Tensor]) -> Tensor:
    """The Gram matrix with one more row and column; the last entry of `column` is the corner."""
    new = torch.stack(column, -1)
    wide = torch.cat([gram, new[:, :-1, None]], dim=2)
    return torch.cat([wide, new[:, None, :]], dim=1)


def _mix(gram: Tensor, rhs: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """γ per problem: the regularized normal equations of min ‖r - Σ γ_i Δr_i‖, columns scaled to length 1."""
    if not rhs:
        return []
    square = gram.diagonal(dim1=-2, dim2=-1)
    # a column that was forgotten, or whose square vanished, is 0: the ridge then gives it γ = 0
    there = square > torch.finfo(dtype).tiny
    inverse = torch.where(there, square.where(there, 1.0).rsqrt(), 0.0)
    scaled = gram * inverse[:, :, None] * inverse[:, None, :]
    ridge = max(torch.finfo(dtype).eps, 1e-12) * torch.eye(len(rhs), dtype=torch.float64, device=gram.device)
    gamma = torch.linalg.solve(scaled + ridge, torch.stack(rhs, -1) * inverse) * inverse
    return list(gamma.unbind(-1))
