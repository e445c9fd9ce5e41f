"""Maps whose fixed point comes with a guarantee: gradient steps on a convex energy, and contractions."""

import abc
import dataclasses
from collections.abc import Callable
from typing import final

import torch
from torch import Tensor

from gind.equilibrium.descent import Descended, Descent, Repeatable
from gind.equilibrium.inner import InnerProduct

__all__ = ["Contraction", "Energy", "Map"]

Map = Callable[[Tensor], Tensor]


class Energy(abc.ABC):
    """A map f = id - ∇E, with E 1-strongly convex and L-smooth. Its fixed point is the minimizer of E.

    E may live on a linear subspace (the range of `project`): then f maps into it, solves start in it, and gradient
    and Hessian are those of E on the subspace.
    """

    @abc.abstractmethod
    def __call__(self, z: Tensor) -> Tensor:
        """f(z) = z - ∇E(z)."""

    @abc.abstractmethod
    def value(self, z: Tensor) -> Tensor:
        """(problems,) float64: E(z)."""

    @abc.abstractmethod
    def hessian(self, z: Tensor) -> Map:
        """u ↦ ∇²E(z)u: symmetric, eigenvalues in [1, L]."""

    def majorizer(self, z: Tensor) -> Map:
        """u ↦ Mu with E(z + u) ≤ E(z) + ⟨∇E(z), u⟩ + ½⟨u, Mu⟩ for all u, M symmetric and at least I.

        Far from the minimum its steps are safer than those of the Hessian, which is what stands in for it by default.
        """
        return self.hessian(z)

    @property
    @abc.abstractmethod
    def smoothness(self) -> Tensor:
        """(problems,) float64: L or an upper bound of it."""

    def project(self, u: Tensor) -> Tensor:
        """The orthogonal projection on the subspace E lives on."""
        return u

    def descend(self, z0: Tensor, descent: Descent, inner: InnerProduct) -> Descended | None:
        """The whole descent in one call, where there is one for this energy; called without gradient."""
        return None

    def rounding(self, z: Tensor) -> Tensor:
        """(problems,) float64: how far the f(z) computed may be from the exact one, in norm."""
        return torch.zeros_like(self.smoothness)


@final
@dataclasses.dataclass(frozen=True)
class Contraction:
    """A map with a known Lipschitz factor q < 1, so that ‖z - z*‖ ≤ ‖z - f(z)‖ / (1 - q).

    f(z) is taken to be computed up to four units in the last place, in norm.
    """

    fn: Map
    factor: float

    def __post_init__(self) -> None:
        if not 0 <= self.factor < 1:
            raise ValueError(f"A contraction has a factor in [0, 1), got {self.factor}. Pass the bare map instead.")

    def __call__(self, z: Tensor) -> Tensor:
        """f(z)."""
        return self.fn(z)


@final
@dataclasses.dataclass(frozen=True)
class Problem:
    """What a solver sees: the map and the inner product."""

    fn: Map
    inner: InnerProduct

    def energy(self) -> Energy | None:
        """The map as an energy, where it is one."""
        return self.fn if isinstance(self.fn, Energy) else None

    def step_size(self, given: float | None, device: torch.device) -> Tensor:
        """(problems,) the given step size, by default 2/(1 + L) for an energy and 1 for any other map."""
        if given is None and isinstance(self.fn, Energy):
            return 2 / (1 + self.fn.smoothness)
        return torch.full((self.inner.count,), 1.0 if given is None else given, dtype=torch.float64, device=device)

    def evaluate(self, z: Tensor) -> Tensor:
        """f(z), refused if it is not of the kind of z."""
        fz = self.fn(z)
        if not isinstance(fz, Tensor) or fz.shape != z.shape or fz.dtype != z.dtype:
            got = f"{fz.dtype} of shape {tuple(fz.shape)}" if isinstance(fz, Tensor) else type(fz).__name__
            raise ValueError(f"`fn` must return a tensor like z, {z.dtype} of shape {tuple(z.shape)}, got {got}.")
        return fz

    def repeat(self, z: Tensor, rate: Tensor, times: int) -> Tensor:
        """`times` steps z ← (1 - rate) z + rate f(z), in one call where the map has one."""
        whole = bool((rate == 1).all())
        if isinstance(self.fn, Repeatable) and whole:
            end = self.fn.repeat(z, times)
            if end is not None:
                return end
        spread = self.inner.spread(rate, z)
        for left in reversed(range(times)):
            fz = self.evaluate(z)
            # the last is a tensor of its own: f may return one that it keeps
            z = (fz if left else fz.clone()) if whole else torch.lerp(z, fz, spread)
        return z

    def distance_bound(self, z: Tensor, residual: Tensor) -> Tensor:
        """(problems,) an upper bound of ‖z - z*‖ given ‖z - f(z)‖, infinite where nothing is known of f."""
        if isinstance(self.fn, Energy):
            return residual + self.fn.rounding(z)
        if isinstance(self.fn, Contraction):
            return (residual + 2 * torch.finfo(z.dtype).eps * self.inner.norm(z)) / (1 - self.fn.factor)
        return torch.full_like(residual, torch.inf)

    def safe_step(self, step: Tensor) -> Tensor:
        """(problems,) the step size, cut to 2/(1 + L) for an energy, where it surely decreases the residual."""
        return torch.minimum(step, 2 / (1 + self.fn.smoothness)) if isinstance(self.fn, Energy) else step
