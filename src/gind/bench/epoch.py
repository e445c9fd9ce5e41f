"""What an epoch costs, a training step and a validation: groups of models that are compared with each other.

A group is a row of `GROUPS`. Its first entrant is the one that the others are compared with.
"""

import contextlib
import copy
import dataclasses
import functools
from collections.abc import Callable, Sequence
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
from gind.train.step import WarmStart, train_step

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
    """A training step and a validation, each time with the same weights and random numbers."""
    return [_contender(case, entrant) for entrant in entrants]


def _contender(case: Case, entrant: Entrant) -> Contender:
    first, options = entrant.build(case)
    problem = case.problem
    (part,) = problem.train

    @functools.cache
    def begun() -> tuple[nn.Module, Optimizer]:
        """After one step, so that the optimizer has its state, with the weights of before."""
        model = copy.deepcopy(first)
        optimizer = make_optimizer(model, options)
        train_step(model, part, problem.task, optimizer, options.clip, WarmStart(model, False))
        model.load_state_dict(first.state_dict())
        return model, optimizer

    def setup() -> tuple[nn.Module, Optimizer]:
        return copy.deepcopy(begun())

    def run(ready: tuple[nn.Module, Optimizer]) -> Sequence[Tensor]:
        model, optimizer = ready
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)  # torch.manual_seed looks for devices, for a millisecond
            loss, _ = train_step(model, part, problem.task, optimizer, options.clip, WarmStart(model, False))
            seen = evaluate(model, problem.val, problem.task, problem.metric, measure=False)
        return (torch.tensor(loss), torch.tensor(seen.loss))

    return Contender(entrant.name, run, setup, entrant.kernels, entrant.same)
