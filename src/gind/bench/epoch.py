"""What an epoch costs, a training step and a validation: groups of models that are compared with each other.

A group is a row of `GROUPS`. Its first entrant is the one that the others are compared with.
"""

import contextlib
import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gind.bench.case import Case
from gind.bench.interleave import Contender
from gind.bench.layer import OURS, STORED
from gind.bench.published import PUBLISHED, store
from gind.bench.reference import reference_kernels
from gind.experiments.setup import build_model
from gind.train import FitOptions, evaluate, make_optimizer
from gind.train.step import WarmStart, train_step, warm_starts

__all__ = ["GROUPS", "Entrant", "epoch"]


@dataclasses.dataclass(frozen=True)
class Entrant:
    """A model in an epoch: by its name in `gind models`, or built from a case by a function of its own."""

    name: str
    model: str | Callable[[Case], tuple[nn.Module, FitOptions]]
    kernels: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    same: bool = False
    """whether loss and gradients are those of the group's first entrant"""

    def build(self, case: Case) -> tuple[nn.Module, FitOptions]:
        """The model with its initial weights, and how it is trained."""
        if callable(self.model):
            return self.model(case)
        spec = case.request.spec(self.model)
        return build_model(spec, case.dataset), spec.train


GROUPS: dict[str, tuple[Entrant, ...]] = {
    "epoch": (
        Entrant(OURS, "gind"),
        Entrant(STORED, "gind", reference_kernels, same=True),
        Entrant("ignn", "ignn"),
        Entrant("eignn", "eignn"),
    ),
    "published epoch": (Entrant(PUBLISHED, PUBLISHED), Entrant(STORED, store)),
}


def epoch(case: Case, entrants: Sequence[Entrant]) -> list[Contender]:
    """The second epoch of a training, each time from the same weights, with the same random numbers.

    They are put back into a model that lives on, as in a training: with a copy of the model each time, tensors would
    come to lie elsewhere in memory, which is slower (8 % on Squirrel).
    """
    return [_contender(case, entrant) for entrant in entrants]


_Running = tuple[nn.Module, Optimizer, WarmStart, WarmStart]


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed looks for devices, for a millisecond
        yield


def _state(running: _Running) -> list[Tensor]:
    """All that an epoch changes: weights, moments of the optimizer, and where solves start."""
    model, optimizer, training, validation = running
    moments = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
    return [*model.parameters(), *model.buffers(), *moments, *training.values, *validation.values]


def _contender(case: Case, entrant: Entrant) -> Contender:
    first, options = entrant.build(case)
    problem = case.problem
    (part,) = problem.train

    def one(running: _Running) -> tuple[float, float]:
        model, optimizer, training, validation = running
        loss, _ = train_step(model, part, problem.task, optimizer, options.clip, training)
        return loss, evaluate(model, problem.val, problem.task, problem.metric, validation, measure=False).loss

    @functools.cache
    def begun() -> tuple[_Running, list[Tensor]]:
        """After the first epoch: the optimizer has its state, and warm starts are warm. With copies of all tensors."""
        model = copy.deepcopy(first)
        running = (model, make_optimizer(model, options), *warm_starts(model, options.warm_start))
        with _seeded(0):
            one(running)
        return running, [tensor.detach().clone() for tensor in _state(running)]

    def setup() -> _Running:
        running, kept = begun()
        with torch.no_grad():
            for tensor, value in zip(_state(running), kept, strict=True):
                tensor.copy_(value)
        return running

    def run(ready: _Running) -> Sequence[Tensor]:
        with _seeded(1):
            return tuple(map(torch.tensor, one(ready)))

    return Contender(entrant.name, run, setup, entrant.kernels, entrant.same)
