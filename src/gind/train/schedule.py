"""Learning rate schedules: a factor of the rate as a function of the epoch alone, so that resuming is exact."""

import abc
import dataclasses
import math
from typing import final

__all__ = ["Constant", "Cosine", "Linear", "Restarts", "Schedule", "StepDecay"]


@dataclasses.dataclass(frozen=True)
class Schedule(abc.ABC):
    """`warmup` epochs of linear growth, then the schedule itself."""

    warmup: int = 0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValueError(f"`{field.name}` of a schedule must be an int >= 0, got {value!r}.")

    def factor(self, epoch: int, epochs: int) -> float:
        """The factor in epoch 1, ..., epochs."""
        if epoch <= self.warmup:
            return epoch / (self.warmup + 1)
        return self._factor(epoch - self.warmup - 1, max(epochs - self.warmup, 1))

    @abc.abstractmethod
    def _factor(self, epoch: int, epochs: int) -> float:
        """The factor after the warm-up, epoch = 0, ..., epochs - 1."""


@final
@dataclasses.dataclass(frozen=True)
class Constant(Schedule):
    """1."""

    def _factor(self, epoch: int, epochs: int) -> float:
        return 1.0


@final
@dataclasses.dataclass(frozen=True)
class Cosine(Schedule):
    """From 1 to nearly 0 over all epochs: ½(1 + cos(π t / T))."""

    def _factor(self, epoch: int, epochs: int) -> float:
        return (1 + math.cos(math.pi * epoch / epochs)) / 2


@final
@dataclasses.dataclass(frozen=True)
class Linear(Schedule):
    """From 1 to nearly 0 over all epochs: 1 - t / T."""

    def _factor(self, epoch: int, epochs: int) -> float:
        return 1 - epoch / epochs


@final
@dataclasses.dataclass(frozen=True)
class StepDecay(Schedule):
    """Times `decay` every `every` epochs."""

    every: int = 1000
    decay: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.every < 1 or not 0 < self.decay <= 1:
            raise ValueError(f"StepDecay needs every >= 1 and decay in (0, 1], got {self.every} and {self.decay}.")

    def _factor(self, epoch: int, epochs: int) -> float:
        return float(self.decay ** (epoch // self.every))


@final
@dataclasses.dataclass(frozen=True)
class Restarts(Schedule):
    """A cosine from 1 to nearly 0 that starts again every `period` epochs."""

    period: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.period < 1:
            raise ValueError(f"Restarts needs period >= 1, got {self.period}.")

    def _factor(self, epoch: int, epochs: int) -> float:
        return (1 + math.cos(math.pi * (epoch % self.period) / self.period)) / 2
