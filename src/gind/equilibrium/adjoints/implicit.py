"""The exact gradient of the equilibrium, by the implicit function theorem."""

import dataclasses
import warnings
from typing import Any, final

import torch
from torch import Tensor

from gind.equilibrium.adjoints.base import Adjoint, Solve
from gind.equilibrium.energy import Energy, Problem
from gind.equilibrium.iterate import iterate
from gind.equilibrium.linear import conjugate_gradients
from gind.equilibrium.solution import ConvergenceWarning, GradientReport, Solution, Status, Stop
from gind.equilibrium.solvers.anderson import Anderson

__all__ = ["Implicit"]


@final
@dataclasses.dataclass(frozen=True)
class Implicit(Adjoint):
    """dL/dθ = (∂f/∂θ)ᵀ u with (I - f'(z*)ᵀ) u = dL/dz*.

    For an energy I - f' is its Hessian, symmetric with eigenvalues in [1, L]: conjugate gradients, and the residual
    of u bounds the error of u. For any other map u = dL/dz + f'ᵀu is solved as a fixed point by Anderson
    acceleration, which on linear maps is GMRES. Memory does not grow with the steps of either solve.
    """

    stop: Stop = dataclasses.field(default_factory=lambda: Stop(1e-6, 1000))

    def run(self, problem: Problem, z0: Tensor, solve: Solve) -> Solution:
        """The solve without gradient, one application of f with it, and the adjoint solve on the way back."""
        with torch.no_grad():
            solution = solve(z0.detach())
        if not torch.is_grad_enabled() or solution.status is Status.NONFINITE:
            return solution
        # an energy brings its own Hessian; any other map is differentiated in z as well
        z = solution.value.detach().requires_grad_(not isinstance(problem.fn, Energy))
        fz = problem.fn(z)
        if not fz.requires_grad:
            return solution
        value = _Equilibrium.apply(fz, z, problem, self, solution.gradient)  # type: ignore[no-untyped-call]
        return dataclasses.replace(solution, value=value)

    def solve(self, problem: Problem, z: Tensor, fz: Tensor, cotangent: Tensor, report: GradientReport) -> Tensor:
        """u with (I - f'ᵀ)u = cotangent, at z; how well is written into `report`."""
        if isinstance(problem.fn, Energy):
            hessian, rhs = problem.fn.hessian(z), problem.fn.project(cotangent)
            with torch.no_grad():
                u, residual, steps = conjugate_gradients(
                    hessian, rhs, problem.inner, self.stop.tol, self.stop.max_steps
                )
        else:

            def adjoint(u: Tensor) -> Tensor:
                with torch.enable_grad():
                    return cotangent + torch.autograd.grad(fz, z, u, retain_graph=True)[0]

            with torch.no_grad():
                answer = iterate(Problem(adjoint, problem.inner), torch.zeros_like(z), Anderson(memory=10), self.stop)
            u, residual, steps = answer.value, answer.residual, answer.steps
        finite = bool(torch.isfinite(residual).all())
        converged = finite and bool((residual <= self.stop.tol).all())
        report.residual, report.steps = residual, steps
        report.status = Status.CONVERGED if converged else Status.MAX_STEPS if finite else Status.NONFINITE
        if not converged:
            warnings.warn(
                f"The gradient's linear solve {report.status.value} in {steps} steps: relative residual "
                f"{float(residual.max()):.2e}, tolerance {self.stop.tol:.0e}. Allow more with "
                "`Implicit(Stop(tol, max_steps))`.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return u


class _Equilibrium(torch.autograd.Function):
    """Forward: z*. Backward: the cotangent of z* becomes u, which autograd then carries through f."""

    @staticmethod
    def forward(ctx: Any, fz: Tensor, z: Tensor, problem: Problem, adjoint: Implicit, report: GradientReport) -> Tensor:
        ctx.problem, ctx.adjoint, ctx.report = problem, adjoint, report
        ctx.save_for_backward(fz, z)
        return z.detach().clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        fz, z = ctx.saved_tensors
        return ctx.adjoint.solve(ctx.problem, z, fz, cotangent, ctx.report), None, None, None, None
