"""Where a training stands after an epoch: enough to go on as if nothing had happened."""

import dataclasses
import hashlib
import itertools
import math
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gind.train.checkpoint import (
    CheckpointError,
    DamagedError,
    load_tensors,
    optimizer_tensors,
    restore_optimizer,
    save_tensors,
    section,
)
from gind.train.options import FitOptions
from gind.train.problem import Problem
from gind.train.step import WarmStart
from gind.train.stopping import Patience

__all__ = ["EpochRecord", "TrainingState", "fingerprint"]

# what may be different when a training goes on
_FREE = ("epochs", "patience", "patience_counts")
# what checkpoints of earlier versions do not say, and what it was for them; None: it cannot be compared
_LATER = {"description": None, "best_by": repr("metric")}


@dataclasses.dataclass(frozen=True)
class EpochRecord:
    """One epoch in numbers."""

    epoch: int
    loss: float
    val_loss: float
    """nan where this epoch was not validated, as is `val`"""
    val: float
    best: bool
    """whether this is the best epoch so far"""
    steps: float
    """mean steps of the training's equilibrium solves"""
    residual: float
    """the worst relative residual of training and validation; nan if none was measured"""
    gradient_steps: float
    open: int
    """solves that did not reach their tolerance; with `Stop(measure=False)` none was asked for"""
    seconds: float


_COLUMNS = tuple(field.name for field in dataclasses.fields(EpochRecord))


@dataclasses.dataclass
class TrainingState:
    """Model, optimizer, best weights so far, patience, warm starts, history, and the random numbers to come."""

    model: nn.Module
    optimizer: Optimizer
    patience: Patience
    warm: tuple[WarmStart, WarmStart]
    """of training and of validation"""
    fingerprint: dict[str, Any]
    best: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    history: list[EpochRecord] = dataclasses.field(default_factory=list)

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return len(self.history)

    def keep_best(self) -> None:
        """Remember the weights as they are now."""
        self.best = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    def save(self, path: Path) -> None:
        """Write everything to one file, atomically."""
        rows = [[float(getattr(record, name)) for name in _COLUMNS] for record in self.history]
        tensors = {
            "random": torch.get_rng_state(),
            "history": torch.tensor(rows, dtype=torch.float64).reshape(-1, len(_COLUMNS)),
            **_named("model", self.model.state_dict()),
            **_named("optimizer", optimizer_tensors(self.optimizer)),
            **_named("best", self.best),
            **{f"warm.{i}.{k}": value for i, warm in enumerate(self.warm) for k, value in enumerate(warm.values)},
        }
        # JSON has no infinity; before the first validation there is no best epoch
        best = [self.patience.epoch, self.patience.value, self.patience.loss] if self.best else None
        save_tensors(path, tensors, {"fingerprint": self.fingerprint, "best": best}, "checkpoint")

    def load(self, path: Path) -> None:
        """Go back to what was saved; refused if it is of another model, other data or other options."""
        tensors, about = load_tensors(path, "checkpoint")
        self._check(path, about.get("fingerprint"))
        try:
            self.model.load_state_dict(section(tensors, "model"))
            restore_optimizer(self.optimizer, section(tensors, "optimizer"))
            self.best = section(tensors, "best")
            if self.best and self.best.keys() != self.model.state_dict().keys():
                raise KeyError("the best weights")
            self.history = [_record(row) for row in tensors["history"].tolist()]
            for number, warm in enumerate(self.warm):
                values = section(tensors, f"warm.{number}")
                warm.values = [values[str(k)] for k in range(len(values))]
            # the best epoch, and what patience has seen since, follow from the history
            for record in self.history:
                if not math.isnan(record.val):
                    self.patience.improves(record.epoch, record.val, record.val_loss)
            if about["best"] is not None:
                self.patience.epoch, self.patience.value, self.patience.loss = about["best"]
            torch.set_rng_state(tensors["random"])
        except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise DamagedError(f"{path} is not complete ({error}). Delete it and train again.") from error

    def _check(self, path: Path, saved: Any) -> None:
        if not isinstance(saved, dict):
            raise DamagedError(f"{path} does not say what it is a checkpoint of. Delete it and train again.")
        for name, value in self.fingerprint.items():
            before = saved.get(name, _LATER.get(name))
            if before != value and not (before is None and name in _LATER):
                there, here = _differing(before, value)
                raise CheckpointError(
                    f"{path} is a checkpoint of another training: its {name} is {there}, here it is {here}. "
                    "Resume with the options it was started with, or choose another directory."
                )


def fingerprint(model: nn.Module, problem: Problem, options: FitOptions, seed: int) -> dict[str, Any]:
    """What must be the same for a training to go on: options, seed, shapes and repr of the model, the data."""
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    kept = {name: repr(value) for name, value in vars(options).items() if name not in _FREE}
    return {
        "model": f"{type(model).__name__} {_digest(repr(sorted(shapes.items())))}",
        # a function or an object without a repr of its own lies elsewhere in every process
        "description": re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(model)),
        "data": _digest(*_data_bytes(problem)),
        "seed": seed,
        **kept,
    }


def _data_bytes(problem: Problem) -> list[bytes | str]:
    pieces: list[bytes | str] = [f"{problem.task} {problem.num_features} {problem.num_classes}"]
    for part in (*problem.train, *problem.val):
        x = part.data.x
        dense = x.layout == torch.strided
        features = [x] if dense else [x.crow_indices(), x.col_indices(), x.values()]
        seen = [part.data.edge_index, part.data.get("edge_weight"), part.rows, part.y, *features]
        pieces += [t.cpu().numpy().tobytes() for t in seen if t is not None]
    return pieces


def _differing(there: Any, here: Any) -> tuple[Any, Any]:
    """Two values, or of two texts the first lines that differ."""
    if isinstance(there, str) and isinstance(here, str):
        for pair in itertools.zip_longest(there.splitlines(), here.splitlines(), fillvalue="nothing"):
            if pair[0] != pair[1]:
                return pair[0].strip(), pair[1].strip()
    return there, here


def _digest(*pieces: bytes | str) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode() if isinstance(piece, str) else piece)
    return digest.hexdigest()[:12]


def _named(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def _record(row: list[float]) -> EpochRecord:
    values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    for name, kind in (("epoch", int), ("best", bool), ("open", int)):
        values[name] = kind(values[name])
    return EpochRecord(**values)
