"""`Case`: the graph and data that contenders are measured on, generated or real."""

import dataclasses
from pathlib import Path

import torch

from gind.bench.shapes import SHAPES, make_dataset
from gind.datasets import Dataset
from gind.datasets.table import DATASETS, nearest
from gind.errors import UserError
from gind.experiments import Spec, load_data, make_spec
from gind.experiments.data import prepare
from gind.graph import Graph
from gind.train import Problem

__all__ = ["BenchError", "Case", "CaseRequest"]


class BenchError(UserError, ValueError):
    """A measurement that cannot be made; the message says why and what to do."""


@dataclasses.dataclass(frozen=True)
class CaseRequest:
    """What to measure on; small and picklable, so that another process can open the same case."""

    name: str
    generated: bool
    channels: int = 64
    data: Path | None = None

    def __post_init__(self) -> None:
        if self.generated and self.name not in SHAPES:
            raise BenchError(f"There is no shape {self.name!r}. {nearest(self.name, SHAPES)}")
        if self.channels < 1:
            raise BenchError(f"The number of channels must be at least 1, got {self.channels}.")

    def spec(self, model: str) -> Spec:
        """How this model is trained on this data: its own defaults, with the channels that were asked for."""
        # a shape that is no dataset is like a graph of one's own: general defaults
        own = self.generated and self.name not in DATASETS
        dataset = f"./{self.name}" if own else self.name
        return make_spec({"dataset": dataset, "model": {"name": model, "hidden": self.channels}})

    def open(self) -> "Case":
        """Generate or load."""
        if self.generated:
            loaded = make_dataset(self.name, SHAPES[self.name])
        else:
            loaded = load_data(self.name, self.data, self.spec("gind").data)
        if loaded.task != "node":
            raise BenchError(
                f"{loaded.name} is a {loaded.task} dataset; only one graph with labeled nodes is measured."
            )
        dataset, _ = prepare(loaded, self.spec("gind").data)
        with torch.random.fork_rng(devices=[]):
            return Case(self, dataset, Graph.from_data(dataset.graphs[0]), Problem.of(dataset, dataset.split(0)))


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A case that is ready to be measured on."""

    request: CaseRequest
    dataset: Dataset
    graph: Graph
    problem: Problem

    @property
    def channels(self) -> int:
        """h."""
        return self.request.channels
