"""Patience on validation."""

import dataclasses

__all__ = ["Patience"]


@dataclasses.dataclass
class Patience:
    """Remembers the best epoch: the highest validation metric, among equals the lowest validation loss.

    After `limit` epochs without a better one it is exhausted. `limit=0` never is.
    """

    limit: int
    epoch: int = 0
    value: float = float("-inf")
    loss: float = float("inf")

    def improves(self, epoch: int, value: float, loss: float) -> bool:
        """Take note of an epoch; whether it is the best so far."""
        better = (value, -loss) > (self.value, -self.loss)
        if better:
            self.epoch, self.value, self.loss = epoch, value, loss
        return better

    def exhausted(self, epoch: int) -> bool:
        """Whether to stop after this epoch."""
        return 0 < self.limit <= epoch - self.epoch
