"""Seeing the solves inside a model without changing the model."""

import contextlib
import contextvars
from collections.abc import Iterator

from gind.equilibrium.solution import Solution

__all__ = ["measuring", "tell", "unmeasured", "watch"]

_watchers: contextvars.ContextVar[tuple[list[Solution], ...]] = contextvars.ContextVar("watchers", default=())
_measuring: contextvars.ContextVar[bool] = contextvars.ContextVar("measuring", default=True)


@contextlib.contextmanager
def watch() -> Iterator[list[Solution]]:
    """Collect the `Solution` of every `fixed_point` inside, in order.

        with gind.watch() as solutions:
            scores = model(x, edge_index)

    After `backward`, `solution.gradient` says how the backward solves ended. Watches may be nested; each sees all.
    """
    solutions: list[Solution] = []
    token = _watchers.set((*_watchers.get(), solutions))
    try:
        yield solutions
    finally:
        _watchers.reset(token)


def tell(solution: Solution) -> None:
    """Pass a solution on to those who watch."""
    for solutions in _watchers.get():
        solutions.append(solution)


@contextlib.contextmanager
def unmeasured() -> Iterator[None]:
    """Where nobody will look: solves with `Stop(measure=False)` leave their residual unmeasured, with gradient or not.

    It costs one more step, which may be as much as the whole solve.
    """
    token = _measuring.set(False)
    try:
        yield
    finally:
        _measuring.reset(token)


def measuring() -> bool:
    """Whether residuals are wanted."""
    return _measuring.get()
