"""What a solve is asked for (`Stop`) and what it answers (`Solution`, `Status`)."""

import dataclasses
import enum
import warnings
from typing import Literal, final

import torch
from torch import Tensor

from gind.equilibrium.options import check_count

__all__ = ["ConvergenceError", "ConvergenceWarning", "GradientReport", "Solution", "Status", "Stop", "Throw"]

Throw = Literal["raise", "warn", "ignore"]


class ConvergenceError(RuntimeError):
    """A solve ended without reaching its tolerance, and `throw="raise"` was asked for."""


class ConvergenceWarning(UserWarning):
    """A solve ended without reaching its tolerance."""


@final
@dataclasses.dataclass(frozen=True)
class Stop:
    """Stop when ‖z - f(z)‖ ≤ tol · ‖f(z)‖ in every problem, with a little to spare (`aim`), or after `max_steps` steps.

    Where the equilibrium is 0, the rounding of the first residual takes the place of ‖f(z)‖.
    """

    tol: float = 1e-5
    max_steps: int = 200
    measure: bool = True
    """False: exactly `max_steps` steps, whatever the residual; it is measured once where no gradient is recorded,
    but for solves inside of `unmeasured()`"""

    def __post_init__(self) -> None:
        if not isinstance(self.tol, int | float) or not self.tol >= 0:
            raise ValueError(f"`tol` must be a number >= 0, got {self.tol!r}.")
        check_count("max_steps", self.max_steps, 0)
        if not isinstance(self.measure, bool):
            raise TypeError(f"`measure` must be True or False, got {self.measure!r}.")

    def aim(self, dtype: torch.dtype) -> float:
        """What a solve in this arithmetic goes for, a little below `tol`, as long as its residual falls.

        A residual is measured with an error of some spacings of numbers at 1, times ‖f(z)‖: about 0.5 in float32 at
        ‖K‖ = 5, 8 at 15. So with 16 to spare it is below `tol` in exact terms too, unless ‖K‖ is large; but no further
        than half of `tol`.
        """
        return max(self.tol - 16 * torch.finfo(dtype).eps, self.tol / 2)


class Status(enum.Enum):
    """How a solve ended."""

    CONVERGED = "reached the tolerance"
    MAX_STEPS = "used up its steps before it reached the tolerance"
    STALLED = "came as close as the arithmetic allows, which is not the tolerance"
    NONFINITE = "met a value that is not finite"
    UNMEASURED = "did the steps it was asked for, and measured nothing"


@dataclasses.dataclass(eq=False)
class GradientReport:
    """How the backward solve ended. It is filled in by `backward`."""

    residual: Tensor | None = None
    """(problems,) ‖(I - Jᵀ)u - g‖ / ‖g‖"""
    steps: int = 0
    status: Status | None = None


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
    """The answer of a solve; everything is measured at `value`, which is what it returns."""

    value: Tensor
    residual: Tensor
    """(problems,) float64: ‖z - f(z)‖ / ‖f(z)‖, what `Stop.tol` is compared with; NaN if it was not measured"""
    bound: Tensor
    """(problems,) float64: ‖z - z*‖ is at most this; infinite if nothing is known about the map"""
    steps: int
    status: Status
    tol: float = 0.0
    gradient: GradientReport = dataclasses.field(default_factory=GradientReport)

    @property
    def converged(self) -> bool:
        """Whether every problem reached the tolerance."""
        return self.status is Status.CONVERGED

    def __str__(self) -> str:
        worst = float(self.residual.max()) if self.residual.numel() else 0.0
        where = f" at step {self.steps}" if self.status is Status.NONFINITE else f" in {self.steps} steps"
        count = len(self.residual)
        open_problems = int((self.residual > self.tol).sum())
        many = f" ({open_problems} of {count} problems open)" if count > 1 and open_problems else ""
        return f"The solve {self.status.value}{where}: relative residual {worst:.2e}, tolerance {self.tol:.0e}{many}."

    def report(self, throw: Throw) -> None:
        """Raise, warn or keep silent about a solve that did not converge."""
        if self.converged or throw == "ignore" or self.status is Status.UNMEASURED:
            return
        message = f"{self} {_ADVICE[self.status]}"
        if throw == "raise":
            raise ConvergenceError(message)
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


_ADVICE = {
    Status.MAX_STEPS: "Allow more steps (`Stop(max_steps=...)`), choose a faster solver (for strong K `NewtonCG()`), "
    "or loosen `Stop(tol=...)`.",
    Status.STALLED: "Loosen `Stop(tol=...)`, or compute in float64.",
    Status.NONFINITE: "Look for NaN or infinity in the input and the parameters.",
}
