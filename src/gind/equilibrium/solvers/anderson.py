"""Anderson acceleration, safeguarded."""

import dataclasses
from typing import NamedTuple, final

import torch
from torch import Tensor

from gind.equilibrium.energy import Problem
from gind.equilibrium.solvers.base import Iterate, Solver
from gind.equilibrium.solvers.guard import Guard, forget, guard
from gind.equilibrium.solvers.picard import check_step

__all__ = ["Anderson"]


class _History(NamedTuple):
    beta: Tensor
    last: Guard | None
    differences: list[tuple[Tensor, Tensor]]
    """(Δz, Δr) of the last steps, r = f(z) - z"""


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
        if self.memory < 1:
            raise ValueError(f"Anderson needs memory >= 1, got {self.memory}. Without memory it is Picard().")
        check_step("beta", self.beta)

    def init(self, problem: Problem, z0: Tensor) -> _History:
        """No history."""
        return _History(problem.step_size(self.beta), None, [])

    def step(self, problem: Problem, at: Iterate, state: _History) -> tuple[Tensor, _History]:
        """Mix the last steps so that the linearized residual is smallest."""
        base, rejected = guard(problem, at, state.last)
        differences = forget(problem, state.differences, rejected)
        r = base.fz - base.z
        if state.last is not None and not bool(rejected.all()):
            safe = state.last.safe
            differences = [*differences, (base.z - safe.z, r - (safe.fz - safe.z))][-self.memory :]
        beta = problem.inner.spread(state.beta, r)
        z = base.z + beta * r
        for gamma, (dz, dr) in zip(_mix(problem, r, differences), differences, strict=True):
            z = z - problem.inner.spread(gamma, r) * (dz + beta * dr)
        plain = rejected if differences else torch.ones_like(rejected)
        return z, _History(state.beta, Guard(base, plain), differences)


def _mix(problem: Problem, r: Tensor, differences: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """γ per problem: the regularized normal equations of min ‖r - Σ γ_i Δr_i‖, columns scaled to length 1."""
    if not differences:
        return []
    residuals = [dr for _, dr in differences]
    size = len(residuals)
    upper = {(i, j): problem.inner.dot(residuals[i], residuals[j]) for i in range(size) for j in range(i, size)}
    gram = torch.stack(
        [torch.stack([upper[min(i, j), max(i, j)] for j in range(size)], -1) for i in range(size)], -2
    )
    rhs = torch.stack([problem.inner.dot(dr, r) for dr in residuals], -1)
    length = gram.diagonal(dim1=-2, dim2=-1).clamp_min(torch.finfo(torch.float64).tiny).sqrt()
    scaled = gram / length[:, :, None] / length[:, None, :]
    # a column that was forgotten is 0: the ridge then gives it γ = 0
    ridge = torch.finfo(r.dtype).eps * torch.eye(size, dtype=torch.float64)
    gamma = torch.linalg.solve(scaled + ridge, rhs / length) / length
    return list(gamma.unbind(-1))
