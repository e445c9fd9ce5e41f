"""Newton's method with conjugate gradients and a line search on the energy."""

import dataclasses
from typing import final

import torch
from torch import Tensor

from gind.equilibrium.energy import Energy, Problem
from gind.equilibrium.linear import conjugate_gradients
from gind.equilibrium.solvers.base import Iterate, Solver

__all__ = ["NewtonCG"]


@final
@dataclasses.dataclass(frozen=True)
class NewtonCG(Solver):
    """z' = z + t d, ∇²E(z)d ≈ -∇E(z): few steps however strong K is, each with some Hessian products.

    The inner conjugate gradients stop at the relative accuracy min(`forcing`, √‖∇E‖/√‖∇E₀‖), so they cost little far
    away and the last steps converge superlinearly. t is halved until E decreases enough (Armijo), per problem.
    """

    forcing: float = 0.5
    inner_steps: int = 500
    halvings: int = 30

    needs_energy = True

    def __post_init__(self) -> None:
        if not 0 < self.forcing < 1:
            raise ValueError(f"`forcing` must lie between 0 and 1, got {self.forcing}.")
        if self.inner_steps < 1 or self.halvings < 0:
            raise ValueError(f"NewtonCG needs inner_steps >= 1 and halvings >= 0, got {self}.")

    def init(self, problem: Problem, z0: Tensor) -> None:
        """The size of the first gradient, not known yet."""
        return

    def step(self, problem: Problem, at: Iterate, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Newton direction, then line search."""
        energy = problem.energy()
        assert energy is not None
        first = at.residual if state is None else state
        shrunk = (at.residual / first.where(first > 0, 1.0)).sqrt()
        tol = shrunk.clamp(max=self.forcing)
        rhs = at.fz - at.z
        direction = conjugate_gradients(energy.hessian(at.z), rhs, problem.inner, tol, self.inner_steps).x
        return self._search(problem, energy, at, direction), first

    def _search(self, problem: Problem, energy: Energy, at: Iterate, direction: Tensor) -> Tensor:
        """z + t·direction with E(z + td) ≤ E(z) - 10⁻⁴ t⟨r, d⟩, up to the rounding of E."""
        inner = problem.inner
        with torch.no_grad():
            start = energy.value(at.z)
            slope = inner.dot(at.fz - at.z, direction)
            slack = 16 * torch.finfo(at.z.dtype).eps * start.abs()
            t = torch.ones_like(start)
            for _ in range(self.halvings):
                trial = energy.value(at.z + inner.spread(t, at.z) * direction)
                enough = trial <= start - 1e-4 * t * slope + slack
                if bool(enough.all()):
                    break
                t = torch.where(enough, t, t / 2)
        return at.z + inner.spread(t, at.z) * direction
