"""The only entry: one call, orthogonal choices."""

import dataclasses
from typing import get_args

import torch
from torch import Tensor

from gind.equilibrium.adjoints.base import Adjoint
from gind.equilibrium.adjoints.implicit import Implicit
from gind.equilibrium.energy import Energy, Map, Problem
from gind.equilibrium.inner import Blocks, InnerProduct, Whole
from gind.equilibrium.iterate import iterate, measured
from gind.equilibrium.options import in_words, is_finite
from gind.equilibrium.solution import Solution, Status, Stop, Throw
from gind.equilibrium.solvers.anderson import Anderson
from gind.equilibrium.solvers.base import Solver
from gind.equilibrium.watch import measuring, tell

__all__ = ["fixed_point"]


def fixed_point(
    fn: Map,
    z0: Tensor,
    *,
    solver: Solver | None = None,
    stop: Stop | None = None,
    adjoint: Adjoint | None = None,
    throw: Throw = "warn",
    inner: InnerProduct | None = None,
) -> Solution:
    """Find z = fn(z), starting from z0.

    `fn` is any map of tensors of the shape of z0. An `Energy` gets a distance bound and the solvers that need one; a
    `Contraction` gets a bound. `solver` says how to step (default `Anderson()`), `stop` when to end, `adjoint` how
    gradients come back to whatever tensors `fn` uses (default `Implicit()`, exact), `throw` what happens if the
    tolerance is not reached, and `inner` how rows split into independent problems (default: one).
    """
    solver = Anderson() if solver is None else solver
    stop = Stop() if stop is None else stop
    adjoint = Implicit() if adjoint is None else adjoint
    inner = Whole() if inner is None else inner
    _check(fn, z0, solver, stop, adjoint, throw)
    _check_inner(inner, z0)
    problem = Problem(fn, inner)
    z0 = fn.project(z0) if isinstance(fn, Energy) else z0
    solution = adjoint.run(problem, z0, lambda start: iterate(problem, start, solver, stop))
    if not solution.value.is_contiguous():  # the map's own layout, or a start seen from everywhere and no step
        solution = dataclasses.replace(solution, value=solution.value.contiguous())
    if solution.status is Status.UNMEASURED and not torch.is_grad_enabled():
        if measuring():
            solution = measured(problem, solution)
        elif not is_finite(solution.value):
            solution = dataclasses.replace(solution, status=Status.NONFINITE)
    tell(solution)
    solution.report(throw)
    return solution


def _check(fn: object, z0: object, solver: object, stop: object, adjoint: object, throw: object) -> None:
    if not callable(fn):
        raise TypeError(f"`fn` must be a map z ↦ f(z), got {type(fn).__name__}.")
    if not isinstance(z0, Tensor) or not z0.is_floating_point():
        kind = z0.dtype if isinstance(z0, Tensor) else type(z0).__name__
        raise TypeError(f"`z0` must be a floating point tensor, got {kind}.")
    if not isinstance(solver, Solver):
        raise TypeError(f"`solver` must be a Solver such as Anderson() or Picard(), got {in_words(solver)}.")
    if not isinstance(stop, Stop):
        raise TypeError(f"`stop` must be a Stop(tol, max_steps), got {in_words(stop)}.")
    if not isinstance(adjoint, Adjoint):
        raise TypeError(
            f"`adjoint` must be an Adjoint such as Implicit(), Phantom(steps) or Unrolled(), got {in_words(adjoint)}."
        )
    if throw not in get_args(Throw):
        raise ValueError(f"`throw` must be one of {', '.join(map(repr, get_args(Throw)))}, got {throw!r}.")
    if solver.needs_energy and not isinstance(fn, Energy):
        raise TypeError(
            f"{type(solver).__name__} needs an Energy (a gradient map of known smoothness), but `fn` is "
            f"{in_words(fn)}. Use Anderson(), Broyden() or Picard(alpha)."
        )
    if solver.needs_residual and not stop.measure:
        raise ValueError(f"{type(solver).__name__} steers by the residual: `Stop(measure=False)` goes with Picard.")
    if not is_finite(z0):
        raise ValueError("`z0` holds NaN or infinity. Start from finite values, for example zeros.")


def _check_inner(inner: object, z0: Tensor) -> None:
    if not isinstance(inner, InnerProduct):
        raise TypeError(
            f"`inner` must be an InnerProduct such as Whole() or Blocks(index, size), got {in_words(inner)}."
        )
    rows = len(z0) if z0.dim() else 0
    if isinstance(inner, Blocks) and len(inner.index) != rows:
        raise ValueError(f"`inner` has {len(inner.index)} rows but `z0` has {rows}.")
