"""Damped fixed-point iteration."""

import dataclasses
from typing import final

import torch
from torch import Tensor

from gind.equilibrium.descent import Rates
from gind.equilibrium.energy import Problem
from gind.equilibrium.options import check_step
from gind.equilibrium.solvers.base import Iterate, Solver

__all__ = ["Picard"]


@final
@dataclasses.dataclass(frozen=True)
class Picard(Solver):
    """z ← (1 - α) z + α f(z): for an energy, gradient descent with step α, convergent for every α < 2/L.

    By default α = 2/(1 + L) for an energy, and 1 for any other map. α = 1, the paper's iteration without skip
    connection, cycles for ever on many energies with L ≥ 2.
    """

    needs_residual = False

    alpha: float | None = None

    def __post_init__(self) -> None:
        check_step("alpha", self.alpha)

    def rates(self, problem: Problem, device: torch.device) -> Rates:
        """α, and no momentum."""
        alpha = problem.step_size(self.alpha, device)
        return Rates(alpha, torch.zeros_like(alpha))

    def init(self, problem: Problem, z0: Tensor) -> Tensor:
        """The step size of each problem."""
        return problem.step_size(self.alpha, z0.device)

    def step(self, problem: Problem, at: Iterate, state: Tensor) -> tuple[Tensor, Tensor]:
        """One damped application of the map."""
        return torch.lerp(at.z, at.fz, problem.inner.spread(state, at.z)), state
