"""What maps may offer to do in one call: a solver that is a few numbers per problem, and a number of applications."""

import abc
from typing import NamedTuple

from torch import Tensor

from gind.equilibrium.solution import Status, Stop

__all__ = ["Descended", "Descent", "Heavy", "Rates", "Repeatable"]


class Heavy(NamedTuple):
    """x' = z + step (f(z) - z), z' = x' + momentum (z - z₋), all (problems,) float64."""

    step: Tensor
    momentum: Tensor
    patience: Tensor
    """steps without a new minimum of the residual after which a problem goes on by its other rates"""


class Rates(NamedTuple):
    """x' = z + step (f(z) - z), z' = x' + momentum (x' - x), both (problems,) float64."""

    step: Tensor
    momentum: Tensor
    heavy: Heavy | None = None
    """how to begin"""


class Descent(NamedTuple):
    """Steps by these rates, stopped as in `iterate`."""

    rates: Rates
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


class Repeatable(abc.ABC):
    """A map that can be applied many times in one call."""

    @abc.abstractmethod
    def repeat(self, z: Tensor, times: int) -> Tensor | None:
        """f(... f(z)), or None where there is no faster way than one by one."""
