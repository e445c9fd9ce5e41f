"""Patience on validation."""

import dataclasses
from typing import Literal

__all__ = ["BestBy", "Counts", "Patience"]

BestBy = Literal["metric", "loss"]
Counts = Literal["all", "worse"]


@dataclasses.dataclass
class Patience:
    """Remembers the best epoch: the highest validation metric, among equals the lowest validation loss.

    With `best_by="loss"` it is the lowest loss, among equals the highest metric.

    After `limit` epochs without a better one it is exhausted. `limit=0` never is.

    With `counts="worse"`, the published rule, an epoch as good as the best starts the count anew, and is best itself if
    what decides among equals is no worse than in every epoch that was as good as the best of its time.

    With `latest` nothing is chosen: the last epoch counts as the best, and patience is without end.
    """

    limit: int
    counts: Counts = "all"
    best_by: BestBy = "metric"
    epoch: int = 0
    value: float = float("-inf")
    loss: float = float("inf")
    since: int = 0
    """the epoch from which patience is counted"""
    among_equals: float = float("-inf")
    """what decides among equals, the highest of all epochs as good as the best of their time"""
    latest: bool = False

    def improves(self, epoch: int, value: float, loss: float) -> bool:
        """Take note of an epoch; whether it is the best so far."""
        worse = self.counts == "worse"
        (first, second), (best, then) = self._rank(value, loss), self._rank(self.value, self.loss)
        better = first > best or (first == best and (second >= self.among_equals if worse else second > then))
        better = better or self.latest
        if better or (worse and first == best):
            self.since, self.among_equals = epoch, max(self.among_equals, second)
        if better:
            self.epoch, self.value, self.loss = epoch, value, loss
        return better

    def exhausted(self, epoch: int) -> bool:
        """Whether to stop after this epoch."""
        return not self.latest and 0 < self.limit <= epoch - self.since

    def _rank(self, value: float, loss: float) -> tuple[float, float]:
        """What decides, and what decides among equals; higher is better."""
        return (value, -loss) if self.best_by == "metric" else (-loss, value)
