"""The phantom gradient: backpropagate through a few last steps only."""

import dataclasses
from typing import final

import torch
from torch import Tensor

from gind.equilibrium.adjoints.base import Adjoint, Solve
from gind.equilibrium.energy import Problem
from gind.equilibrium.iterate import measure, status_of
from gind.equilibrium.options import check_count, check_step
from gind.equilibrium.solution import Solution, Status

__all__ = ["Phantom"]


@final
@dataclasses.dataclass(frozen=True)
class Phantom(Adjoint):
    """After the solve, `steps` times z ← (1 - λ)z + λf(z) with gradient, λ = `damping` (Geng et al., 2021).

    An approximation of the implicit gradient that tends to it with many steps, if the damped iteration converges. By
    default λ = 2/(1 + L) for an energy, where it does, and 1 for any other map.
    """

    steps: int = 5
    damping: float | None = None

    def __post_init__(self) -> None:
        check_count("steps", self.steps, 1, " Without a step Phantom carries no gradient.")
        check_step("damping", self.damping)

    def run(self, problem: Problem, z0: Tensor, solve: Solve) -> Solution:
        """The solve without gradient, the last steps with it, then a new measure of the residual."""
        with torch.no_grad():
            solution = solve(z0)
        if solution.status is Status.NONFINITE:
            return solution
        z = solution.value
        z = problem.repeat(z, problem.step_size(self.damping, z.device), self.steps)
        steps = solution.steps + self.steps
        if solution.status is Status.UNMEASURED:
            return dataclasses.replace(solution, value=z, steps=steps)
        with torch.no_grad():
            fz = problem.fn(z)
            residual = measure(problem, z, fz)
            if bool((residual.relative > solution.tol).any()):
                # an equilibrium that is 0 is measured by where the solve started
                start = measure(problem, z0, problem.fn(z0)).absolute
                residual = measure(problem, z, fz, start)
            bound = problem.distance_bound(z, residual.absolute)
        return dataclasses.replace(
            solution,
            value=z,
            residual=residual.relative,
            bound=bound,
            steps=steps,
            status=status_of(residual, solution.status, solution.tol),
        )
