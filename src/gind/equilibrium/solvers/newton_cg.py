"""Newton's method with conjugate gradients and a line search on the energy."""

import dataclasses
from typing import NamedTuple, final

import torch
from torch import Tensor

from gind.equilibrium.energy import Energy, Map, Problem
from gind.equilibrium.linear import conjugate_gradients
from gind.equilibrium.options import check_count
from gind.equilibrium.precondition import Preconditioner, check_preconditioner, prepare
from gind.equilibrium.solvers.base import Iterate, Solver

__all__ = ["NewtonCG"]


class _Start(NamedTuple):
    """What stays the same over a solve: the size of the first gradient, and the preconditioner."""

    residual: Tensor | None
    precondition: Map | None


@final
@dataclasses.dataclass(frozen=True)
class NewtonCG(Solver):
    """z' = z + t d, ∇²E(z)d ≈ -∇E(z): few steps however strong K is, each with some Hessian products.

    Far away (relative residual above `far`) a majorizer of E takes the place of the Hessian, whose steps would be far
    too long where the energy flattens. The inner conjugate gradients stop at the relative accuracy
    min(`forcing`, √(‖∇E‖/‖∇E₀‖)): cheap at first, and superlinear convergence at the end. t comes from a line search
    on E, per problem. A `preconditioner` is built once per solve.
    """

    forcing: float = 0.5
    far: float = 0.1
    inner_steps: int = 1000
    search_steps: int = 30
    preconditioner: Preconditioner | None = None

    needs_energy = True

    def __post_init__(self) -> None:
        if not isinstance(self.forcing, int | float) or not 0 < self.forcing < 1:
            raise ValueError(f"`forcing` must lie between 0 and 1, got {self.forcing!r}.")
        if not isinstance(self.far, int | float) or not self.far >= 0:
            raise ValueError(f"`far` must be a number >= 0, got {self.far!r}.")
        check_count("inner_steps", self.inner_steps, 1)
        check_count("search_steps", self.search_steps, 1)
        check_preconditioner(self.preconditioner)

    def init(self, problem: Problem, z0: Tensor) -> _Start:
        """The size of the first gradient, not known yet."""
        return _Start(None, prepare(self.preconditioner, problem))

    def step(self, problem: Problem, at: Iterate, state: _Start) -> tuple[Tensor, _Start]:
        """Newton direction, then line search."""
        energy = problem.energy()
        assert energy is not None
        first = at.residual if state.residual is None else state.residual
        with torch.no_grad():
            far = at.residual > self.far * problem.inner.norm(at.fz)
        curvature = _curvature(problem, energy, at.z, far)
        tol = (at.residual / first.where(first > 0, 1.0)).sqrt().clamp(max=self.forcing)
        direction = conjugate_gradients(
            curvature, at.fz - at.z, problem.inner, tol, self.inner_steps, precondition=state.precondition, refine=False
        ).x
        with torch.no_grad():
            t = self._search(problem, energy, at, direction)
        return at.z + problem.inner.spread(t, at.z) * direction, _Start(first, state.precondition)

    def _search(self, problem: Problem, energy: Energy, at: Iterate, d: Tensor) -> Tensor:
        """(problems,) t with φ(t) ≤ φ(0) + 10⁻⁴ t φ'(0) and |φ'(t)| ≤ 0.3 |φ'(0)|, where φ(t) = E(z + td).

        φ is convex: where φ' < 0 the minimum is still ahead, else behind. t is doubled until it lies between, then the
        root of φ' is approached by the secant rule.
        """
        inner = problem.inner
        start, slope = energy.value(at.z), inner.dot(at.z - at.fz, d)
        slack = 16 * torch.finfo(d.dtype).eps * start.abs()
        low, slope_low = torch.zeros_like(start), slope
        high, slope_high = torch.full_like(start, torch.inf), -slope
        t, settled = torch.ones_like(start), slope >= 0
        for _ in range(self.search_steps):
            z = at.z + inner.spread(t, at.z) * d
            slope_t = inner.dot(z - energy(z), d)
            decreased = energy.value(z) <= start + 1e-4 * t * slope + slack
            settled = settled | (decreased & (slope_t.abs() <= 0.3 * slope.abs()))
            if bool(settled.all()):
                break
            ahead, behind = ~settled & (slope_t < 0), ~settled & ~(slope_t < 0)
            low, slope_low = torch.where(ahead, t, low), torch.where(ahead, slope_t, slope_low)
            high, slope_high = torch.where(behind, t, high), torch.where(behind, slope_t, slope_high)
            width = torch.where(high.isinf(), low, high - low)
            root = low + width * -slope_low / (slope_high - slope_low)
            inside = torch.minimum(torch.maximum(root, low + 0.1 * width), high - 0.1 * width)
            t = torch.where(settled, t, torch.where(high.isinf(), 2 * t, inside))
        return torch.where(settled | (low == 0), t, low)


def _curvature(problem: Problem, energy: Energy, z: Tensor, far: Tensor) -> Map:
    """The majorizer in the problems that are far away, the Hessian in the others."""
    if bool(far.all()):
        return energy.majorizer(z)
    if not bool(far.any()):
        return energy.hessian(z)
    majorizer, hessian, rows = energy.majorizer(z), energy.hessian(z), problem.inner.spread(far, z)
    return lambda u: torch.where(rows, majorizer(u), hessian(u))
