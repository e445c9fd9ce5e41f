"""Contenders take turns, so that all see the same machine; each is as fast as its best round."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["Contender", "Timing", "differences", "interleave", "once"]

_REPEATS, _FEWEST = 1000, 2
_MAY_COMPILE = 30.0  # seconds: what takes longer is not a compiler at work


@dataclasses.dataclass(frozen=True)
class Contender:
    """Something to be timed: run(setup()), of which only `run` counts.

    `run` returns the tensors it computed. `same` says that they are those of the first contender, up to rounding and
    the tolerance of a solve.
    """

    name: str
    run: Callable[[Any], Sequence[Tensor]]
    setup: Callable[[], Any] | None = None
    kernels: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    same: bool = False


def once(contender: Contender) -> Sequence[Tensor]:
    """What it computes."""
    with contender.kernels():
        return contender.run(None if contender.setup is None else contender.setup())


class Timing(NamedTuple):
    """What was measured, by contender."""

    seconds: list[list[float]]
    """of each round"""
    results: list[Sequence[Tensor]]
    """what they computed in the round that warms up"""

    @property
    def best(self) -> list[float]:
        """The shortest round of each."""
        return [min(taken) for taken in self.seconds]


def interleave(
    contenders: Sequence[Contender],
    rounds: int,
    *,
    budget: float = math.inf,
    least: float = 0.1,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Time each contender in each round; every round runs all of them, one after the other.

    Runs before the first round warm up; the first of all may compile. What then takes less than `least` seconds is
    repeated within each round, and its time is the mean of the repetitions: what another contender has left in the
    caches soon counts no more. After `budget` seconds there are no more rounds, but two are always made if two were
    asked for.
    """
    repeats, results = [], []
    for contender in contenders:
        seconds, result = _timed(contender, 1, clock)
        if seconds < _MAY_COMPILE:
            seconds, result = _timed(contender, 1, clock)
        repeats.append(max(1, min(_REPEATS, math.ceil(least / seconds))) if seconds > 0 else 1)
        results.append(result)
    times: list[list[float]] = [[] for _ in contenders]
    start = clock()
    for number in range(rounds):
        if number >= _FEWEST and clock() - start > budget:
            break
        for contender, count, taken in zip(contenders, repeats, times, strict=True):
            taken.append(_timed(contender, count, clock)[0])
    return Timing(times, results)


def _timed(contender: Contender, repeats: int, clock: Callable[[], float]) -> tuple[float, Sequence[Tensor]]:
    with contender.kernels():
        taken = 0.0
        if contender.setup is None:
            start = clock()
            for _ in range(repeats):
                result = contender.run(None)
            taken = clock() - start
        else:
            for _ in range(repeats):
                ready = contender.setup()
                start = clock()
                result = contender.run(ready)
                taken += clock() - start
        return taken / repeats, result


def differences(contenders: Sequence[Contender], results: Sequence[Sequence[Tensor]]) -> list[float | None]:
    """How far each result is from the first one, relative to its size; None where it need not be the same."""
    pairs = zip(contenders, results, strict=True)
    return [_distance(result, results[0]) if contender.same else None for contender, result in pairs]


def _distance(found: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    with torch.no_grad():
        return max(
            float((a - b).norm() / b.norm().clamp_min(torch.finfo(b.dtype).tiny))
            for a, b in zip(found, expected, strict=True)
        )
