"""Patience on validation."""

import dataclasses
from typing import Literal

__all__ = ["Counts", "Patience"]

Counts = Literal["all", "worse"]


@dataclasses.dataclass
class Patience:
    """Remembers the best epoch: the highest validation metric, among equals the lowest validation loss.

    After `limit` epochs without a better one it is exhausted. `limit=0` never is.

    With `counts="worse"`, the published rule, an epoch as good as the best starts the count anew, and is best itself if
    its loss is at most that of every epoch that was as good as the best of its time.

    With `latest` nothing is chosen: the last epoch counts as the best, and patience is without end.
    """

    limit: int
    counts: Counts = "all"
    epoch: int = 0
    value: float = float("-inf")
    loss: float = float("inf")
    since: int = 0
    """the epoch from which patience is counted"""
    lowest: float = float("inf")
    """the lowest loss of an epoch as good as the best of its time"""
    latest: bool = False

    def improves(self, epoch: int, value: float, loss: float) -> bool:
        """Take note of an epoch; whether it is the best so far."""
        worse = self.counts == "worse"
        better = value > self.value or (value == self.value and (loss <= self.lowest if worse else loss < self.loss))
        better = better or self.latest
        if better or (worse and value == self.value):
            self.since, self.lowest = epoch, min(self.lowest, loss)
        if better:
            self.epoch, self.value, self.loss = epoch, value, loss
        return better

    def exhausted(self, epoch: int) -> bool:
        """Whether to stop after this epoch."""
        return not self.latest and 0 < self.limit <= epoch - self.since
