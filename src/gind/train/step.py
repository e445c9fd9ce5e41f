"""One training step, one evaluation: how a model is called, and what its solves say."""

import contextlib
import dataclasses
import inspect
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gind.datasets import Metric, Task
from gind.equilibrium import ConvergenceWarning, Solution, Status, unmeasured, watch
from gind.train.metrics import loss, metric
from gind.train.options import OptionError
from gind.train.problem import Part

__all__ = ["Evaluation", "SolveStatistics", "WarmStart", "call", "evaluate", "takes_start", "train_step"]


@dataclasses.dataclass(frozen=True)
class SolveStatistics:
    """What the equilibrium solves of an epoch did; all zero for a model without any."""

    solves: int = 0
    steps: float = 0.0
    """mean over the solves"""
    residual: float = 0.0
    """the worst; nan if none was measured"""
    gradient_steps: float = 0.0
    """mean of the backward solves"""
    open: int = 0
    """solves that did not reach their tolerance; with `Stop(measure=False)` none was asked for"""

    @classmethod
    def of(cls, solutions: Sequence[Solution]) -> "SolveStatistics":
        """Sum up."""
        if not solutions:
            return cls()
        measured = [s for s in solutions if s.status is not Status.UNMEASURED]
        worst = max((float(s.residual.max()) for s in measured if s.residual.numel()), default=math.nan)
        return cls(
            len(solutions),
            sum(s.steps for s in solutions) / len(solutions),
            worst,
            sum(s.gradient.steps for s in solutions) / len(solutions),
            sum(not s.converged for s in measured),
        )

    def __add__(self, other: "SolveStatistics") -> "SolveStatistics":
        if not self.solves or not other.solves:
            return self if self.solves else other
        count = self.solves + other.solves
        measured = [residual for residual in (self.residual, other.residual) if not math.isnan(residual)]
        return SolveStatistics(
            count,
            (self.steps * self.solves + other.steps * other.solves) / count,
            max(measured, default=math.nan),
            (self.gradient_steps * self.solves + other.gradient_steps * other.solves) / count,
            self.open + other.open,
        )


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Loss and metric on some part of the data."""

    loss: float
    value: float
    solves: SolveStatistics


class WarmStart:
    """The equilibria of the last pass, from which the next one starts; off, it does nothing."""

    def __init__(self, model: nn.Module, on: bool) -> None:
        self.on = on
        self.values: list[Tensor] = []
        if on and not takes_start(model):
            raise OptionError(
                f"`warm_start` needs a model whose forward takes `z0`; {type(model).__name__} does not. Leave it off."
            )

    @property
    def arguments(self) -> dict[str, Any]:
        """What to pass to the model."""
        return {"z0": self.values} if self.values else {}

    def keep(self, solutions: Sequence[Solution]) -> None:
        """Remember where this pass ended."""
        if self.on:
            # a copy outside of inference mode: training starts may need it. Contiguous, as it comes back from a file
            with torch.inference_mode(False):
                layout = torch.contiguous_format
                self.values = [solution.value.detach().clone(memory_format=layout) for solution in solutions]


def takes_start(model: nn.Module) -> bool:
    """Whether `warm_start` can be on: the forward of the model takes `z0`."""
    return "z0" in inspect.signature(model.forward).parameters


def warm_starts(model: nn.Module, on: bool) -> tuple[WarmStart, WarmStart]:
    """Of training steps and of validations. A step with dropout is another problem each time: it starts from zero."""
    # a rate that a module keeps, or torch's own modules
    rates = (getattr(module, "p" if "Dropout" in type(module).__name__ else "dropout", 0) for module in model.modules())
    changing = any(isinstance(rate, float | int) and rate > 0 for rate in rates)
    return WarmStart(model, on and not changing), WarmStart(model, on)


def call(model: nn.Module, part: Part, **more: Any) -> Tensor:
    """The scores of the rows that count: model(x, edge_index), with edge_weight and batch where there are any."""
    optional = {name: part.data[name] for name in ("edge_weight", "batch") if part.data.get(name) is not None}
    scores: Tensor = model(part.data.x, part.data.edge_index, **optional, **more)
    return scores if part.rows is None else scores[part.rows]


def train_step(
    model: nn.Module, part: Part, task: Task, optimizer: Optimizer, clip: float | None, warm: WarmStart
) -> tuple[float, list[Solution]]:
    """One step of the optimizer; the loss before it, and the solves."""
    model.train()
    optimizer.zero_grad(set_to_none=True)
    with watch() as solutions, warnings.catch_warnings():
        # counted in the statistics of the epoch instead of printed once per step
        warnings.simplefilter("ignore", ConvergenceWarning)
        value = loss(call(model, part, **warm.arguments), part.y, task)
        torch.autograd.backward(value)
    if clip is not None:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    warm.keep(solutions)
    number = float(value.detach())
    if not math.isfinite(number):
        raise FloatingPointError(
            f"The training loss is {number}. Lower `lr` or `implicit_lr`, set `clip`, or scale the features."
        )
    return number, solutions


def evaluate(
    model: nn.Module,
    parts: Iterable[Part],
    task: Task,
    name: Metric,
    warm: WarmStart | None = None,
    measure: bool = True,
) -> Evaluation:
    """Loss and metric over all parts together, in evaluation mode.

    Without `measure` the residuals of solves that do not need theirs stay unknown.
    """
    training = model.training
    model.eval()
    warm = WarmStart(model, False) if warm is None else warm
    looking = contextlib.nullcontext() if measure else unmeasured()
    with torch.inference_mode(), watch() as solutions, looking, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        parts = list(parts)
        scores = torch.cat([call(model, part, **warm.arguments) for part in parts])
        y = torch.cat([part.y.reshape(-1) if task == "graph" else part.y for part in parts])
        warm.keep(solutions)
        result = Evaluation(float(loss(scores, y, task)), metric(name, scores, y), SolveStatistics.of(solutions))
    model.train(training)
    return result
