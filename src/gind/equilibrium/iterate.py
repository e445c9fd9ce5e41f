"""The only loop: evaluate, measure the residual, stop or step."""

import dataclasses
from typing import NamedTuple

import torch
from torch import Tensor

from gind.equilibrium.descent import Descent
from gind.equilibrium.energy import Problem
from gind.equilibrium.solution import Solution, Status, Stop
from gind.equilibrium.solvers.base import Iterate, Solver

__all__ = ["Measure", "iterate", "measure", "measured", "status_of"]


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
    if not stop.measure:
        return _march(problem, z0, solver, stop)
    at_once = _descend(problem, z0, solver, stop)
    if at_once is not None:
        return at_once
    z, state, start = z0, solver.init(problem, z0), None
    progress, within = _Progress(problem, z0.device), _Within(problem, stop, z0)
    steps = 0
    while True:
        fz = problem.evaluate(z)
        residual = measure(problem, z, fz, start)
        start = residual.absolute if start is None else start
        at, residual = within.follow(Iterate(z, fz, residual.absolute), residual, steps)
        reached = (residual.relative <= within.aim) | within.left
        done = reached | progress.stalled(at.z, residual.absolute, reached)
        if not bool(torch.isfinite(residual.absolute).all()):
            status = Status.NONFINITE
        elif bool(done.all()):
            status = Status.STALLED
        elif steps == stop.max_steps:
            status = Status.MAX_STEPS
            at = solver.settle(problem, at, state)
            residual = measure(problem, at.z, at.fz, start)
        else:
            z_next, state = solver.step(problem, at, state)
            z = torch.where(problem.inner.spread(done, z), at.z, z_next) if bool(done.any()) else z_next
            del at, fz, z_next  # so that the map can use their memory
            steps += 1
            continue
        at, residual = within.end(at, residual)
        with torch.no_grad():
            bound = problem.distance_bound(at.z, residual.absolute)
        status = status_of(residual, status, stop.tol)
        return Solution(at.z.contiguous(), residual.relative, bound, steps, status, stop.tol)


def _march(problem: Problem, z0: Tensor, solver: Solver, stop: Stop) -> Solution:
    """So many steps, with nothing measured."""
    unknown = torch.full((problem.inner.count,), torch.nan, dtype=torch.float64, device=z0.device)
    rates = solver.rates(problem, z0.device)
    if rates is not None and not bool(rates.momentum.any()):
        z = problem.repeat(z0, rates.step, stop.max_steps)
    else:
        z, state = z0, solver.init(problem, z0)
        for _ in range(stop.max_steps):
            z, state = solver.step(problem, Iterate(z, problem.evaluate(z), unknown), state)
    return Solution(z, unknown, unknown, stop.max_steps, Status.UNMEASURED, stop.tol)


def measured(problem: Problem, solution: Solution) -> Solution:
    """A solution whose residual was not measured, with it."""
    z = solution.value
    with torch.no_grad():
        residual = measure(problem, z, problem.evaluate(z))
        bound = problem.distance_bound(z, residual.absolute)
    status = status_of(residual, solution.status, solution.tol)
    return dataclasses.replace(solution, residual=residual.relative, bound=bound, status=status)


def status_of(residual: Measure, ended: Status, tol: float) -> Status:
    """How a solve ended, from the residual of its value and from what made it end."""
    if not bool(torch.isfinite(residual.absolute).all()):
        return Status.NONFINITE
    if bool((residual.relative <= tol).all()):
        return Status.CONVERGED
    return Status.STALLED if ended is Status.STALLED else Status.MAX_STEPS


def _descend(problem: Problem, z0: Tensor, solver: Solver, stop: Stop) -> Solution | None:
    """The same in one call, where energy and solver allow it and no step has to be recorded for a gradient."""
    energy = problem.energy()
    if energy is None or torch.is_grad_enabled():
        return None
    rates = solver.rates(problem, z0.device)
    if rates is None:
        return None
    end = energy.descend(z0, Descent(rates, stop, _Progress.patience), problem.inner)
    if end is None:
        return None
    bound = problem.distance_bound(end.z, end.absolute)
    status = status_of(Measure(end.absolute, end.relative), end.status, stop.tol)
    return Solution(end.z, end.relative, bound, end.steps, status, stop.tol)


class _Within:
    """Where each problem is best within its tolerance, on its way to its aim.

    A step may lose what was reached, and rounding may keep a problem from its aim: some steps after it came within, and
    at the end, it goes back.
    """

    def __init__(self, problem: Problem, stop: Stop, z0: Tensor) -> None:
        self.problem, self.tol, self.aim = problem, stop.tol, stop.aim(z0.dtype)
        self.least = torch.full((problem.inner.count,), torch.inf, dtype=torch.float64, device=z0.device)
        """(problems,) the relative residual there; infinite if there is none"""
        self.entered = torch.zeros_like(self.least)
        """(problems,) the step at which it came within"""
        self.left = torch.zeros_like(self.least, dtype=torch.bool)
        """(problems,) those that went back"""
        self.best: tuple[Iterate, Measure] | None = None

    def follow(self, at: Iterate, residual: Measure, steps: int) -> tuple[Iterate, Measure]:
        """Where the problems are, once those that took too long, or broke down, have gone back."""
        within = residual.relative <= self.tol
        if self.best is None and not bool(within.any()):
            return at, residual
        under_way = ~(residual.relative <= self.aim) & ~self.left
        better = under_way & within & (residual.relative < self.least)
        self.entered = torch.where(better & torch.isinf(self.least), float(steps), self.entered)
        self.least = torch.where(better, residual.relative, self.least)
        if bool(better.any()):
            self.best = (at, residual) if self.best is None else self._choose(better, (at, residual), self.best)
        late = (steps - self.entered >= _Progress.patience) | ~torch.isfinite(residual.absolute)
        return self._go_back(at, residual, under_way & late)

    def end(self, at: Iterate, residual: Measure) -> tuple[Iterate, Measure]:
        """Where the problems are, once all that were better within their tolerance have gone back."""
        return self._go_back(at, residual, ~(residual.relative <= self.aim))

    def _go_back(self, at: Iterate, residual: Measure, which: Tensor) -> tuple[Iterate, Measure]:
        which = which & torch.isfinite(self.least)
        self.left = self.left | which
        back = which & ~(residual.relative <= self.least)
        if self.best is None or not bool(back.any()):
            return at, residual
        return self._choose(back, self.best, (at, residual))

    def _choose(
        self, which: Tensor, one: tuple[Iterate, Measure], other: tuple[Iterate, Measure]
    ) -> tuple[Iterate, Measure]:
        """`one` in these problems, `other` in the rest."""
        if bool(which.all()):  # also: no gradient through numbers that are not finite
            return one
        rows = self.problem.inner.spread(which, one[0].z)
        residual = Measure(*(torch.where(which, a, b) for a, b in zip(one[1], other[1], strict=True)))
        z, fz = (torch.where(rows, a, b) for a, b in ((one[0].z, other[0].z), (one[0].fz, other[0].fz)))
        return Iterate(z, fz, residual.absolute), residual


class _Progress:
    """Sees when a residual consists of rounding errors alone: no new minimum for a while, and below their size."""

    patience = 10

    def __init__(self, problem: Problem, device: torch.device) -> None:
        self.problem = problem
        self.best = torch.full((problem.inner.count,), torch.inf, dtype=torch.float64, device=device)
        self.since = torch.zeros_like(self.best)

    def stalled(self, z: Tensor, residual: Tensor, reached: Tensor) -> Tensor:
        """(problems,) bool; not asked of those that `reached` what they went for."""
        better = residual < self.best
        self.best = torch.where(better, residual, self.best)
        self.since = torch.where(better, 0.0, self.since + 1)
        waiting = (self.since >= self.patience) & ~reached
        energy = self.problem.energy()
        if energy is None or not bool(waiting.any()):
            return torch.zeros_like(waiting)
        with torch.no_grad():
            return waiting & (residual <= energy.rounding(z))
