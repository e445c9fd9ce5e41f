"""A solver is `init` and `step`; the loop, the residual and the stopping are not its business."""

import abc
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gind.equilibrium.descent import Rates
from gind.equilibrium.energy import Problem

__all__ = ["Iterate", "Rates", "Solver"]


class Iterate(NamedTuple):
    """A point z, f(z), and ‖z - f(z)‖ per problem."""

    z: Tensor
    fz: Tensor
    residual: Tensor


class Solver(abc.ABC):
    """Proposes the next point. All state lives in what `init` and `step` return."""

    needs_energy: bool = False
    """whether the map must be an `Energy`"""
    needs_residual: bool = True
    """whether `step` looks at the residual"""

    def rates(self, problem: Problem, device: torch.device) -> Rates | None:
        """Its numbers per problem, if the solver is nothing else."""
        return None

    @abc.abstractmethod
    def init(self, problem: Problem, z0: Tensor) -> Any:
        """The state before the first step."""

    def settle(self, problem: Problem, at: Iterate, state: Any) -> Iterate:
        """The point to return when the steps are used up: by default the last one."""
        return at

    @abc.abstractmethod
    def step(self, problem: Problem, at: Iterate, state: Any) -> tuple[Tensor, Any]:
        """The next point and state."""
