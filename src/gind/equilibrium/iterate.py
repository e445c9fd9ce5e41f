"""The only loop: evaluate, measure the residual, stop or step."""

from typing import NamedTuple

import torch
from torch import Tensor

from gind.equilibrium.energy import Problem
from gind.equilibrium.solution import Solution, Status, Stop
from gind.equilibrium.solvers.base import Iterate, Solver

__all__ = ["Measure", "iterate", "measure"]


class Measure(NamedTuple):
    """The residual of a point: absolute, relative to ‖f(z)‖, both (problems,) float64 without gradient."""

    absolute: Tensor
    relative: Tensor


def measure(problem: Problem, z: Tensor, fz: Tensor, start: Tensor | None = None) -> Measure:
    """‖z - f(z)‖, and this over ‖f(z)‖; where the equilibrium is 0, over what rounding left of the `start` residual."""
    with torch.no_grad():
        absolute = problem.inner.norm(z - fz)
        size = problem.inner.norm(fz)
        if start is not None:
            size = torch.maximum(size, torch.finfo(z.dtype).eps * start)
        finite = torch.isfinite(size)
        relative = torch.where(absolute == 0, absolute, absolute / size)
        return Measure(torch.where(finite, absolute, torch.inf), torch.where(finite, relative, torch.inf))


def iterate(problem: Problem, z0: Tensor, solver: Solver, stop: Stop) -> Solution:
    """Run `solver` from z0; problems that are done are frozen while the others go on."""
    z, state, start = z0, solver.init(problem, z0), None
    progress = _Progress(problem, z0.device)
    steps = 0
    while True:
        fz = problem.evaluate(z)
        residual = measure(problem, z, fz, start)
        start = residual.absolute if start is None else start
        reached = residual.relative <= stop.tol
        done = reached | progress.stalled(z, residual.absolute)
        at = Iterate(z, fz, residual.absolute)
        if not bool(torch.isfinite(residual.absolute).all()):
            status = Status.NONFINITE
        elif bool(done.all()):
            status = Status.CONVERGED if bool(reached.all()) else Status.STALLED
        elif steps == stop.max_steps:
            status = Status.MAX_STEPS
            at = solver.settle(problem, at, state)
            residual = measure(problem, at.z, at.fz, start)
        else:
            z_next, state = solver.step(problem, at, state)
            z = torch.where(problem.inner.spread(done, z), z, z_next) if bool(done.any()) else z_next
            del at, fz, z_next  # so that the map can use their memory
            steps += 1
            continue
        with torch.no_grad():
            bound = problem.distance_bound(at.z, residual.absolute)
        return Solution(at.z.contiguous(), residual.relative, bound, steps, status, stop.tol)


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
