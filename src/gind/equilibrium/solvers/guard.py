"""The safeguard that Anderson and Broyden share: what does not decrease the residual is taken back."""

from typing import NamedTuple

import torch
from torch import Tensor

from gind.equilibrium.energy import Problem
from gind.equilibrium.solvers.base import Iterate

__all__ = ["Guard", "forget", "guard"]


class Guard(NamedTuple):
    """The last accepted point, and which problems took a plain step from it."""

    safe: Iterate
    plain: Tensor


def guard(problem: Problem, at: Iterate, last: Guard | None) -> tuple[Iterate, Tensor]:
    """The point to go on from, and which problems were sent back to their last accepted point.

    A problem is sent back if its residual grew. From there it must take a plain damped step, which decreases the
    residual of an energy for sure; a plain step is always accepted, so that no problem can stand still.
    """
    if last is None:
        return at, torch.zeros_like(at.residual, dtype=torch.bool)
    rejected = (at.residual > last.safe.residual) & ~last.plain
    if not bool(rejected.any()):
        return at, rejected
    back = problem.inner.spread(rejected, at.z)
    base = Iterate(
        torch.where(back, last.safe.z, at.z),
        torch.where(back, last.safe.fz, at.fz),
        torch.where(rejected, last.safe.residual, at.residual),
    )
    return base, rejected


def forget(problem: Problem, history: list[tuple[Tensor, Tensor]], rejected: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The history without its part in the problems that were sent back."""
    if not history or not bool(rejected.any()):
        return history
    if bool(rejected.all()):
        return []
    keep = problem.inner.spread((~rejected).double(), history[0][0])
    return [(keep * a, keep * b) for a, b in history]
