"""Which of the trials wins."""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Tried", "rank"]


@dataclasses.dataclass(frozen=True)
class Tried:
    """A trial that has ended; `value` and `loss` are means over the splits done, on their validation parts."""

    number: int
    state: str
    """complete, pruned or failed"""
    value: float | None
    loss: float | None
    by_split: tuple[float, ...]
    """the metric on each"""
    default: bool
    values: Mapping[str, Any]
    """by searched key; a default that was never set is missing"""
    error: str = ""

    @property
    def splits(self) -> int:
        """How many were done."""
        return len(self.by_split)


def rank(trials: Sequence[Tried]) -> list[Tried]:
    """The complete trials, the winner first.

    It is the one with the lowest loss among those that are as good as the highest metric: below it by no more than the
    standard error of the difference over the splits. Where few nodes validate, the very highest metric is luck, and
    best epochs of a curve that jumps have more of it; the loss sees how sure every prediction was. The others follow
    by their metric.
    """
    complete = [each for each in trials if each.state == "complete"]
    by_metric = sorted(complete, key=lambda each: (-(each.value or 0.0), each.loss, each.number))
    near = [each for each in by_metric if _as_good(each, by_metric[0])]
    far = [each for each in by_metric if not _as_good(each, by_metric[0])]
    return sorted(near, key=lambda each: each.loss or 0.0) + far


def _as_good(one: Tried, best: Tried) -> bool:
    behind = [b - a for a, b in zip(one.by_split, best.by_split, strict=True)]
    error = statistics.stdev(behind) / math.sqrt(len(behind)) if len(behind) > 1 else 0.0
    return statistics.fmean(behind) <= error + 1e-12  # those who are equal are, also in floating point
