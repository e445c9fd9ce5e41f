"""An adjoint decides how gradients flow back through a solve."""

import abc
from collections.abc import Callable

from torch import Tensor

from gind.equilibrium.energy import Problem
from gind.equilibrium.solution import Solution

__all__ = ["Adjoint", "Solve"]

Solve = Callable[[Tensor], Solution]


class Adjoint(abc.ABC):
    """Runs the solve in the way its gradient needs it."""

    @abc.abstractmethod
    def run(self, problem: Problem, z0: Tensor, solve: Solve) -> Solution:
        """The solution, with a value that carries the gradient to whatever f depends on."""
