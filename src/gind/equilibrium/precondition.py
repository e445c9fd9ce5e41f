"""What helps conjugate gradients along: a cheap stand-in for the inverse of the Hessian."""

import abc
import dataclasses

from gind.equilibrium.energy import Energy, Map, Problem
from gind.equilibrium.options import in_words

__all__ = ["Preconditioner", "check_preconditioner", "prepare"]


@dataclasses.dataclass(frozen=True)
class Preconditioner(abc.ABC):
    """Makes u ↦ M⁻¹u for an energy, M symmetric, positive definite and near its Hessian everywhere.

    Then conjugate gradients need about √κ steps, κ the condition of M⁻¹∇²E in place of that of ∇²E. Their residual is
    the true one all the same.
    """

    @abc.abstractmethod
    def build(self, energy: Energy) -> Map:
        """u ↦ M⁻¹u on the subspace E lives on; refused for an energy of another kind."""


def check_preconditioner(preconditioner: object) -> None:
    """Refuse what is none, at once and not in the middle of a solve."""
    if preconditioner is not None and not isinstance(preconditioner, Preconditioner):
        raise TypeError(
            f"`preconditioner` must be None or a Preconditioner such as Elimination(), got {in_words(preconditioner)}."
        )


def prepare(preconditioner: Preconditioner | None, problem: Problem) -> Map | None:
    """The map of a preconditioner for a problem that is an energy, None without one."""
    energy = problem.energy()
    return None if preconditioner is None or energy is None else preconditioner.build(energy)
