"""The exact gradient of the equilibrium, by the implicit function theorem."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor

from gind.equilibrium.adjoints.base import Adjoint, Solve
from gind.equilibrium.energy import Energy, Map, Problem
from gind.equilibrium.inner import InnerProduct
from gind.equilibrium.iterate import iterate
from gind.equilibrium.linear import LinearSolution, conjugate_gradients
from gind.equilibrium.options import in_words
from gind.equilibrium.precondition import Preconditioner, check_preconditioner, prepare
from gind.equilibrium.solution import ConvergenceWarning, GradientReport, Solution, Status, Stop
from gind.equilibrium.solvers.anderson import Anderson

__all__ = ["Implicit"]

_MODERATE = 30
"""exponents of two whose squares are far from the ends of float32"""


@final
@dataclasses.dataclass(frozen=True)
class Implicit(Adjoint):
    """dL/dθ = (∂f/∂θ)ᵀ u with (I - f'(z*)ᵀ) u = dL/dz*.

    For an energy I - f' is its Hessian, symmetric with eigenvalues in [1, L]: conjugate gradients, and the residual
    of u bounds the error of u. For any other map u = dL/dz + f'ᵀu is solved as a fixed point by Anderson
    acceleration, which on linear maps is GMRES. Memory does not grow with the steps of either solve.
    """

    stop: Stop = dataclasses.field(default_factory=lambda: Stop(1e-6, 1000))
    preconditioner: Preconditioner | None = None
    """of the conjugate gradients"""

    def __post_init__(self) -> None:
        if not isinstance(self.stop, Stop):
            raise TypeError(f"`stop` must be a Stop such as Stop(1e-6, 1000), got {in_words(self.stop)}.")
        check_preconditioner(self.preconditioner)

    def run(self, problem: Problem, z0: Tensor, solve: Solve) -> Solution:
        """The solve without gradient, one application of f with it, and the adjoint solve on the way back."""
        with torch.no_grad():
            solution = solve(z0.detach())
        if not torch.is_grad_enabled() or solution.status is Status.NONFINITE:
            return solution
        # an energy brings its own Hessian; any other map is differentiated in z as well
        z = solution.value.detach().requires_grad_(not isinstance(problem.fn, Energy))
        fz = problem.evaluate(z)
        if not _depends_on_others(fz, z):
            return solution
        return dataclasses.replace(solution, value=_equilibrium(fz, z, problem, self, solution.gradient))

    def solve(self, problem: Problem, z: Tensor, fz: Tensor, cotangent: Tensor, report: GradientReport) -> Tensor:
        """u with (I - f'ᵀ)u = cotangent, at z; how well is written into `report`."""
        inner, floor = problem.inner, 0.0
        with torch.no_grad():
            scale = _scale(cotangent, inner)
            if scale is not None:
                cotangent = cotangent / scale
            if isinstance(problem.fn, Energy):
                rhs, operator = problem.fn.project(cotangent), problem.fn.hessian(z)
                helped = prepare(self.preconditioner, problem)
                u, residual, steps = conjugate_gradients(
                    operator, rhs, inner, self.stop.tol, self.stop.max_steps, precondition=helped
                )
                # products with the Hessian are off by rounding of about L times the precision
                floor = 4 * torch.finfo(z.dtype).eps * float(problem.fn.smoothness.max())
            else:
                u, residual, steps = self._fixed_point(Problem(_transposed(fz, z, cotangent), inner), cotangent)
            u = u if scale is None else u * scale
        report.residual, report.steps = residual, steps
        report.status = _status(residual, self.stop.tol, floor)
        if report.status in (Status.MAX_STEPS, Status.NONFINITE):
            warnings.warn(
                f"The gradient's linear solve {report.status.value} in {steps} steps: relative residual "
                f"{float(residual.max()):.2e}, tolerance {self.stop.tol:.0e}. Allow more with "
                "`Implicit(Stop(tol, max_steps))`.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return u

    def _fixed_point(self, problem: Problem, cotangent: Tensor) -> LinearSolution:
        """u = cotangent + f'ᵀu. A solve stops relative to ‖u‖, but the residual promised is relative to ‖cotangent‖."""
        size = problem.inner.norm(cotangent)
        size = size.where(size > 0, 1.0)
        u, steps, tol = torch.zeros_like(cotangent), 0, self.stop.tol
        while True:
            answer = iterate(problem, u, Anderson(memory=10), Stop(tol, self.stop.max_steps - steps))
            u, steps = answer.value, steps + answer.steps
            residual = problem.inner.norm(u - problem.fn(u)) / size
            if not answer.converged or bool((residual <= self.stop.tol).all()):
                return LinearSolution(u, residual, steps)
            tol /= 10


def _scale(cotangent: Tensor, inner: InnerProduct) -> Tensor | None:
    """Powers of two near ‖cotangent‖, problem by problem; None where all are of moderate size.

    Squares of 10⁻²³ vanish in float32, and a batch may hold graphs that hardly matter to the loss. u is linear in the
    cotangent, and powers of two change no digit.
    """
    exponent = torch.frexp(inner.norm(cotangent)).exponent.clamp(-126, 126)
    if bool((exponent.abs() <= _MODERATE).all()):
        return None
    return inner.spread(torch.ldexp(torch.ones_like(exponent, dtype=torch.float64), exponent), cotangent)


def _transposed(fz: Tensor, z: Tensor, cotangent: Tensor) -> Map:
    """u ↦ cotangent + f'(z)ᵀu."""

    def adjoint(u: Tensor) -> Tensor:
        (product,) = torch.autograd.grad(fz, z, u, retain_graph=True, allow_unused=True)
        return cotangent if product is None else cotangent + product

    return adjoint


def _status(residual: Tensor, tol: float, floor: float) -> Status:
    if not bool(torch.isfinite(residual).all()):
        return Status.NONFINITE
    if bool((residual <= tol).all()):
        return Status.CONVERGED
    return Status.STALLED if bool((residual <= floor).all()) else Status.MAX_STEPS


def _depends_on_others(fz: Tensor, z: Tensor) -> bool:
    """Whether a gradient of fz would reach any tensor but z."""
    seen: set[Any] = set()
    stack: list[Any] = [fz.grad_fn] if fz.grad_fn is not None else []
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable") and node.variable is not z:
            return True
        stack.extend(parent for parent, _ in node.next_functions if parent is not None)
    return fz.requires_grad and fz.grad_fn is None and fz is not z


class _Equilibrium(torch.autograd.Function):
    """Forward: z*. Backward: the cotangent of z* becomes u, which autograd then carries through f."""

    @staticmethod
    def forward(ctx: Any, fz: Tensor, z: Tensor, problem: Problem, adjoint: Implicit, report: GradientReport) -> Tensor:
        ctx.problem, ctx.adjoint, ctx.report = problem, adjoint, report
        ctx.save_for_backward(fz, z)
        return z.detach().clone()

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            # u depends on everything f depends on, which autograd would not see: a silent error
            raise RuntimeError(
                "Implicit() gives first derivatives only. Call backward without `create_graph=True`, or use Unrolled()."
            )
        fz, z = ctx.saved_tensors
        with torch.autocast(z.device.type, enabled=False):  # `backward` may have been called within one
            return ctx.adjoint.solve(ctx.problem, z, fz, cotangent, ctx.report), None, None, None, None


_equilibrium: Callable[..., Tensor] = _Equilibrium.apply  # torch gives `apply` no types
