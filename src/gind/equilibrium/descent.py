"""The solvers that are two numbers per problem, for energies that run them in one call."""

from typing import NamedTuple

from torch import Tensor

from gind.equilibrium.solution import Status, Stop

__all__ = ["Descended", "Descent"]


class Descent(NamedTuple):
    """x' = z + step (f(z) - z), z' = x' + momentum (x' - x), both (problems,) float64, stopped as in `iterate`."""

    step: Tensor
    momentum: Tensor
    stop: Stop
    patience: int
    """steps without a new minimum of the residual before it is compared with the rounding errors"""


class Descended(NamedTuple):
    """Where a descent ended; the residuals are those of `iterate.Measure`."""

    z: Tensor
    absolute: Tensor
    relative: Tensor
    steps: int
    status: Status
