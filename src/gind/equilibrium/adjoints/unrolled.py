"""Differentiate through every step of the solver."""

import dataclasses
from typing import final

from torch import Tensor

from gind.equilibrium.adjoints.base import Adjoint, Solve
from gind.equilibrium.energy import Problem
from gind.equilibrium.solution import Solution

__all__ = ["Unrolled"]


@final
@dataclasses.dataclass(frozen=True)
class Unrolled(Adjoint):
    """Backpropagation through the iterations as they ran: the gradient of the approximation, not of the equilibrium.

    Memory grows with the number of steps.
    """

    def run(self, problem: Problem, z0: Tensor, solve: Solve) -> Solution:
        """The solve, recorded by autograd."""
        return solve(z0)
