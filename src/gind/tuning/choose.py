"""Which of the trials wins."""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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
    """The complete trials: the winner, those as good as it by their loss, then the others by their metric.

    The winner is the one with the lowest loss among those that are as good as the highest metric: below it by less than
    the standard error of the difference over the splits, its own and the median of all trials. With one or two splits
    there is none, and the metric decides. Where few nodes validate, the very highest metric is luck, and best epochs of
    a curve that jumps have more of it; the loss sees how sure every prediction was.
    """
    complete = [each for each in trials if each.state == "complete"]
    if not complete:
        return []
    by_metric = sorted(complete, key=lambda each: (-(each.value or 0.0), each.loss, each.number))
    gaps = [_gap(each, by_metric[0]) for each in by_metric]
    # one ruined split makes a trial's own error as large as its gap
    usual = statistics.median(gap.error for gap in gaps[1:]) if len(gaps) > 1 else 0.0
    as_good = [gap.mean <= 1e-12 or gap.mean < min(gap.error, usual) * (1 - 1e-9) for gap in gaps]
    near = [each for each, good in zip(by_metric, as_good, strict=True) if good]
    far = [each for each, good in zip(by_metric, as_good, strict=True) if not good]
    return sorted(near, key=lambda each: each.loss or 0.0) + far


class _Gap(NamedTuple):
    """How far a trial is behind another, over the splits."""

    mean: float
    error: float
    """standard error of the mean; 0 where it cannot be told"""


def _gap(one: Tried, best: Tried) -> _Gap:
    behind = [b - a for a, b in zip(one.by_split, best.by_split, strict=True)]
    error = statistics.stdev(behind) / math.sqrt(len(behind)) if len(behind) > 2 else 0.0
    return _Gap(statistics.fmean(behind), error)
