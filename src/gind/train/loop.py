"""`fit`: epochs of training, validation after each, the best weights at the end.

It cannot see the test part, unless the `Problem` was made to show it (`Problem.watching_test`); then nothing is chosen.
"""

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Adam, AdamW, Optimizer
from torch_geometric.data import Data

from gind.datasets import Dataset, Split
from gind.diffusion import Composition, Diffusion
from gind.train.checkpoint import CheckpointError
from gind.train.interrupt import Interrupt, catch_interrupt
from gind.train.observe import Observer
from gind.train.options import FitOptions, OptionError
from gind.train.problem import Problem, Watched
from gind.train.state import EpochRecord, TrainingState, fingerprint
from gind.train.step import SolveStatistics, WarmStart, evaluate, train_step, warm_starts
from gind.train.stopping import BestBy, Patience
from gind.train.wrap import as_problem

__all__ = [
    "IMPLICIT_OPTIONS",
    "FitReport",
    "check_fit",
    "fit",
    "implicit_parameters",
    "make_optimizer",
    "unread_options",
]

IMPLICIT_OPTIONS = ("implicit_lr", "implicit_weight_decay")
"""fields of `FitOptions` for a group of the optimizer that only some models have"""


@dataclasses.dataclass(frozen=True)
class FitReport:
    """What a training did. The model holds the best weights on validation (of the last epoch, where none validates)."""

    metric: str
    best_epoch: int
    best_value: float
    """the metric on validation at the best epoch"""
    best_loss: float
    stopped_by: str
    """"patience", "epochs", "fit_directly" (a model that needs no epochs), or the name of a signal"""
    history: tuple[EpochRecord, ...]
    watched: Watched = "val"
    """"test": nothing was chosen, and "best" is the last epoch, with its metric on the test part"""
    best_by: BestBy = "metric"
    """what the best epoch was chosen by"""

    @property
    def finished(self) -> bool:
        """False if a signal ended the training; a checkpoint can be resumed."""
        return self.stopped_by in ("patience", "epochs", "fit_directly")

    @property
    def seconds(self) -> float:
        """Time of all epochs, also of those before a resume."""
        return sum(record.seconds for record in self.history)

    def __str__(self) -> str:
        which = "test" if self.watched == "test" else "best validation" if self.best_by == "metric" else "validation"
        lowest = f", which has the lowest loss, {self.best_loss:.4f}" if which == "validation" else ""
        return (
            f"{len(self.history)} epochs in {self.seconds:.1f} s (ended by {self.stopped_by}); {which} "
            f"{self.metric} {self.best_value:.4f} at epoch {self.best_epoch}{lowest}"
        )


def fit(
    model: nn.Module,
    data: Problem | Dataset | Data | Sequence[Data],
    split: Split | int | None = None,
    *,
    options: FitOptions | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 10,
    resume: bool = False,
    observers: Sequence[Observer] = (),
    **changes: Any,
) -> FitReport:
    """Train `model`, and leave it with the weights that were best on validation.

    `data` is a PyG `Data` with train_mask and val_mask, a list of `Data` (one label each) with `split`, or a `Dataset`
    with the number of a split. The model is called as model(x, edge_index), with edge_weight= and batch= where the
    data has them. `changes` are fields of `FitOptions`:

        report = gind.fit(model, data, epochs=200, lr=0.01)

    With `checkpoint`, the state is written there every `checkpoint_every` epochs and on Ctrl-C or SIGTERM, and
    `resume=True` goes on from it to the same bits as if there had been no stop.
    """
    options = dataclasses.replace(FitOptions() if options is None else options, **changes)
    problem = as_problem(data, split, options.batch_size)
    path = None if checkpoint is None else Path(checkpoint)
    with torch.random.fork_rng(devices=[]), catch_interrupt() as interrupt:
        torch.manual_seed(seed)
        state = _start(model, problem, options, seed)
        if resume and path is not None and path.exists():
            state.load(path)
            if state.epoch > options.epochs:
                raise CheckpointError(
                    f"{path} has {state.epoch} epochs already, more than `epochs` = {options.epochs}. Resume with as "
                    "many or more, or begin anew."
                )
        training = _Training(problem, options, state, interrupt, path, checkpoint_every, observers)
        stopped_by = training.run_directly() if hasattr(model, "fit_directly") else training.run()
    if state.best:
        model.load_state_dict(state.best)
    model.eval()
    best = state.patience
    history = tuple(state.history)
    return FitReport(
        problem.metric, best.epoch, best.value, best.loss, stopped_by, history, problem.watched, best.best_by
    )


def implicit_parameters(model: nn.Module) -> list[nn.Parameter]:
    """K, U, γ of every Diffusion; or what `model.implicit_parameters()` says, if the model has that."""
    own = getattr(model, "implicit_parameters", None)
    if callable(own):
        return list(own())
    layers = (module for module in model.modules() if isinstance(module, Diffusion | Composition))
    return list({id(p): p for layer in layers for p in layer.parameters()}.values())


def unread_options(model: nn.Module) -> tuple[str, ...]:
    """The fields of `FitOptions` that are for implicit parameters, if the model has none."""
    return () if implicit_parameters(model) else IMPLICIT_OPTIONS


def check_fit(model: nn.Module, problem: Problem, options: FitOptions) -> None:
    """Refuse options that do not go with the model or the data."""
    if options.warm_start:
        if len(problem.train) > 1:
            raise OptionError("`warm_start` is for one graph: with many, each step has other graphs. Leave it off.")
        WarmStart(model, True)
    if problem.watched == "test":
        if hasattr(model, "fit_directly"):
            raise OptionError(
                f"{type(model).__name__} is trained without epochs and chooses on validation: it has no test curve by "
                "epoch. Leave the protocol out."
            )
        if options.eval_every != 1:
            raise OptionError(f"A test curve has every epoch: leave `eval_every` at 1, got {options.eval_every}.")


def _start(model: nn.Module, problem: Problem, options: FitOptions, seed: int) -> TrainingState:
    check_fit(model, problem, options)
    return TrainingState(
        model,
        make_optimizer(model, options),
        Patience(options.patience, options.patience_counts, options.best_by, latest=problem.watched == "test"),
        warm_starts(model, options.warm_start),
        fingerprint(model, problem, options, seed),
    )


def make_optimizer(model: nn.Module, options: FitOptions) -> Optimizer:
    """Implicit layers have rates of their own; what `model.undecayed_parameters()` may name has no decay."""
    implicit = implicit_parameters(model)
    free = list(getattr(model, "undecayed_parameters", list)())
    known = {id(parameter) for parameter in [*implicit, *free]}
    explicit = [parameter for parameter in model.parameters() if id(parameter) not in known]
    groups: list[dict[str, Any]] = [
        {"params": explicit, "lr": options.lr, "weight_decay": options.weight_decay},
        {"params": free, "lr": options.lr, "weight_decay": 0.0},
        {"params": implicit, "lr": options.implicit_lr, "weight_decay": options.implicit_weight_decay},
    ]
    # a model that fits itself may have no parameters, and Adam insists on some
    kept = [group for group in groups if group["params"]] or [{"params": [torch.zeros(1)]}]
    kind = Adam if options.optimizer == "adam" else AdamW
    # all parameters in one call: the step of a small model is otherwise as long as its gradient
    fused = all(parameter.device.type in ("cpu", "cuda") for parameter in model.parameters())
    return kind(kept, fused=fused)


@dataclasses.dataclass
class _Training:
    """The loop."""

    problem: Problem
    options: FitOptions
    state: TrainingState
    interrupt: Interrupt
    path: Path | None
    checkpoint_every: int
    observers: Sequence[Observer]

    def run(self) -> str:
        """Epoch after epoch; why it ended."""
        with self._observed():
            return self._run()

    @contextlib.contextmanager
    def _observed(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for observer in self.observers:
                stack.callback(observer.end)
                observer.start(self.state.history, self.options.epochs, self.problem.metric)
            yield

    def _note(self, record: EpochRecord) -> None:
        self.state.history.append(record)
        for observer in self.observers:
            observer.epoch(record)

    def _run(self) -> str:
        state, options = self.state, self.options
        rates = [float(group["lr"]) for group in state.optimizer.param_groups]
        while True:
            if state.patience.exhausted(state.epoch):
                return self._end("patience")
            if state.epoch >= options.epochs:
                return self._end("epochs")
            factor = options.schedule.factor(state.epoch + 1, options.epochs)
            for group, rate in zip(state.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor
            self._note(self._epoch(state.epoch + 1))
            if self.interrupt.name is not None:
                return self._end(self.interrupt.name)
            if state.epoch % self.checkpoint_every == 0:
                self._save()

    def run_directly(self) -> str:
        """A model that needs no epochs (a kernel machine, a ridge regression) fits itself to the training part."""
        model: Any = self.state.model
        start = time.perf_counter()
        with self._observed():
            if self.state.epoch == 0:
                model.fit_directly(self.problem.train, self.problem.val)
                self._note(self._record(1, float("nan"), SolveStatistics(), start))
            return self._end("fit_directly")

    def _end(self, reason: str) -> str:
        self._save()
        return reason

    def _save(self) -> None:
        if self.path is not None:
            self.state.save(self.path)

    def _epoch(self, number: int) -> EpochRecord:
        state, options, problem = self.state, self.options, self.problem
        start = time.perf_counter()
        total, rows, solutions = 0.0, 0, SolveStatistics()
        for part in problem.epoch(options.batch_size):
            value, solved = train_step(state.model, part, problem.task, state.optimizer, options.clip, state.warm[0])
            total, rows = total + value * len(part.y), rows + len(part.y)
            solutions = solutions + SolveStatistics.of(solved)
        return self._record(number, total / rows, solutions, start)

    def _record(self, number: int, loss: float, solves: SolveStatistics, start: float) -> EpochRecord:
        """Validate if it is time to, and sum up the epoch."""
        state, options, problem = self.state, self.options, self.problem
        val_loss = val = float("nan")
        best, worst, unsolved = False, solves.residual, solves.open
        if number % options.eval_every == 0 or number == options.epochs or hasattr(state.model, "fit_directly"):
            seen = evaluate(state.model, problem.val, problem.task, problem.metric, state.warm[1], measure=False)
            val_loss, val, worst = seen.loss, seen.value, (solves + seen.solves).residual
            unsolved += seen.solves.open
            best = state.patience.improves(number, val, val_loss)
            if best:
                state.keep_best()
        return EpochRecord(
            epoch=number,
            loss=loss,
            val_loss=val_loss,
            val=val,
            best=best,
            steps=solves.steps,
            residual=worst,
            gradient_steps=solves.gradient_steps,
            open=unsolved,
            seconds=time.perf_counter() - start,
        )
