"""Gradient descent with the momentum that is best for quadratic energies, and a way back from energies unlike them."""

import dataclasses
from typing import NamedTuple, final

import torch
from torch import Tensor

from gind.equilibrium.descent import Heavy, Rates
from gind.equilibrium.energy import Problem
from gind.equilibrium.solvers.base import Iterate, Solver
from gind.equilibrium.solvers.nesterov import Nesterov

__all__ = ["HeavyBall"]


class _Rolling(NamedTuple):
    calm: Rates
    last: Tensor
    """the iterate before this one; of a problem that is calm, Nesterov's x"""
    best: Tensor
    since: Tensor
    rolls: Tensor
    """(problems,) bool: not calm yet"""


@final
@dataclasses.dataclass(frozen=True)
class HeavyBall(Solver):
    """z' = z - τ∇E(z) + β(z - z₋) with τ = 4/(√L + 1)² and β = ((√L - 1)/(√L + 1))² (Polyak, 1964).

    On a quadratic energy the error falls like β^(k/2), about twice as fast as Nesterov's, and near its minimum every
    smooth energy is like one. From everywhere that is no theorem, so a problem whose residual has had no new minimum
    for 5 + √L/2 steps goes on as `Nesterov` from where it is. A single vector is kept besides the iterate.
    """

    needs_energy = True

    def rates(self, problem: Problem, device: torch.device) -> Rates:
        """Nesterov's, and those to begin with."""
        energy = problem.energy()
        assert energy is not None
        root = energy.smoothness.sqrt()
        heavy = Heavy(4 / (root + 1).square(), ((root - 1) / (root + 1)).square(), _patience(root))
        return Nesterov().rates(problem, device)._replace(heavy=heavy)

    def init(self, problem: Problem, z0: Tensor) -> _Rolling:
        """Steps and momenta of each problem, from its smoothness."""
        rates = self.rates(problem, z0.device)
        best = torch.full_like(rates.step, torch.inf)
        return _Rolling(rates, z0, best, torch.zeros_like(best), torch.ones_like(best, dtype=torch.bool))

    def step(self, problem: Problem, at: Iterate, state: _Rolling) -> tuple[Tensor, _Rolling]:
        """A gradient step, then the momentum."""
        better = at.residual < state.best
        best, since = torch.where(better, at.residual, state.best), torch.where(better, 0.0, state.since + 1)
        calm, heavy, spread = state.calm, state.calm.heavy, problem.inner.spread
        assert heavy is not None
        rolls = state.rolls & (since < heavy.patience)
        near = spread(torch.where(rolls, heavy.step, calm.step), at.z)
        carry = spread(torch.where(rolls, heavy.momentum, calm.momentum), at.z)
        last = torch.where(spread(rolls ^ state.rolls, at.z), at.z, state.last)
        x = torch.lerp(at.z, at.fz, near)
        base = torch.where(spread(rolls, at.z), at.z, x)
        return x + carry * (base - last), _Rolling(calm, base, best, since, rolls)


def _patience(root: Tensor) -> Tensor:
    """Steps, of √L: on a quadratic energy the residual may rise for about a third of √L before it falls."""
    return 5 + root / 2
