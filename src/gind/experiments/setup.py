"""What a training needs, made from a Spec: data, split, model, and the problem that hides the test labels."""

import dataclasses
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gind.datasets import Dataset, Split
from gind.datasets.entry import Entry
from gind.experiments.data import load_data, prepare
from gind.experiments.keys import ConfigError
from gind.experiments.models import model_entry
from gind.experiments.protocol import check_protocol, parts_of
from gind.experiments.spec import Spec, readable_options
from gind.kernels.threads import threads
from gind.train import FitReport, Problem, check_fit, fit

__all__ = ["BATCH", "Setup", "build_model", "check_task", "sample_model", "set_up", "validate"]

BATCH = 128  # graphs per forward pass where nothing is trained
_SMALL = 2**19  # nodes times channels: Cora with 64 is below, PubMed above


@dataclasses.dataclass(frozen=True, eq=False)
class Setup:
    """A run that is ready to begin."""

    dataset: Dataset
    """features prepared"""
    split: Split
    """as the protocol shares it out"""
    statistics: dict[str, Tensor]
    """mean and scale of the features, where they were standardized"""
    model: nn.Module
    problem: Problem
    hidden: int

    def threads(self, count: int | None) -> AbstractContextManager[None]:
        """Compute with `count` threads; None: with one where the problem (nodes times channels) is small.

        There a second thread gains little, and on a busy machine, where threads wait for each other, it costs much.
        """
        size = self.hidden * sum(graph.num_nodes for graph in self.dataset.graphs)
        return threads(count or (1 if size < _SMALL else torch.get_num_threads()))


def set_up(spec: Spec, root: str | Path | None = None, *, test_curve: bool = False) -> Setup:
    """Load the data and build the model; whatever does not fit together is refused.

    Only with `test_curve` may a Spec of the paper's protocol have a problem that shows the test labels.
    """
    paper = spec.data.protocol == "paper"
    if paper and not test_curve:
        raise ConfigError('Settings are compared on validation, which protocol "paper" does not have. Leave it out.')
    dataset = load_data(spec.dataset, root, spec.data)
    check_protocol(dataset, spec.data)
    split = parts_of(dataset.split(spec.split), spec.data.protocol)
    dataset, statistics = prepare(dataset, spec.data)
    check_task(spec.model, dataset)
    model = build_model(spec, dataset)
    problem = (Problem.watching_test if paper else Problem.of)(dataset, split, BATCH)
    check_fit(model, problem, spec.train)
    hidden = spec.model_options.get("hidden", model_entry(spec.model).hidden)
    return Setup(dataset, split, statistics, model, problem, hidden)


def validate(spec: Spec, *, root: str | Path | None = None, threads: int | None = None) -> FitReport:
    """Train as `spec` says, only to see how well it validates: nothing is written, the test part is never evaluated."""
    ready = set_up(spec, root)
    with ready.threads(threads):
        return fit(ready.model, ready.problem, options=spec.train, seed=spec.seed)


def build_model(spec: Spec, dataset: Dataset) -> nn.Module:
    """The model of a Spec with the initial weights of its seed; torch's generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        return spec.new_model(dataset.task, dataset.num_features, dataset.num_classes)


def sample_model(model: str, values: Mapping[str, Any]) -> nn.Module:
    """A model of this name and section of a config for no data in particular: to ask what such a model has."""
    entry = model_entry(model)
    with torch.random.fork_rng(devices=[]):
        return entry.for_data(entry.tasks[0], 1, 2, readable_options(model, values))


def check_task(model: str, dataset: Dataset | Entry) -> None:
    """Refuse a model on data that it is not for."""
    tasks = model_entry(model).tasks
    if dataset.task not in tasks:
        raise ConfigError(f"The model {model} is for {' and '.join(tasks)} tasks; {dataset.name} is {dataset.task}.")
