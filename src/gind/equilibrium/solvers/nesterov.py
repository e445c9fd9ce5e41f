"""Accelerated gradient descent on a strongly convex energy."""

import dataclasses
from typing import NamedTuple, final

import torch
from torch import Tensor

from gind.equilibrium.descent import Rates
from gind.equilibrium.energy import Problem
from gind.equilibrium.solvers.base import Iterate, Solver

__all__ = ["Nesterov"]


class _Momentum(NamedTuple):
    rates: Rates
    x: Tensor


@final
@dataclasses.dataclass(frozen=True)
class Nesterov(Solver):
    """x' = z - ∇E(z)/L, z' = x' + β(x' - x) with β = (√L - 1)/(√L + 1): error ∼ (1 - 1/√L)^k for every K.

    It keeps a single vector besides the iterate, so it is the solver with the smallest memory.
    """

    needs_energy, needs_residual = True, False

    def rates(self, problem: Problem, device: torch.device) -> Rates:
        """1/L and β of each problem."""
        energy = problem.energy()
        assert energy is not None
        smoothness = energy.smoothness
        root = smoothness.sqrt()
        return Rates(1 / smoothness, (root - 1) / (root + 1))

    def init(self, problem: Problem, z0: Tensor) -> _Momentum:
        """Step and momentum of each problem, from its smoothness."""
        return _Momentum(self.rates(problem, z0.device), z0)

    def step(self, problem: Problem, at: Iterate, state: _Momentum) -> tuple[Tensor, _Momentum]:
        """A gradient step, then the momentum."""
        x = torch.lerp(at.z, at.fz, problem.inner.spread(state.rates.step, at.z))
        # lerp(x_old, x, 1 + β) = x + β(x - x_old)
        z = torch.lerp(state.x, x, 1 + problem.inner.spread(state.rates.momentum, x))
        return z, state._replace(x=x)
