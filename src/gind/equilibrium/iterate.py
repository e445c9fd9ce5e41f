"""The only loop: evaluate, measure the residual, stop or step."""

from typing import NamedTuple

import torch
from torch import Tensor

from gind.equilibrium.energy import Problem, distance_bound
from gind.equilibrium.solution import Solution, Status, Stop
from gind.equilibrium.solvers.base import Iterate, Solver

__all__ = ["Measure", "iterate", "measure"]


class Measure(NamedTuple):
    """The residual of a point: absolute, relative to ‖f(z)‖, both (problems,) float64 without gradient."""

    absolute: Tensor
    relative: Tensor


def measure(problem: Problem, z: Tensor, fz: Tensor) -> Measure:
    """‖z - f(z)‖ and ‖z - f(z)‖ / ‖f(z)‖; the second is 0 where the first is."""
    with torch.no_grad():
        absolute = problem.inner.norm(z - fz)
        size = problem.inner.norm(fz)
        return Measure(absolute, torch.where(absolute == 0, absolute, absolute / size))


def iterate(problem: Problem, z0: Tensor, solver: Solver, stop: Stop) -> Solution:
    """Run `solver` from z0; problems that are done are frozen while the others go on."""
    z, state = z0, solver.init(problem, z0)
    progress = _Progress(problem, z0.device)
    steps = 0
    while True:
        fz = problem.fn(z)
        residual = measure(problem, z, fz)
        reached = residual.relative <= stop.tol
        done = reached | progress.stalled(z, residual.absolute)
        if not bool(torch.isfinite(residual.absolute).all()):
            status = Status.NONFINITE
        elif bool(done.all()):
            status = Status.CONVERGED if bool(reached.all()) else Status.STALLED
        elif steps == stop.max_steps:
            status = Status.MAX_STEPS
        else:
            z_next, state = solver.step(problem, Iterate(z, fz, residual.absolute), state)
            z = torch.where(problem.inner.spread(done, z), z, z_next) if bool(done.any()) else z_next
            del fz, z_next  # so that the map can use their memory
            steps += 1
            continue
        with torch.no_grad():
            bound = distance_bound(problem.fn, z, residual.absolute)
        return Solution(z.contiguous(), residual.relative, bound, steps, status, stop.tol)


class _Progress:
    """Sees when a residual consists of rounding errors alone: no new minimum for a while, and below their size."""

    patience = 10

    def __init__(self, problem: Problem, device: torch.device) -> None:
        self.problem = problem
        self.best = torch.full((problem.inner.count,), torch.inf, dtype=torch.float64, device=device)
        self.since = torch.zeros_like(self.best)

    def stalled(self, z: Tensor, residual: Tensor) -> Tensor:
        """(problems,) bool."""
        better = residual < self.best
        self.best = torch.where(better, residual, self.best)
        self.since = torch.where(better, 0.0, self.since + 1)
        waiting = self.since >= self.patience
        energy = self.problem.energy()
        if energy is None or not bool(waiting.any()):
            return torch.zeros_like(waiting)
        with torch.no_grad():
            return waiting & (residual <= energy.rounding(z))
