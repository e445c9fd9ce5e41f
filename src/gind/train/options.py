"""`FitOptions`: how a model is trained."""

import dataclasses
import math
from typing import Literal

from gind.errors import UserError
from gind.train.schedule import Constant, Schedule
from gind.train.stopping import BestBy, Counts

__all__ = ["FitOptions", "OptionError"]


class OptionError(UserError, ValueError):
    """An option that does not go with the model or the data."""


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """How a model is trained; everything that can change a result is here."""

    epochs: int = 500
    """passes over the training part"""
    patience: int = 100
    """epochs without a better one before training ends; 0: never"""
    best_by: BestBy = "metric"
    """the best epoch has the highest metric on validation, among equals the lowest loss; or the lowest loss"""
    patience_counts: Counts = "all"
    """all epochs since the best one, or only worse ones: then a tie starts the count anew, as in the published code"""
    optimizer: Literal["adam", "adamw"] = "adam"
    """adam adds weight decay to the gradient (L2), adamw takes it off the weights"""
    lr: float = 0.01
    """learning rate of the encoder and the head"""
    weight_decay: float = 5e-4
    """weight decay of the encoder and the head"""
    implicit_lr: float = 0.001
    """learning rate of the implicit layers (K, U, γ)"""
    implicit_weight_decay: float = 0.0
    """weight decay of the implicit layers"""
    clip: float | None = None
    """largest norm of the whole gradient; longer ones are shortened"""
    schedule: Schedule = dataclasses.field(default_factory=Constant)
    """factor of all learning rates by epoch"""
    batch_size: int = 32
    """graphs per step, where there are many graphs"""
    eval_every: int = 1
    """epochs between looks at the validation part"""
    warm_start: bool = False
    """start each solve from the last epoch's equilibrium (one graph only)"""

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("patience", 0), ("batch_size", 1), ("eval_every", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"`{name}` must be an int >= {least}, got {value!r}.")
        for name in ("lr", "weight_decay", "implicit_lr", "implicit_weight_decay"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"`{name}` must be a finite number >= 0, got {value!r}.")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"`clip` must be a positive number or None, got {self.clip!r}.")
        if self.optimizer not in ("adam", "adamw"):
            raise ValueError(f"`optimizer` must be 'adam' or 'adamw', got {self.optimizer!r}.")
        if self.best_by not in ("metric", "loss"):
            raise ValueError(f"`best_by` must be 'metric' or 'loss', got {self.best_by!r}.")
        if self.patience_counts not in ("all", "worse"):
            raise ValueError(f"`patience_counts` must be 'all' or 'worse', got {self.patience_counts!r}.")
        if not isinstance(self.schedule, Schedule):
            raise TypeError(f"`schedule` must be a Schedule such as Cosine(), got {self.schedule!r}.")
