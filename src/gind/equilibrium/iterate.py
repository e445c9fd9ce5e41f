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
    """Run `solver` from z0; problems that reached the tolerance are frozen while the others go on."""
    z, state = z0, solver.init(problem, z0)
    steps = 0
    while True:
        fz = problem.fn(z)
        residual = measure(problem, z, fz)
        done = residual.relative <= stop.tol
        if not bool(torch.isfinite(residual.absolute).all()):
            status = Status.NONFINITE
            break
        if bool(done.all()):
            status = Status.CONVERGED
            break
        if steps == stop.max_steps:
            status = Status.MAX_STEPS
            break
        z_next, state = solver.step(problem, Iterate(z, fz, residual.absolute), state)
        z = torch.where(problem.inner.spread(done, z), z, z_next) if bool(done.any()) else z_next
        del fz, z_next
        steps += 1
    with torch.no_grad():
        bound = distance_bound(problem.fn, z, residual.absolute)
    return Solution(z, residual.relative, bound, steps, status, stop.tol)
